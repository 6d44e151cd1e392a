"""Batches and tensors as other frameworks' arrays, without a copy. What is native gets these methods here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ._native import Batch, Tensor


class BadRecord(NamedTuple):
    """A record that could not be used, and what stands in its place."""

    source: str
    record: int | None
    name: str
    offset: int | None
    operation: str
    cause: str
    substitute: int | None
    row: int


def _numpy(self):
    """As a NumPy array of the batch's memory; of a GPU's batch a BufferError says what to do."""
    return np.asarray(memoryview(self))


def _array(tensor, dtype=None, copy=None):
    array = _numpy(tensor)
    if dtype is not None and np.dtype(dtype) != array.dtype:
        if copy is False:
            raise ValueError(f"{array.dtype} does not become {np.dtype(dtype)} without a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


def _torch(self):
    """As a torch.Tensor of the batch's memory."""
    import torch
    return torch.from_dlpack(self)


def _jax(self):
    """As a jax.Array of the batch's memory, where JAX can take it as it is."""
    import jax.dlpack
    return jax.dlpack.from_dlpack(self)


def _tensorflow(self):
    """As a tf.Tensor of the batch's memory."""
    import tensorflow as tf
    return tf.experimental.dlpack.from_dlpack(self.__dlpack__())


def _cupy(self):
    """As a cupy.ndarray of the batch's memory."""
    import cupy
    return cupy.from_dlpack(self)


def _tensor_repr(tensor):
    return f"Tensor({tensor.dtype} {tensor.shape}, {tensor.device})"


def _records(batch):
    """Each example's number in the source."""
    return np.frombuffer(batch._records(), dtype=np.uint64)


def _bad_records(batch):
    """Records of the global batch that could not be used."""
    return [BadRecord(*bad) for bad in batch._bad_records()]


def _text(batch, field, errors="strict"):
    """A field of text as strings: its bytes up to the zeros that fill it up, or as long as <field>_length or, of a ragged
    one, <field>_offsets say."""
    rows = _numpy(batch[field])
    if field in batch.ragged and rows.dtype == np.uint8 and rows.ndim == 1:
        offsets = _numpy(batch[f"{field}_offsets"])
        return [bytes(rows[begin:end]).decode(errors=errors) for begin, end in zip(offsets, offsets[1:])]
    if rows.dtype != np.uint8 or rows.ndim != 2:
        raise TypeError(f"field '{field}' is no text: {rows.dtype} of {rows.shape[1:]} a record, not uint8 of (n)")
    if f"{field}_length" in batch:
        return [bytes(row[:length]).decode(errors=errors) for row, length in zip(rows, _numpy(batch[f"{field}_length"]))]
    return [bytes(row).rstrip(b"\0").decode(errors=errors) for row in rows]


def _dict_of(name, convert):
    def method(self):
        return {field: convert(tensor) for field, tensor in self.items()}

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"All fields as arrays of {name}, of the batch's memory: no copy, and they keep it alive."
    return method


for _name, _convert in {"numpy": _numpy, "torch": _torch, "jax": _jax, "tensorflow": _tensorflow, "cupy": _cupy}.items():
    setattr(Tensor, _name, _convert)
    setattr(Batch, _name, _dict_of(_name, _convert))
for _kind, _name, _member in [(Tensor, "__array__", _array), (Tensor, "__repr__", _tensor_repr),
                              (Batch, "text", _text), (Batch, "records", property(_records)), (Batch, "bad_records", property(_bad_records))]:
    setattr(_kind, _name, _member)
Mapping.register(Batch)
