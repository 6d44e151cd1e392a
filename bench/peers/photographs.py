"""Decoding and resizing one photograph with torchvision or Pillow: for the peers that bring no decoder of their own.

Both give (224, 224, 3) uint8 arrays. torchvision decodes through libjpeg-turbo and resizes uint8 pixels in vector
code; it is the faster of the two here, so it is the default.
"""
import io

import numpy as np
import torch
from PIL import Image
from torchvision.io import ImageReadMode, decode_jpeg

import inputs


def encoded_tensor(encoded):
    return torch.from_numpy(np.array(encoded))  # a copy: tensors are writable, records are not


def _torch_resize(image, height, width):
    # (3, H, W), channels last in memory, as decode_jpeg leaves it: the fast path of interpolate.
    return torch.nn.functional.interpolate(image[None], size=(height, width), mode="bilinear", antialias=True)[0]


def _torch_train(encoded, rng):
    image = decode_jpeg(encoded_tensor(encoded), mode=ImageReadMode.RGB)
    top, left, height, width = inputs.random_window(image.shape[1], image.shape[2], rng)
    image = _torch_resize(image[:, top:top + height, left:left + width], inputs.CROP, inputs.CROP).permute(1, 2, 0)
    return (image.flip(1) if rng.random() < 0.5 else image).contiguous().numpy()


def _torch_eval(encoded):
    image = decode_jpeg(encoded_tensor(encoded), mode=ImageReadMode.RGB)
    height, width = inputs.eval_size(*image.shape[1:])
    top, left = inputs.eval_corner(height, width)
    image = _torch_resize(image, height, width).permute(1, 2, 0)
    return image[top:top + inputs.CROP, left:left + inputs.CROP].contiguous().numpy()


def _pillow_train(encoded, rng):
    image = Image.open(io.BytesIO(encoded)).convert("RGB")
    top, left, height, width = inputs.random_window(image.height, image.width, rng)
    image = image.resize((inputs.CROP, inputs.CROP), Image.BILINEAR, (left, top, left + width, top + height))
    return np.ascontiguousarray(np.asarray(image)[:, ::-1] if rng.random() < 0.5 else np.asarray(image))


def _pillow_eval(encoded):
    image = Image.open(io.BytesIO(encoded)).convert("RGB")
    height, width = inputs.eval_size(image.height, image.width)
    top, left = inputs.eval_corner(height, width)
    image = np.asarray(image.resize((width, height), Image.BILINEAR))
    return np.ascontiguousarray(image[top:top + inputs.CROP, left:left + inputs.CROP])


def train(decoder):
    """f(encoded, rng): random resized crop and flip."""
    return {"torchvision": _torch_train, "pillow": _pillow_train}[decoder]


def evaluate(decoder):
    """f(encoded): resize 256 and centre crop 224."""
    return {"torchvision": _torch_eval, "pillow": _pillow_eval}[decoder]


def add_decoder(arg):
    arg.add_argument("--decoder", choices=["torchvision", "pillow"], default="torchvision")
