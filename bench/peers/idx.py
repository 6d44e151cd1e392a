"""MNIST's IDX files, plain or gzip, as NumPy arrays: for the peers."""
import gzip
import pathlib

import numpy as np


def read(folder, stem):
    folder = pathlib.Path(folder)
    path = next(p for p in (folder / stem, folder / (stem + ".gz")) if p.exists())
    raw = (gzip.open if path.suffix == ".gz" else open)(path, "rb").read()
    rank = raw[3]
    shape = np.frombuffer(raw, ">u4", rank, 4)
    return np.frombuffer(raw, np.uint8, -1, 4 + 4 * rank).reshape(shape)


def mnist(folder):
    """(train images (60000, 784) f32 in [0, 1], labels i64, test images, labels)."""
    scale = lambda images: images.reshape(len(images), -1).astype(np.float32) / 255
    return (scale(read(folder, "train-images-idx3-ubyte")), read(folder, "train-labels-idx1-ubyte").astype(np.int64),
            scale(read(folder, "t10k-images-idx3-ubyte")), read(folder, "t10k-labels-idx1-ubyte").astype(np.int64))
