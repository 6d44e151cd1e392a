#!/usr/bin/env python3
"""Input workloads in Grain: MapDataset, shuffled and repeated, N worker processes (mp_prefetch), two batches ahead.

Grain has no image operations: decoding and augmenting are torchvision's (or Pillow's). Each worker reads on one
thread. CIFAR is random access to whole batches: the source's item b is the b-th batch of indices.
"""
import importlib.metadata
import logging

logging.disable(logging.WARNING)  # of profilers that are not installed
import grain
import numpy as np
import torch
import torchvision

import inputs
import photographs
import records
import small_images

torch.set_num_threads(1)  # in the workers, too: they import this file


class Photograph(grain.transforms.Map):
    def __init__(self, images, make):
        self.images, self.make = images, make

    def map(self, i):
        return self.make(self.images[i])


class RandomPhotograph(grain.transforms.RandomMap):
    def __init__(self, images, make):
        self.images, self.make = images, make

    def random_map(self, i, rng):
        return self.make(self.images[i], rng)


class SmallBatch(grain.transforms.RandomMap):
    def __init__(self, images, decoder=None):
        self.images, self.decoder = images, decoder

    def random_map(self, rows, rng):
        images = (self.images[rows] if self.decoder is None else
                  np.stack([small_images.decode(self.images[i], self.decoder) for i in rows]))
        return small_images.augment(images, rng).numpy()


class Pixels:
    """An array that is not pickled with the pipeline but read by each worker."""

    def __init__(self, data):
        self.data, self.images = data, None

    def __getitem__(self, rows):
        if self.images is None:
            self.images = records.pixels(self.data)
        return self.images[rows]

    def __getstate__(self):
        return {"data": self.data, "images": None}


def endless(opt, dataset):
    reading = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2 * opt.batch)
    workers = grain.MultiprocessingOptions(num_workers=opt.threads, per_worker_buffer_size=2)
    return dataset.to_iter_dataset(reading).mp_prefetch(workers)


def batches_of_rows(opt, count):
    rows = grain.MapDataset.range(count).shuffle(opt.seed).batch(opt.batch, drop_remainder=True)
    return rows.seed(opt.seed).repeat()


def jpeg_train(opt):
    images = records.Records(opt.data)
    rows = grain.MapDataset.range(len(images)).seed(opt.seed).shuffle().repeat()
    dataset = rows.random_map(RandomPhotograph(images, photographs.train(opt.decoder)))
    return endless(opt, dataset.batch(opt.batch, drop_remainder=True))


def jpeg_eval(opt):
    images = records.Records(opt.data)
    dataset = grain.MapDataset.range(len(images)).repeat().map(Photograph(images, photographs.evaluate(opt.decoder)))
    return endless(opt, dataset.batch(opt.batch, drop_remainder=True))


def cifar_train(opt):
    records.pixels(opt.data)
    count = len(records.Records(opt.data))
    return endless(opt, batches_of_rows(opt, count).random_map(SmallBatch(Pixels(opt.data))))


def cifar_jpeg(opt):
    images = records.Records(opt.data)
    return endless(opt, batches_of_rows(opt, len(images)).random_map(SmallBatch(images, opt.decoder)))


if __name__ == "__main__":
    inputs.run("grain", f"grain {importlib.metadata.version('grain')}, torchvision {torchvision.__version__}", __doc__, {
        "jpeg-train": jpeg_train, "jpeg-eval": jpeg_eval, "cifar-train": cifar_train, "cifar-jpeg": cifar_jpeg},
        photographs.add_decoder)
