"""The fields of records, as they are declared, and between Python and the extension."""

from __future__ import annotations

import os
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ._errors import config_error

Path: TypeAlias = str | os.PathLike[str]
DTypeName: TypeAlias = Literal["uint8", "int32", "int64", "float16", "bfloat16", "float32"]
Shape: TypeAlias = tuple[int | None, ...]

MAX_FIELDS = 64
_DTYPES = ("uint8", "int32", "int64", "float16", "bfloat16", "float32")
# What NumPy's other types become, as in .npy files.
_WIDER = {"bool": "uint8", "int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "uint64": "int64",
          "float64": "float32"}


class Field(NamedTuple):
    """One named field of a record: its element type and shape. An extent of None differs from record to record.
    `layout` is that of an image where the plan says it: "channels_first" or "channels_last"."""

    name: str
    dtype: str
    shape: Shape
    encoded: bool = False  # the bytes of a JPEG or PNG file
    layout: Literal["channels_first", "channels_last"] | None = None

    def native(self) -> Any:
        shape = [-1 if extent is None else int(extent) for extent in self.shape]
        return self.name, self.dtype, shape, self.encoded, self.layout


# What names a field's type where one has to be declared: "int64" (a scalar), ("float32", (32, 32, 3)), "image" (the
# bytes of a JPEG or PNG file), or a Field, whose name is ignored.
FieldLike: TypeAlias = str | tuple[str, Shape] | Field


def from_native(field: Any) -> Field:
    name, dtype, shape, encoded, layout = field
    return Field(name, dtype, tuple(None if extent < 0 else extent for extent in shape), encoded, layout)


def encoded_image(name: str) -> Field:
    return Field(name, "uint8", (None, None, 3), True)


def declared(name, what):
    """The field that "int64", ("float32", (32, 32, 3)), "image" or a Field declares."""
    if isinstance(what, Field):
        return what._replace(name=name)
    if what == "image":
        return encoded_image(name)
    dtype, shape = (what, ()) if isinstance(what, (str, type, np.dtype)) else what
    return Field(name, dtype_name(dtype, name), tuple(shape))


def dtype_name(dtype, field):
    """The engine's type for one of NumPy's; bool and others become the next wider one there is."""
    name = dtype if dtype == "bfloat16" else np.dtype(dtype).name
    name = _WIDER.get(name, name)
    if field == "label" and name == "int32":
        name = "int64"
    if name not in _DTYPES:
        raise config_error(f"field '{field}' has elements of type {name}", f"types: {', '.join(_DTYPES)}")
    return name


def numpy_dtype(field):
    if field.dtype == "bfloat16":
        raise config_error(f"field '{field.name}': NumPy has no bfloat16", "use float32 here")
    return np.dtype(field.dtype)


def fits(shape, field):
    return len(shape) == len(field.shape) and all(want in (None, have) for have, want in zip(shape, field.shape))


def shape_text(shape):
    return "(" + ", ".join("?" if extent is None else str(extent) for extent in shape) + ")"
