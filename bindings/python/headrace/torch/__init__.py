"""Headrace where a PyTorch program has a torch.utils.data.DataLoader.

    from headrace.torch import DataLoader

    data = (hr.open("cifar10.tar.zst").decode().cache()
            .map(hr.pad_crop(32, 4), hr.flip(), hr.normalize(mean, std), hr.to_layout("channels_first")))
    loader = DataLoader(data, batch_size=512, shuffle=True, num_workers=4, fields=("image", "label"))
    for images, labels in loader: ...

Threads of the engine do what worker processes do there; nothing is pickled and nothing is forked.
"""

from headrace._calls import speak
from headrace.torch._loader import DataLoader

__all__ = ["DataLoader"]

speak(globals(), __all__)
