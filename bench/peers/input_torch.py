#!/usr/bin/env python3
"""Input workloads in PyTorch: DataLoader with N worker processes that persist, two batches ahead each.

Photographs are decoded and augmented one by one in the workers, as the documentation shows it, by torchvision's
functions on uint8 tensors (or Pillow's). CIFAR batches are fetched whole by a batch sampler; --per-sample does
what tutorials do instead: transforms.v2 on one image at a time.
Samplers go on for ever, so no pass ends with the workers idle. Each worker computes on one thread.
"""
import numpy as np
import torch
import torchvision
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler, get_worker_info
from torchvision.transforms import v2

import inputs
import photographs
import records
import small_images


class EndlessRandom(RandomSampler):
    """Every record once a pass, pass after pass."""

    def __init__(self, source, seed):
        super().__init__(source, generator=torch.Generator().manual_seed(seed))

    def __iter__(self):
        while True:
            yield from super().__iter__()


class EndlessInOrder(SequentialSampler):
    def __iter__(self):
        while True:
            yield from range(len(self.data_source))


def worker_rng():
    info = get_worker_info()
    return np.random.default_rng(info.seed)


class Photographs(Dataset):
    def __init__(self, encoded, make, random):
        self.encoded, self.make, self.random, self.rng = encoded, make, random, None

    def __len__(self):
        return len(self.encoded)

    def __getitem__(self, i):
        self.rng = self.rng or worker_rng()
        extra = (self.rng,) if self.random else ()
        return torch.from_numpy(self.make(self.encoded[i], *extra))


class SmallImages(Dataset):
    """Item `indices` is a whole batch."""

    def __init__(self, images, decoder=None):
        self.images, self.decoder, self.rng = images, decoder, None

    def __len__(self):
        return len(self.images)

    def __getitem__(self, indices):
        self.rng = self.rng or worker_rng()
        if self.decoder is None:
            return small_images.augment(self.images[indices], self.rng)
        return small_images.augment(np.stack([small_images.decode(self.images[i], self.decoder) for i in indices]),
                                    self.rng)


class SmallImagesOneByOne(Dataset):
    def __init__(self, images, decoder=None):
        self.images, self.decoder = images, decoder
        self.transform = v2.Compose([v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip(),
                                     v2.ToDtype(torch.float32, scale=True),
                                     v2.Normalize(inputs.CIFAR_MEAN, inputs.CIFAR_STD)])

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = self.images[i]
        return self.transform(torch.from_numpy(small_images.decode(image, self.decoder) if self.decoder else image))


def loader(opt, dataset, **how):
    return DataLoader(dataset, num_workers=opt.threads, persistent_workers=True, prefetch_factor=2,
                      worker_init_fn=lambda _: torch.set_num_threads(1),
                      generator=torch.Generator().manual_seed(opt.seed), **how)


def jpeg_train(opt):
    data = Photographs(records.Records(opt.data), photographs.train(opt.decoder), random=True)
    return loader(opt, data, batch_size=opt.batch, sampler=EndlessRandom(data, opt.seed))


def jpeg_eval(opt):
    data = Photographs(records.Records(opt.data), photographs.evaluate(opt.decoder), random=False)
    return loader(opt, data, batch_size=opt.batch, sampler=EndlessInOrder(data))


def small(opt, images, decoder):
    kind = SmallImagesOneByOne if opt.per_sample else SmallImages
    data = kind(images, decoder)
    sampler = EndlessRandom(data, opt.seed)
    if opt.per_sample:
        return loader(opt, data, batch_size=opt.batch, sampler=sampler)
    return loader(opt, data, batch_size=None, sampler=BatchSampler(sampler, opt.batch, drop_last=True))


def more(arg):
    photographs.add_decoder(arg)
    arg.add_argument("--per-sample", action="store_true", help="CIFAR: one call an image")


if __name__ == "__main__":
    inputs.run("torch", f"torch {torch.__version__}, torchvision {torchvision.__version__}", __doc__, {
        "jpeg-train": jpeg_train, "jpeg-eval": jpeg_eval,
        "cifar-train": lambda opt: small(opt, records.pixels(opt.data), None),
        "cifar-jpeg": lambda opt: small(opt, records.Records(opt.data), opt.decoder)}, more)
