"""The engine's operations. Joined with |, or given to Dataset.map() one after another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

from ._errors import config_error
from ._fields import DTypeName
from ._native import Operations, operation, operation_doc

Interpolation: TypeAlias = Literal["nearest", "bilinear"]


def _numbers(values: Any) -> list[float]:
    return [float(value) for value in (values if isinstance(values, Iterable) else [values])]


def _several(name: str, values: Any, *counts: int) -> Sequence[Any]:
    """The values, as many as one of `counts`."""
    if not hasattr(values, "__len__") or isinstance(values, str) or len(values) not in counts:
        wanted = " or ".join(map(str, counts))
        raise config_error(f"{name} = {values!r} is not {wanted} numbers", f"give a list of {wanted}")
    return values


def _range(name: str, value: float | Sequence[float]) -> Sequence[float]:
    return (value, value) if isinstance(value, (int, float)) else _several(name, value, 2)


def _around_zero(name: str, value: float | Sequence[float], *counts: int) -> Sequence[float]:
    return (-value, value) if isinstance(value, (int, float)) else _several(name, value, 2, *counts)


def pad_crop(size: int = 32, pad: int = 4, *, padding: Literal["zero", "reflect"] = "zero") -> Operations:
    """Pads by `pad` on each side and crops a random size x size window."""
    return operation("pad_crop", size=size, pad=pad, padding=padding)


def flip(probability: float = 0.5, *, alternating: bool = False) -> Operations:
    """Mirrors left-right with this probability. alternating: each two passes in a row show a record both ways."""
    return operation("flip", probability=probability, alternating=alternating)


def vertical_flip(probability: float = 0.5) -> Operations:
    """Turns upside down with this probability."""
    return operation("vertical_flip", probability=probability)


def random_rotation(degrees: float | Sequence[float], *, interpolation: Interpolation = "nearest",
                    fill: float | Sequence[float] = 0.0, probability: float = 1.0) -> Operations:
    """Turns a uint8 image around its middle, counter-clockwise: by up to `degrees` either way, or (min, max)."""
    return operation("random_rotation", degrees=_around_zero("degrees", degrees), interpolation=interpolation,
                     fill=_numbers(fill), probability=probability)


def random_affine(degrees: float | Sequence[float] = 0.0, *, translate: Sequence[float] = (0.0, 0.0),
                  scale: Sequence[float] = (1.0, 1.0), shear: float | Sequence[float] = 0.0,
                  interpolation: Interpolation = "nearest", fill: float | Sequence[float] = 0.0,
                  probability: float = 1.0) -> Operations:
    """Shears a uint8 image, turns it clockwise, scales and moves it, as torchvision's RandomAffine.

    degrees: up to, or (min, max). translate: parts of width and height. shear: degrees along x up to, or (min, max), or
    both of x and both of y. fill: one number, or one a channel.
    """
    shears = [*_around_zero("shear", shear, 4), 0.0, 0.0][:4]
    return operation("random_affine", degrees=_around_zero("degrees", degrees), translate=_several("translate", translate, 2),
                     scale=_several("scale", scale, 2), shear=shears, interpolation=interpolation, fill=_numbers(fill),
                     probability=probability)


def normalize(mean: float | Sequence[float] | NDArray[Any], std: float | Sequence[float] | NDArray[Any]) -> Operations:
    """(x / 255 - mean) / std for uint8, whose mean and std are at most 1, (x - mean) / std for float32; float32. One
    number, or one a channel."""
    return operation("normalize", mean=_numbers(mean), std=_numbers(std))


def cast(to: DTypeName) -> Operations:
    """Changes the element type; uint8 to float32 keeps the value, float32 to uint8 rounds and saturates."""
    return operation("cast", to=to)


def to_layout(layout: Literal["channels_first", "channels_last"]) -> Operations:
    """(H, W, C) to (C, H, W) and back: "channels_first" or "channels_last"."""
    if layout not in ("channels_first", "channels_last"):
        raise config_error(f'layout = "{layout}" is not known', 'one of "channels_first", "channels_last"')
    return operation("to_layout", layout=layout)


def layout_is(layout: Literal["channels_first", "channels_last"], *, field: str = "image") -> Operations:
    """Says where the channels of images are, and changes nothing: arrays and what functions make are (H, W, C) where
    nothing else is said."""
    return operation("layout_is", layout=layout, field=field)


def flatten() -> Operations:
    """Any shape to one axis."""
    return operation("flatten")


def random_resized_crop(size: int = 224, *, area: tuple[float, float] = (0.08, 1.0),
                        ratio: tuple[float, float] = (0.75, 4 / 3)) -> Operations:
    """A window of random area and aspect ratio, resized (antialiased) to size x size."""
    return operation("random_resized_crop", size=size, area=_several("area", area, 2), ratio=_several("ratio", ratio, 2))


def resize(size: int | tuple[int, int]) -> Operations:
    """The shorter side to `size`, aspect kept; or to (height, width), whatever the aspect. Antialiased."""
    if not hasattr(size, "__len__"):
        return operation("resize", size=size)
    height, width = _several("size", size, 2)
    return operation("resize_to", height=height, width=width)


def center_crop(size: int) -> Operations:
    """The middle size x size, as torchvision cuts it."""
    return operation("center_crop", size=size)


def color_jitter(*, brightness: float = 0.0, contrast: float = 0.0, saturation: float = 0.0, hue: float = 0.0,
                 probability: float = 1.0) -> Operations:
    """Changes the colours of an RGB image by random amounts within torchvision's ranges, with this probability."""
    return operation("color_jitter", brightness=brightness, contrast=contrast, saturation=saturation, hue=hue,
                     probability=probability)


