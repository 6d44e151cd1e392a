#!/usr/bin/env python3
"""Input workloads in SPDL: its pipeline of stages on N threads of one process.

spdl.io's own decoder needs the shared libraries of FFmpeg, which its wheel does not bring, and scales with FFmpeg's
filters; the stages here call torchvision (or Pillow) instead. CIFAR batches are one task each.
"""
import concurrent.futures
import importlib.metadata
import itertools
import threading

import numpy as np
import torch
import torchvision
from spdl.pipeline import PipelineBuilder

import inputs
import photographs
import records
import small_images

_own = threading.local()


def thread_rng():
    """NumPy's generators are not thread-safe: one a thread."""
    if not hasattr(_own, "rng"):
        _own.rng = np.random.default_rng([threading.get_ident()])
    return _own.rng


def endless(opt, source, *stages):
    """stages: functions on the pool's threads, or a count to put that many together."""
    pool = concurrent.futures.ThreadPoolExecutor(opt.threads)
    builder = PipelineBuilder().add_source(source)
    for stage in stages:
        if isinstance(stage, int):
            builder = builder.aggregate(stage, drop_last=True)
        else:
            builder = builder.pipe(stage, executor=pool, concurrency=opt.threads, output_order="input")
    pipeline = builder.add_sink(2).build(num_threads=opt.threads)
    with pipeline.auto_stop():
        yield from pipeline.get_iterator(timeout=60)


def jpeg_train(opt):
    images, make = records.Records(opt.data), photographs.train(opt.decoder)
    return endless(opt, inputs.orders(len(images), opt.seed), lambda i: make(images[i], thread_rng()), opt.batch,
                   np.stack)


def jpeg_eval(opt):
    images, make = records.Records(opt.data), photographs.evaluate(opt.decoder)
    return endless(opt, itertools.cycle(range(len(images))), lambda i: make(images[i]), opt.batch, np.stack)


def cifar_train(opt):
    images = records.pixels(opt.data)
    return endless(opt, inputs.index_batches(len(images), opt.batch, opt.seed),
                   lambda rows: small_images.augment(images[rows], thread_rng()))


def cifar_jpeg(opt):
    images = records.Records(opt.data)

    def make(rows):
        decoded = np.stack([small_images.decode(images[i], opt.decoder) for i in rows])
        return small_images.augment(decoded, thread_rng())

    return endless(opt, inputs.index_batches(len(images), opt.batch, opt.seed), make)


if __name__ == "__main__":
    torch.set_num_threads(1)
    inputs.run("spdl", f"spdl {importlib.metadata.version('spdl')}, torchvision {torchvision.__version__}", __doc__, {
        "jpeg-train": jpeg_train, "jpeg-eval": jpeg_eval, "cifar-train": cifar_train, "cifar-jpeg": cifar_jpeg},
        photographs.add_decoder)
