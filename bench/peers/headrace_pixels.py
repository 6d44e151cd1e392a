"""The pixels that Headrace's jpeg-eval delivers, computed again with Pillow and NumPy, and proved by its digest.

Headrace prints the SHA-256 of every batch (`headrace digest`). Here its decode (libjpeg's, through Pillow) and its
resize (16-bit fixed point, see pipeline/operations/machinery/resampler.h) are repeated; where the hash of a batch of one image
equals the printed one, the pixels are Headrace's to the bit, not an estimate of them.
"""
import hashlib
import io
import json
import subprocess

import numpy as np
from PIL import Image

import inputs

WHOLE = 32767  # the sum of an output pixel's weights, and where sums saturate


def _axis(source, target):
    """(first input pixel (target,), weights (target, taps)) of one axis."""
    scale = source / target
    support = max(1.0, scale)
    taps = min(source, int(np.ceil(2 * support)) + 1)
    centers = (np.arange(target) + 0.5) * scale
    first = np.minimum(np.maximum(0, np.floor(centers - support + 0.5).astype(int)), source - taps)
    start = first + 0.5 - centers
    shares = np.maximum(0, 1 - np.abs(start[:, None] + np.arange(taps)) / support)
    total = np.zeros(target)
    for k in range(taps):  # in the order in which it is summed there
        total += shares[:, k]
    weights = (shares * (WHOLE / total)[:, None] + 0.5).astype(np.int32)
    weights[np.arange(target), weights.argmax(1)] += WHOLE - weights.sum(1)
    return first, weights


def _blend(levels, first, weights):
    """Over axis 0 of int32 levels."""
    sums = np.zeros((len(first), *levels.shape[1:]), np.int32)
    for k in range(weights.shape[1]):
        weight = weights[:, k].reshape(-1, *[1] * (levels.ndim - 1))
        sums += (levels[first + k] * weight + (1 << 14)) >> 15
    return np.minimum(sums, WHOLE)


def resized(image, height, width):
    """(H, W, 3) uint8 to (height, width, 3)."""
    rows = _blend(image.astype(np.int32) << 7, *_axis(image.shape[0], height))
    both = _blend(rows.transpose(1, 0, 2), *_axis(image.shape[1], width))
    return np.minimum((both + 64) >> 7, 255).astype(np.uint8).transpose(1, 0, 2)


def evaluated(encoded):
    """resize(256) | center_crop(224)."""
    image = np.asarray(Image.open(io.BytesIO(encoded)).convert("RGB"))
    height, width = inputs.eval_size(*image.shape[:2])
    top, left = inputs.eval_corner(height, width)
    return resized(image, height, width)[top:top + inputs.CROP, left:left + inputs.CROP]


def digest_of(image, label):
    """What `headrace digest` prints of a batch of this one image."""
    sha = hashlib.sha256(b"imageuint8" + str(image.shape).encode())
    sha.update(np.ascontiguousarray(image))
    sha.update(b"labelint64()" + int(label).to_bytes(8, "little"))
    return sha.hexdigest()


def digests(headrace, data, count):
    """The first `count` digests that the command prints of jpeg-eval in batches of one."""
    command = [headrace, "digest", "--pipeline", "jpeg-eval", "--data", str(data), "--global-batch", "1", "--replicas",
               "1", "--epochs", "1", "--threads", "1", "--json", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        found = []
        for line in process.stdout:
            found.append(json.loads(line).get("sha256"))
            if len(found) == count:
                process.kill()
    return found
