"""Batches of 32x32 images with NumPy and PyTorch: for the peers that have no such operation on batches.

Whole batches at once; input_torch.py --per-sample is the other way, image by image, to compare.
"""
import io

import numpy as np
import torch
from PIL import Image
from torchvision.io import ImageReadMode, decode_jpeg

import inputs

_MEAN, _STD = (torch.tensor(values).view(3, 1, 1) for values in (inputs.CIFAR_MEAN, inputs.CIFAR_STD))
_SCALE, _SHIFT = 1 / (255 * _STD), _MEAN / _STD


def augment(images, rng):
    """Zero-pad 4, crop 32, flip, normalise: (B, 3, 32, 32) uint8 array to float32 tensor of the same shape."""
    count, channels, side, _ = images.shape
    whole = side + 2 * inputs.PAD
    padded = np.zeros((count, channels, whole, whole), np.uint8)
    padded[:, :, inputs.PAD:inputs.PAD + side, inputs.PAD:inputs.PAD + side] = images
    windows = np.lib.stride_tricks.sliding_window_view(padded, (side, side), (2, 3)).transpose(0, 2, 3, 1, 4, 5)
    top, left = rng.integers(0, 2 * inputs.PAD + 1, (2, count))
    taken = windows[np.arange(count), top, left]
    flipped = rng.random(count) < 0.5
    taken[flipped] = taken[flipped][..., ::-1]
    return torch.from_numpy(taken).float().mul_(_SCALE).sub_(_SHIFT)


def _by_torch(encoded):
    return decode_jpeg(torch.from_numpy(np.array(encoded)), mode=ImageReadMode.RGB).numpy()


def _by_pillow(encoded):
    return np.asarray(Image.open(io.BytesIO(encoded)).convert("RGB")).transpose(2, 0, 1)


DECODERS = {"torchvision": _by_torch, "pillow": _by_pillow}


def decode(encoded, decoder):
    """(3, 32, 32) uint8 array."""
    return DECODERS[decoder](encoded)
