# What stubgen cannot know of the extension: what headrace/_batch.py adds to its classes, and what they inherit.

_native\.__prefix__$:
    \import collections.abc
    \import os
    \import typing
    __version__: str

_native\.train\.__prefix__$:
    \import collections.abc
    \import os
    \import typing

_native\.operations\.__prefix__$:
    \import collections.abc
    \import headrace._native
    \import numpy.typing
    \import typing

Tensor\.__suffix__$:
    \from numpy.typing import NDArray
    \from typing import Any
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def numpy(self) -> NDArray[Any]:
        """As a NumPy array of the batch's memory; of a GPU's batch a BufferError says what to do."""
    def torch(self) -> Any:
        """As a torch.Tensor of the batch's memory."""
    def jax(self) -> Any:
        """As a jax.Array of the batch's memory, where JAX can take it as it is."""
    def tensorflow(self) -> Any:
        """As a tf.Tensor of the batch's memory."""
    def cupy(self) -> Any:
        """As a cupy.ndarray of the batch's memory."""

Batch\.(__contains__|keys|values|items|get)$:

Batch\.__suffix__$:
    \from numpy import uint64
    \from headrace._batch import BadRecord
    @property
    def records(self) -> NDArray[uint64]:
        """Each example's number in the source."""
    @property
    def bad_records(self) -> list[BadRecord]:
        """Records of the global batch that could not be used."""
    def text(self, field: str, errors: str = "strict") -> list[str]:
        """A field of text as strings: its bytes up to the zeros that fill it up, or as long as <field>_length says."""
    def numpy(self) -> dict[str, NDArray[Any]]:
        """All fields as NumPy arrays of the batch's memory: no copy, and they keep it alive."""
    def torch(self) -> dict[str, Any]: ...
    def jax(self) -> dict[str, Any]: ...
    def tensorflow(self) -> dict[str, Any]: ...
    def cupy(self) -> dict[str, Any]: ...

FitControl\.model$:
    \from headrace.train import Model
    @property
    def model(self) -> Model:
        """The model that is trained."""
