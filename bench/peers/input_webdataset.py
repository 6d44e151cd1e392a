#!/usr/bin/env python3
"""Input workloads in WebDataset: tar shards read in sequence, shuffled in a buffer, WebLoader with N worker processes.

Batches are made in the workers. Decoding is torchvision's (or Pillow's) on the bytes of a member; .decode() of
WebDataset itself goes through Pillow. cifar-train, from memory, is not offered: WebDataset reads streams of files.
"""
import numpy as np
import torch
import torchvision
import webdataset as wds
from torch.utils.data import get_worker_info

import inputs
import photographs
import records
import small_images

SHARDS = 8


class Rng:
    """One generator a worker process, made when first asked for."""

    def __init__(self):
        self.rng = None

    def __call__(self):
        self.rng = self.rng or np.random.default_rng(get_worker_info().seed)
        return self.rng


class Shards:
    """The worker's shards for ever, in a new order each pass: a stream without end never drains its buffers."""

    def __init__(self, paths, shuffled):
        self.paths, self.shuffled = paths, shuffled

    def __call__(self):
        info = get_worker_info()
        mine, rng = self.paths[info.id::info.num_workers], np.random.default_rng(info.seed)
        while True:
            for i in rng.permutation(len(mine)) if self.shuffled else range(len(mine)):
                yield {"url": mine[i]}


def endless(opt, make, batched, buffer=0):
    """make(encoded) gives a sample, batched(list of (sample,)) a batch; a buffer of 0 keeps the records' order."""
    paths = records.shards(opt.data, max(SHARDS, opt.threads) if buffer else opt.threads, shuffled=buffer > 0)
    stages = [Shards(paths, buffer > 0), wds.tarfile_to_samples()]
    if buffer:
        stages.append(wds.shuffle(buffer, initial=buffer))  # full before the first batch
    stages += [wds.to_tuple("jpg"), wds.map_tuple(make), wds.batched(opt.batch, collation_fn=batched, partial=False)]
    return wds.WebLoader(wds.DataPipeline(*stages), batch_size=None, num_workers=opt.threads, persistent_workers=True,
                         prefetch_factor=2, worker_init_fn=lambda _: torch.set_num_threads(1))


def stacked(samples):
    return torch.from_numpy(np.stack([sample[0] for sample in samples]))


def jpeg_train(opt):
    make, rng = photographs.train(opt.decoder), Rng()
    return endless(opt, lambda encoded: make(np.frombuffer(encoded, np.uint8), rng()), stacked, 500)


def jpeg_eval(opt):
    make = photographs.evaluate(opt.decoder)
    return endless(opt, lambda encoded: make(np.frombuffer(encoded, np.uint8)), stacked)


def cifar_jpeg(opt):
    rng = Rng()
    return endless(opt, lambda encoded: small_images.decode(np.frombuffer(encoded, np.uint8), opt.decoder),
                   lambda samples: small_images.augment(np.stack([sample[0] for sample in samples]), rng()), 1000)


if __name__ == "__main__":
    inputs.run("webdataset", f"webdataset {wds.__version__}, torchvision {torchvision.__version__}", __doc__,
               {"jpeg-train": jpeg_train, "jpeg-eval": jpeg_eval, "cifar-jpeg": cifar_jpeg}, photographs.add_decoder)
