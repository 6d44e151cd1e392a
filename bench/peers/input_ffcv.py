#!/usr/bin/env python3
"""Input workloads in FFCV: its loader, compiled by Numba for N threads of one process, two batches ahead.

Images lie in FFCV's own file (.beton), mapped into memory: photographs and cifar-jpeg as the JPEGs they are (FFCV's
writer would compress them again: other pixels), cifar-train as raw pixels. Photographs: its decoders that crop and
resize, then its flip. CIFAR: its simple decoder, translation by up to 4 pixels, flip, table look-up to float, and a
copy to channels first; --channels-last leaves that copy out, which is what FFCV is made for.
Its thread of an epoch computes; with N = 1 it is the only one. An epoch is many passes, in a new order each, so no
pass ends with the threads idle.
"""
import importlib.metadata
import io
import os

import numpy as np
import torch
from ffcv.fields import RGBImageField
from ffcv.fields.rgb_image import (IMAGE_MODES, CenterCropRGBImageDecoder, RandomResizedCropRGBImageDecoder,
                                   SimpleRGBImageDecoder)
from ffcv.loader import Loader, OrderOption
from ffcv.reader import Reader
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, RandomTranslate, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter
from PIL import Image

import inputs
import records

IMAGES_AN_EPOCH = 2_000_000


def keep(destination, image, malloc):
    """What RGBImageField(write_mode='jpg').encode does, for an image that is compressed already: its bytes are kept."""
    destination["mode"] = IMAGE_MODES["jpg"]
    destination["width"], destination["height"] = Image.open(io.BytesIO(image)).size
    destination["data_ptr"], storage = malloc(image.nbytes)
    storage[:] = image


def jpeg_field():
    field = RGBImageField(write_mode="jpg")
    field.encode = keep
    return field


class Column:
    """An indexable data set with one field, as the writer wants it."""

    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return (self.images[i],)


def write(images, field, file):
    DatasetWriter(str(file), {"image": field}, num_workers=os.cpu_count()).from_indexed_dataset(Column(images))


def jpegs(data):
    images = records.Records(data)
    return records.made_once(data, "ffcv-jpegs", lambda place: write(images, jpeg_field(), place / "images.beton"))


def pixels(data):
    def make(place):
        images = np.ascontiguousarray(records.pixels(data).transpose(0, 2, 3, 1))
        write(images, RGBImageField(write_mode="raw"), place / "images.beton")

    return records.made_once(data, "ffcv-pixels", make)


def endless(opt, folder, steps, shuffled=True):
    file = str(folder / "images.beton")
    count = int(Reader(file).num_samples)
    rng = np.random.default_rng(opt.seed)
    passes = -(-IMAGES_AN_EPOCH // count)
    indices = np.concatenate([rng.permutation(count) if shuffled else np.arange(count) for _ in range(passes)])
    loader = Loader(file, batch_size=opt.batch, num_workers=opt.threads, order=OrderOption.SEQUENTIAL, os_cache=True,
                    indices=indices.astype(np.uint64), pipelines={"image": steps}, drop_last=True, batches_ahead=2)
    while True:
        epoch = iter(loader)
        try:
            for batch, in epoch:
                yield batch
        finally:
            epoch.close()
            epoch.join()


def jpeg_train(opt):
    decode = RandomResizedCropRGBImageDecoder((inputs.CROP, inputs.CROP), scale=inputs.AREA, ratio=inputs.RATIO)
    return endless(opt, jpegs(opt.data), [decode, RandomHorizontalFlip(), ToTensor()])


def jpeg_eval(opt):
    decode = CenterCropRGBImageDecoder((inputs.CROP, inputs.CROP), ratio=inputs.CROP / inputs.RESIZE)
    return endless(opt, jpegs(opt.data), [decode, ToTensor()], shuffled=False)


def augmented(opt):
    mean, std = (255 * np.array(values) for values in (inputs.CIFAR_MEAN, inputs.CIFAR_STD))
    return [SimpleRGBImageDecoder(), RandomTranslate(inputs.PAD), RandomHorizontalFlip(),
            NormalizeImage(mean, std, np.float32), ToTensor(), ToTorchImage(channels_last=opt.channels_last)]


def more(arg):
    arg.add_argument("--channels-last", action="store_true", help="CIFAR: channels last in memory")


if __name__ == "__main__":
    torch.set_num_threads(1)
    version = f"ffcv {importlib.metadata.version('ffcv')}, numba {importlib.metadata.version('numba')}"
    inputs.run("ffcv", version, __doc__, {
        "jpeg-train": jpeg_train, "jpeg-eval": jpeg_eval,
        "cifar-train": lambda opt: endless(opt, pixels(opt.data), augmented(opt)),
        "cifar-jpeg": lambda opt: endless(opt, jpegs(opt.data), augmented(opt))}, more)
