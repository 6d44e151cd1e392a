"""Headrace's input engine: reads, decodes, shuffles, augments, batches and shards training data.

    import headrace as hr

    train = (hr.open("cifar10.tar.zst", split="train").decode().cache("memory").shuffle(seed=7)
             .map(hr.pad_crop(32, 4), hr.flip(), hr.normalize(mean, std), hr.to_layout("channels_first"))
             .batch(512).prefetch(2))
    loader = hr.Loader(train, epochs=10)
    for epoch in range(10):
        for batch in loader:
            step(batch.torch())
"""

from ._errors import ConfigError, DataError, DeviceError, HeadraceError
from ._arrow import from_arrow
from ._batch import BadRecord, Batch, Tensor
from ._calls import speak as _speak
from ._dataset import Cache, Dataset, concatenate, interleave, mix
from ._dataset import zip_datasets
from ._fields import Field
from ._function import Function, function
from ._loader import Loader
from ._native import WorkerPlan, Workers, plan_workers
from ._native import __version__ as __version__
from ._native import Operations
from ._native import operations as _operations
from ._native.operations import *
from ._saving import ShardWriter, save_records
from ._sources import from_arrays, from_function, from_generator, from_torch_dataset
from ._sources import open as open
from ._workers import open_world

__all__ = [
    "BadRecord", "Batch", "Cache", "ConfigError", "DataError", "Dataset", "DeviceError", "Field", "Function",
    "HeadraceError", "Loader", "Operations", "ShardWriter", "Tensor", "WorkerPlan", "Workers", "concatenate", "from_arrays", "from_arrow",
    "from_function", "from_generator", "from_torch_dataset", "function", "interleave", "mix", "open_world", "plan_workers",
    "save_records",
]
__all__ += sorted(name for name in vars(_operations) if not name.startswith("_"))

zip = zip_datasets  # not in __all__, like open: Python has a zip() of its own

_speak(globals(), [*__all__, "open", "zip"])
