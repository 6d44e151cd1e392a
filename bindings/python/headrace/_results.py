"""What the trainer's runs give."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._errors import config_error
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


@dataclass(frozen=True, eq=False)
class Predictions:
    """Results in the order in which the dataset gives its records. pyarrow.table(predictions), polars.DataFrame(predictions)
    and DuckDB take them as a table, without a copy of the numbers. Its columns are name, record, label, label_class,
    prediction, class, values, and output_LAYER for each of the others, those of them that are known; an unknown label is
    null."""

    values: NDArray[np.float32]  # (examples, ...)
    records: NDArray[np.uint64]  # source record of each example
    others: dict[str, NDArray[np.float32]]  # of a net of several outputs: those after the first, by layer
    names: list[str] | None = None  # of the examples, such as files or members of archives; None unless asked for
    labels: NDArray[np.int64] | None = None  # with names: the data's; -1 where the source has to read the record for it
    classes: list[str] | None = None  # with names: of the net's record or the data, by number; None if nobody knows them
    task: str | None = None  # what values are: "binary", "multi_label", "categorical", "regression"; None: nobody says it
    from_logits: bool = False  # whether they are logits

    @property
    def predicted(self) -> NDArray[np.int64] | None:
        """The class of each example: that of its largest value or, of a binary net, 1 or 0; -1 where one is NaN. None for
        results that are not of one class; where no task is known, a vector is taken for values of classes."""
        rows = self.values.reshape(len(self.values), -1)
        if self.task == "binary":
            best = rows[:, 0] > (0 if self.from_logits else 0.5)
        elif self.values.ndim == 2 and self.values.shape[1] > 1 and self.task in (None, "categorical"):
            best = self.values.argmax(1)
        else:
            return None
        return np.where(np.isnan(rows).any(1), -1, best).astype(np.int64, copy=False)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return _native.arrow_stream_of_columns(prediction_columns(self), len(self.records))


def _column(name: str, values: Any, known: Any = None) -> tuple[str, Any, list[bool]]:
    """As the native part takes it: without nulls where known is None."""
    array = values if isinstance(values, list) else np.ascontiguousarray(values)
    return name, array, [] if known is None or all(known) else [bool(each) for each in known]


def _class_column(name: str, numbers: NDArray[np.int64], classes: list[str]) -> tuple[str, Any, list[bool]]:
    known = (numbers >= 0) & (numbers < len(classes))
    return _column(name, [classes[number] if is_known else "" for number, is_known in zip(numbers, known)], known)


def prediction_columns(found: Predictions) -> list[tuple[str, Any, list[bool]]]:
    """The columns of a table of predictions: (name, values, which are known; all if empty)."""
    rows, classes, columns = len(found.records), found.classes or [], []
    for name in ("values", "names", "labels"):
        given = getattr(found, name)
        if given is not None and len(given) != rows:
            raise config_error(f"the predictions have {rows} records and {len(given)} {name}", "give one for each record")
    if found.names is not None:
        columns.append(_column("name", found.names))
    columns.append(_column("record", found.records.astype(np.int64, copy=False)))
    if found.labels is not None and (found.labels >= 0).any():
        columns.append(_column("label", found.labels, found.labels >= 0))
        if classes:
            columns.append(_class_column("label_class", found.labels, classes))
    if (best := found.predicted) is not None:
        columns.append(_column("prediction", best, best >= 0))
        if classes:
            columns.append(_class_column("class", best, classes))
    columns.append(_column("values", found.values))
    return columns + [_column(f"output_{layer}", values) for layer, values in found.others.items()]


def predictions_of(native: Any) -> Predictions:
    values, records, others, task, from_logits = native
    return Predictions(values, records, others, task=task, from_logits=from_logits)


def name_predictions(found: Predictions, data: Any, net_classes: list[str]) -> Predictions:
    """With the names, labels and classes of the examples. data: the native plan. net_classes: those of a record; none:
    the data's."""
    names, labels = _native.train.names_of_examples(data, found.records.tolist(), net_classes)
    return replace(found, names=names, labels=labels, classes=(net_classes or data.classes()) or None)


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
