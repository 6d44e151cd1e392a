"""The engine's operations. Joined with |, or given to Dataset.map() one after another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from numpy.typing import NDArray

from ._errors import config_error
from ._fields import DTypeName
from ._native import Operations, operation


def _numbers(values: Any) -> list[float]:
    return [float(value) for value in (values if isinstance(values, Iterable) else [values])]


def pad_crop(size: int = 32, pad: int = 4, *, padding: Literal["zero", "reflect"] = "zero") -> Operations:
    """Pads by `pad` on each side and crops a random size x size window. padding: "zero" or "reflect"."""
    return operation("pad_crop", size=size, pad=pad, padding=padding)


def flip(probability: float = 0.5, *, alternating: bool = False) -> Operations:
    """Mirrors left-right with this probability. alternating: each two passes in a row show a record both ways."""
    return operation("flip", draw="alternating") if alternating else operation("flip", probability=probability)


def normalize(mean: float | Sequence[float] | NDArray[Any], std: float | Sequence[float] | NDArray[Any]) -> Operations:
    """(x / 255 - mean) / std for uint8, (x - mean) / std for float32; float32. One number, or one a channel."""
    return operation("normalize", mean=_numbers(mean), std=_numbers(std))


def cast(to: DTypeName) -> Operations:
    """Changes the element type; uint8 to float32 keeps the value, float32 to uint8 rounds and saturates."""
    return operation("cast", to=to)


def to_layout(layout: Literal["channels_first", "channels_last"]) -> Operations:
    """(H, W, C) to (C, H, W) and back: "channels_first" or "channels_last"."""
    if layout not in ("channels_first", "channels_last"):
        raise config_error(f'layout = "{layout}" is not known', 'one of "channels_first", "channels_last"')
    return operation("to_layout", to=layout)


def flatten() -> Operations:
    """Any shape to one axis."""
    return operation("flatten")


def random_resized_crop(size: int = 224, *, area: tuple[float, float] = (0.08, 1.0),
                        ratio: tuple[float, float] = (0.75, 4 / 3)) -> Operations:
    """A window of random area and aspect ratio, resized (antialiased) to size x size."""
    (min_area, max_area), (min_ratio, max_ratio) = area, ratio
    return operation("random_resized_crop", size=size, min_area=min_area, max_area=max_area, min_ratio=min_ratio,
                     max_ratio=max_ratio)


def resize(size: int | tuple[int, int]) -> Operations:
    """The shorter side to `size`, aspect kept; or to (height, width), whatever the aspect. Antialiased."""
    if isinstance(size, int):
        return operation("resize", size=size)
    height, width = size
    return operation("resize_to", height=height, width=width)


def center_crop(size: int) -> Operations:
    """The middle size x size, as torchvision cuts it."""
    return operation("center_crop", size=size)


def color_jitter(*, brightness: float = 0.0, contrast: float = 0.0, saturation: float = 0.0,
                 hue: float = 0.0) -> Operations:
    """Changes the colours of an RGB image by random amounts within torchvision's ranges."""
    return operation("color_jitter", brightness=brightness, contrast=contrast, saturation=saturation, hue=hue)


def brightness_contrast(*, brightness: float = 0.0, contrast: float = 0.0) -> Operations:
    """(x + b) c for float32 images whose mean is 0: b and c drawn for each record."""
    return operation("brightness_contrast", brightness=brightness, contrast=contrast)


def cutout(size: int = 8, *, fill: float | Sequence[float] = 0.0) -> Operations:
    """Sets a square around a random pixel to a value: one number, or one a channel."""
    return operation("cutout", size=size, fill=_numbers(fill))


def one_hot(classes: int, *, smoothing: float = 0.0) -> Operations:
    """The label as a vector of float32, smoothed."""
    return operation("one_hot", classes=classes, smoothing=smoothing)


def mixup(alpha: float = 0.2, *, probability: float = 1.0) -> Operations:
    """Behind batch(): blends each example and its label with a partner's. Needs one_hot() labels."""
    return operation("mixup", alpha=alpha, probability=probability)


def cutmix(alpha: float = 1.0, *, probability: float = 1.0) -> Operations:
    """Behind batch(): pairs of examples exchange a rectangle, labels are blended by the area left."""
    return operation("cutmix", alpha=alpha, probability=probability)
