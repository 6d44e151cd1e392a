#!/usr/bin/env python3
"""Input workloads in NVIDIA DALI, CPU operators alone (device_id None), num_threads N, two batches ahead.

Photographs: the file reader on unpacked files (mapped into memory) and the decoder that is fused with the random
crop, then an antialiased linear resize. CIFAR in memory comes through external_source, a batch a call, uncopied.
The thread that calls run() waits.
"""
import numpy as np
import nvidia.dali as dali
from nvidia.dali import fn, pipeline_def, types

import inputs
import records

SHIFT = [255 * value for value in inputs.CIFAR_MEAN]
SCALE = [255 * value for value in inputs.CIFAR_STD]


def endless(pipeline):
    pipeline.build()
    while True:
        yield pipeline.run()[0].as_tensor()


def defined(opt):
    return pipeline_def(batch_size=opt.batch, num_threads=opt.threads, device_id=None, seed=opt.seed + 1,
                        prefetch_queue_depth=2)


def read(opt, shuffled=True):
    paths, labels = records.files(opt.data)
    encoded, _ = fn.readers.file(files=paths, labels=labels, random_shuffle=shuffled,
                                 initial_fill=min(len(paths), 4096), name="reader")
    return encoded


def jpeg_train(opt):
    @defined(opt)
    def pipeline():
        images = fn.decoders.image_random_crop(read(opt), device="cpu", output_type=types.RGB,
                                               random_area=list(inputs.AREA), num_attempts=10,
                                               random_aspect_ratio=list(inputs.RATIO))
        images = fn.resize(images, size=[inputs.CROP, inputs.CROP], interp_type=types.INTERP_LINEAR, antialias=True)
        return fn.flip(images, horizontal=fn.random.coin_flip())

    return endless(pipeline())


def jpeg_eval(opt):
    @defined(opt)
    def pipeline():
        encoded = read(opt, shuffled=False)
        extents = fn.peek_image_shape(encoded)[:2]
        # resize_shorter rounds the longer side and crop rounds half a pixel up: this rounds the side down and half a
        # pixel to even, as Headrace.
        size = inputs.RESIZE * extents // fn.reductions.min(extents)
        images = fn.decoders.image(encoded, device="cpu", output_type=types.RGB)
        images = fn.resize(images, size=fn.cast(size, dtype=types.FLOAT), interp_type=types.INTERP_LINEAR,
                           antialias=True)
        beside = size - inputs.CROP
        start = fn.cast((beside + ((beside & 3) == 3)) // 2, dtype=types.INT32)
        return fn.slice(images, start=start, shape=[inputs.CROP, inputs.CROP], axis_names="HW")

    return endless(pipeline())


def augmented(images):
    offsets = [float(offset) for offset in range(-inputs.PAD, inputs.PAD + 1)]
    start = fn.cast(fn.random.uniform(values=offsets, shape=[2]), dtype=types.INT32)
    images = fn.slice(images, start=start, shape=[32, 32], axis_names="HW", out_of_bounds_policy="pad", fill_values=0)
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mean=SHIFT, std=SCALE,
                                    mirror=fn.random.coin_flip())


def cifar_train(opt):
    images = np.ascontiguousarray(records.pixels(opt.data).transpose(0, 2, 3, 1))
    orders = inputs.index_batches(len(images), opt.batch, opt.seed)

    @defined(opt)
    def pipeline():
        batch = fn.external_source(lambda: images[next(orders)], batch=True, layout="HWC", no_copy=True)
        return augmented(batch)

    return endless(pipeline())


def cifar_jpeg(opt):
    @defined(opt)
    def pipeline():
        return augmented(fn.decoders.image(read(opt), device="cpu", output_type=types.RGB))

    return endless(pipeline())


if __name__ == "__main__":
    inputs.run("dali", f"dali {dali.__version__}", __doc__, {
        "jpeg-train": jpeg_train, "jpeg-eval": jpeg_eval, "cifar-train": cifar_train, "cifar-jpeg": cifar_jpeg})