def grayscale(channels: Literal[1, 3] = 3, *, probability: float = 1.0) -> Operations:
    """The grey of an RGB image, 0.299 R + 0.587 G + 0.114 B: in three channels, or in one."""
    return operation("grayscale", channels=channels, probability=probability)


def gaussian_blur(kernel_size: int = 23, *, sigma: float | Sequence[float] = (0.1, 2.0),
                  probability: float = 1.0) -> Operations:
    """Blurs over kernel_size x kernel_size pixels; sigma is drawn from the range, or is one number."""
    return operation("gaussian_blur", kernel_size=kernel_size, sigma=_range("sigma", sigma), probability=probability)


def invert(probability: float = 0.5) -> Operations:
    """255 - x of a uint8 image, with this probability."""
    return operation("invert", probability=probability)


def posterize(bits: int, *, probability: float = 0.5) -> Operations:
    """Keeps the highest bits of each level of a uint8 image."""
    return operation("posterize", bits=bits, probability=probability)


def solarize(threshold: float = 128, *, probability: float = 0.5) -> Operations:
    """255 - x where x is at least the threshold, of a uint8 image."""
    return operation("solarize", threshold=threshold, probability=probability)


def adjust_sharpness(factor: float, *, probability: float = 0.5) -> Operations:
    """0 blurs a uint8 image, 1 leaves it alone, more sharpens it; as Pillow's ImageEnhance.Sharpness."""
    return operation("adjust_sharpness", factor=factor, probability=probability)


def autocontrast(probability: float = 0.5) -> Operations:
    """Spreads each channel of a uint8 image until it reaches from 0 to 255."""
    return operation("autocontrast", probability=probability)


def equalize(probability: float = 0.5) -> Operations:
    """Spreads each channel of a uint8 image by how often its levels occur."""
    return operation("equalize", probability=probability)


def rand_augment(operations: int = 2, magnitude: int = 9, *, bins: int = 31, interpolation: Interpolation = "nearest",
                 fill: float | Sequence[float] = 0.0) -> Operations:
    """As many of torchvision's 14 operations on a uint8 RGB image, drawn, of the magnitude's number among the bins."""
    return operation("rand_augment", operations=operations, magnitude=magnitude, bins=bins,
                     interpolation=interpolation, fill=_numbers(fill))


def trivial_augment_wide(bins: int = 31, *, interpolation: Interpolation = "nearest",
                         fill: float | Sequence[float] = 0.0) -> Operations:
    """One of torchvision's 14 operations on a uint8 RGB image, drawn with its magnitude."""
    return operation("trivial_augment_wide", bins=bins, interpolation=interpolation, fill=_numbers(fill))


def per_image_standardization() -> Operations:
    """(x - mean) / max(deviation, 1 / sqrt(n)) over all n numbers of an image; float32."""
    return operation("per_image_standardization")


def brightness_contrast(*, brightness: float = 0.0, contrast: float = 0.0) -> Operations:
    """(x + b) c for float32 images whose mean is 0: b and c drawn for each record."""
    return operation("brightness_contrast", brightness=brightness, contrast=contrast)


def cutout(size: int = 8, *, fill: float | Sequence[float] = 0.0) -> Operations:
    """Sets a square around a random pixel to a value: one number, or one a channel."""
    return operation("cutout", size=size, fill=_numbers(fill))


def random_erasing(probability: float = 0.5, *, area: Sequence[float] = (0.02, 0.33),
                   ratio: Sequence[float] = (0.3, 3.3), fill: float | Sequence[float] = 0.0) -> Operations:
    """Sets a rectangle of random area and aspect ratio to a value, with this probability."""
    return operation("random_erasing", probability=probability, area=_several("area", area, 2),
                     ratio=_several("ratio", ratio, 2), fill=_numbers(fill))


def one_hot(classes: int, *, smoothing: float = 0.0) -> Operations:
    """The label as a vector of float32, smoothed."""
    return operation("one_hot", classes=classes, smoothing=smoothing)


def mixup(alpha: float = 0.2, *, probability: float = 1.0) -> Operations:
    """After batch(): blends each example and its label with a partner's. Needs one_hot() labels."""
    return operation("mixup", alpha=alpha, probability=probability)


def cutmix(alpha: float = 1.0, *, probability: float = 1.0) -> Operations:
    """After batch(): pairs of examples exchange a rectangle, labels are blended by the area left."""
    return operation("cutmix", alpha=alpha, probability=probability)


def _explain(function: Any) -> None:
    """Adds the sentences of the engine's options to the docstring of a function that has them as arguments."""
    names = function.__code__.co_varnames[:function.__code__.co_argcount + function.__code__.co_kwonlyargcount]
    lines = [line for line in operation_doc(function.__name__).splitlines() if line.partition(":")[0] in names]
    function.__doc__ = "\n".join([function.__doc__, "", *lines]) if lines else function.__doc__


for _function in (pad_crop, flip, vertical_flip, random_rotation, random_affine, normalize, cast, to_layout, layout_is,
                  random_resized_crop, resize, center_crop, color_jitter, grayscale, gaussian_blur, invert, posterize, solarize,
                  adjust_sharpness, autocontrast, equalize, rand_augment, trivial_augment_wide, brightness_contrast, cutout,
                  random_erasing, one_hot, mixup, cutmix):
    _explain(_function)
