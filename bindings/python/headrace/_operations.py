"""The engine's operations. Joined with |, or given to Dataset.map() one after another."""

from collections.abc import Sequence

from . import _native

Operations = _native.Operations


def _numbers(values):
    return [float(value) for value in (values if isinstance(values, Sequence) or hasattr(values, "__iter__") else [values])]


def pad_crop(size=32, pad=4, *, padding="zero"):
    """Pads by `pad` on each side and crops a random size x size window. padding: "zero" or "reflect"."""
    return _native.pad_crop(size, pad, padding)


def flip(probability=0.5, *, alternating=False):
    """Mirrors left-right with this probability. alternating: each two passes in a row show a record both ways."""
    return _native.alternating_flip() if alternating else _native.flip(probability)


def normalize(mean, std):
    """(x / 255 - mean) / std for uint8, (x - mean) / std for float32; float32. One number, or one a channel."""
    return _native.normalize(_numbers(mean), _numbers(std))


def cast(to):
    """Changes the element type; uint8 to float32 keeps the value, float32 to uint8 rounds and saturates."""
    return _native.cast(to)


def to_layout(layout):
    """(H, W, C) to (C, H, W) and back: "channels_first" or "channels_last"."""
    return _native.to_layout(layout)


def flatten():
    """Any shape to one axis."""
    return _native.flatten()


def random_resized_crop(size=224, *, area=(0.08, 1.0), ratio=(0.75, 4 / 3)):
    """A window of random area and aspect ratio, resized (antialiased) to size x size."""
    return _native.random_resized_crop(size, *area, *ratio)


def resize(size):
    """The shorter side to `size` (antialiased), aspect kept."""
    return _native.resize(size)


def center_crop(size):
    """The middle size x size, as torchvision cuts it."""
    return _native.center_crop(size)


def color_jitter(*, brightness=0.0, contrast=0.0, saturation=0.0, hue=0.0):
    """Changes the colours of an RGB image by random amounts within torchvision's ranges."""
    return _native.color_jitter(brightness, contrast, saturation, hue)


def brightness_contrast(*, brightness=0.0, contrast=0.0):
    """(x + b) c for float32 images whose mean is 0: b and c drawn for each record."""
    return _native.brightness_contrast(brightness, contrast)


def cutout(size=8, *, fill=0.0):
    """Sets a square around a random pixel to a value: one number, or one a channel."""
    return _native.cutout(size, _numbers(fill))


def one_hot(classes, *, smoothing=0.0):
    """The label as a vector of float32, smoothed."""
    return _native.one_hot(classes, smoothing)


def mixup(alpha=0.2, *, probability=1.0):
    """Behind batch(): blends each example and its label with a partner's. Needs one_hot() labels."""
    return _native.mixup(alpha, probability)


def cutmix(alpha=1.0, *, probability=1.0):
    """Behind batch(): pairs of examples exchange a rectangle, labels are blended by the area left."""
    return _native.cutmix(alpha, probability)
