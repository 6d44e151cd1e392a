"""What the trainer's runs give."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._show import history_html, history_text


class History(dict[str, list[float]]):
    """What a fit saw: a list a metric, an entry an epoch. pandas.DataFrame(history) is a table of it."""

    @property
    def history(self) -> dict[str, list[float]]:
        """The same, as Keras has it."""
        return self

    @property
    def epochs(self) -> int:
        return len(self["loss"]) if "loss" in self else 0

    def __missing__(self, name: str) -> list[float]:
        raise KeyError(f"no '{name}'; there are {', '.join(sorted(self))}")

    def __repr__(self) -> str:
        return history_text(self)

    def _repr_html_(self) -> str:
        return history_html(self)


class Predictions(NamedTuple):
    """Results in the order in which the dataset gives its records."""

    values: NDArray[np.float32]  # (examples, ...)
    records: NDArray[np.uint64]  # source record of each example
    others: dict[str, NDArray[np.float32]]  # of a net of several outputs: those after the first, by layer
    names: list[str] | None = None  # of the examples, such as files or members of archives; None unless asked for


class ClassifiedExample(NamedTuple):
    """One example of a classification."""

    record: int  # of the source
    name: str
    label: int
    prediction: int
    loss: float  # the cross-entropy of its class


class Classification(NamedTuple):
    """Predictions beside the labels."""

    confusion_matrix: NDArray[np.uint64]  # examples by label, then by prediction
    worst: list[ClassifiedExample]  # those with the highest loss, the highest first
