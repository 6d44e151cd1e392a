#!/usr/bin/env python3
"""Input workloads in SPDL: its pipeline of stages on N threads of one process.

--decoder torchvision or pillow: the stages call those. --decoder spdl: its own, spdl.io, which is FFmpeg's and needs
FFmpeg's shared libraries on the machine. An image is demuxed, decoded and sent through FFmpeg's filters (crop, scale,
hflip) without Python's lock, and spdl.io copies a batch together.
CIFAR batches are one task each.
"""
import concurrent.futures
import importlib.metadata
import itertools
import threading

import numpy as np
import spdl.io
import spdl.io.utils
import torch
import torchvision
from spdl.pipeline import PipelineBuilder

import inputs
import photographs
import records
import small_images

OWN = "spdl"
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


def scaled(height, width):
    """FFmpeg's linear filter; it takes as many pixels as the scale asks for, so it is antialiased."""
    return f"scale={width}:{height}:flags=bilinear+accurate_rnd+full_chroma_int,format=pix_fmts=rgb24"


def spdl_train(encoded):
    rng, packets = thread_rng(), spdl.io.demux_image(encoded)
    top, left, height, width = inputs.random_window(packets.height, packets.width, rng)
    filters = [f"crop={width}:{height}:{left}:{top}:exact=1", scaled(inputs.CROP, inputs.CROP)]
    if rng.random() < 0.5:
        filters.append("hflip")
    return spdl.io.decode_packets(packets, filter_desc=",".join(filters))


def spdl_evaluate(encoded):
    packets = spdl.io.demux_image(encoded)
    height, width = inputs.eval_size(packets.height, packets.width)
    top, left = inputs.eval_corner(height, width)
    crop = f"crop={inputs.CROP}:{inputs.CROP}:{left}:{top}:exact=1"
    return spdl.io.decode_packets(packets, filter_desc=f"{scaled(height, width)},{crop}")


def spdl_batch(frames):
    return spdl.io.to_numpy(spdl.io.convert_frames(frames))


def jpeg_train(opt):
    images = records.Records(opt.data)
    order = inputs.orders(len(images), opt.seed)
    if opt.decoder == OWN:
        return endless(opt, order, lambda i: spdl_train(images[i]), opt.batch, spdl_batch)
    make = photographs.train(opt.decoder)
    return endless(opt, order, lambda i: make(images[i], thread_rng()), opt.batch, np.stack)


def jpeg_eval(opt):
    images = records.Records(opt.data)
    order = itertools.cycle(range(len(images)))
    if opt.decoder == OWN:
        return endless(opt, order, lambda i: spdl_evaluate(images[i]), opt.batch, spdl_batch)
    make = photographs.evaluate(opt.decoder)
    return endless(opt, order, lambda i: make(images[i]), opt.batch, np.stack)


def cifar_train(opt):
    images = records.pixels(opt.data)
    return endless(opt, inputs.index_batches(len(images), opt.batch, opt.seed),
                   lambda rows: small_images.augment(images[rows], thread_rng()))


def spdl_small(encoded):
    """(B, 3, 32, 32) uint8 array."""
    packets = [spdl.io.demux_image(image) for image in encoded]
    frames = [spdl.io.decode_packets(image, filter_desc=scaled(image.height, image.width)) for image in packets]
    return spdl_batch(frames).transpose(0, 3, 1, 2)


def cifar_jpeg(opt):
    images = records.Records(opt.data)

    def make(rows):
        encoded = [images[i] for i in rows]
        decoded = (spdl_small(encoded) if opt.decoder == OWN else
                   np.stack([small_images.decode(image, opt.decoder) for image in encoded]))
        return small_images.augment(decoded, thread_rng())

    return endless(opt, inputs.index_batches(len(images), opt.batch, opt.seed), make)


def version(opt):
    own = f"spdl {importlib.metadata.version('spdl')}"
    if opt.decoder == OWN:
        return f"{own}, libavcodec {'.'.join(map(str, spdl.io.utils.get_ffmpeg_versions()['libavcodec']))}"
    return f"{own}, torchvision {torchvision.__version__}"


def more(arg):
    arg.add_argument("--decoder", choices=["torchvision", "pillow", OWN], default="torchvision")


if __name__ == "__main__":
    torch.set_num_threads(1)
    inputs.run("spdl", version, __doc__, {
        "jpeg-train": jpeg_train, "jpeg-eval": jpeg_eval, "cifar-train": cifar_train, "cifar-jpeg": cifar_jpeg}, more)
