"""The plans that the trainer takes."""

from __future__ import annotations

from typing import Any

from ._dataset import Dataset
from ._errors import config_error


def plan_of(dataset: Dataset | None) -> Any:
    """The native plan of a dataset that the trainer can run; None of None."""
    if dataset is None:
        return None
    if not isinstance(dataset, Dataset):
        raise config_error(f"a {type(dataset).__name__} is not a headrace.Dataset",
                           "make one with headrace.open(), from_arrays(), from_function() or from_torch_dataset()")
    if dataset._functions:
        raise config_error("the trainer cannot call Python functions of whole batches",
                           "use functions of samples, before batch(), or operations of the engine")
    return dataset._native
