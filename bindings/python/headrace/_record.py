"""A training in one file, for programs that know nothing of the model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ._dataset import Dataset
from ._errors import config_error
from ._fields import Path
from ._native import train as _native
from ._objectives import LossFunction
from ._custom_parts import custom_parts
from ._plans import plan_of
from ._results import History, Predictions, name_predictions, predictions_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._native import LoaderOptions
    from ._native.train import Loss, Optimizer
    from .train import Model, Strategy


class RecordFile(NamedTuple):
    """Where a fit writes its training record."""

    file: Path
    input: Dataset | None
    views: str | None


class TrainingRecord:
    """Trains a model and keeps graph, tensors, optimizer, loss, metrics and history in one file. Made by
    create_training_record()."""

    def __init__(self, model: Model, epochs: int, file: RecordFile) -> None:
        self.model, self.epochs = model, epochs
        self._file, self._trained = file, False

    @property
    def file(self) -> Path:
        return self._file.file

    def train(self, data: Dataset, epochs: int = 0, **options: Any) -> History:
        """Trains and writes the file after each epoch. epochs: the total; 0: that given to create_training_record(). A
        further call goes on where the last one ended. options: those of Model.fit()."""
        for name in ("checkpoints", "resume"):
            if name in options:
                raise config_error("a training record is its own checkpoint", f"leave out {name}")
        resume, self._trained = self._trained, True
        return self.model.fit(data, epochs=epochs or self.epochs, checkpoints=self._file, resume=resume, **options)


def create_training_record(model: Model, loss: Loss | LossFunction, optimizer: Optimizer, epochs: int, *,
                           file: Path = "training.safetensors", metrics: Iterable[Any] = ("accuracy",),
                           input: Dataset | None = None, views: str | None = None) -> TrainingRecord:
    """Compiles the model for its training record. input: as that of Checkpoints; views: those of evaluate_record()."""
    model.compile(optimizer, loss, metrics)
    return TrainingRecord(model, epochs, RecordFile(file, input, views))


def evaluate_record(strategy: Strategy, file: Path, data: Dataset, *, steps: int = 0, views: str | None = None,
                    custom_objects: Mapping[str, Any] | None = None, **input: Unpack[LoaderOptions]) -> dict[str, Any]:
    """The figures of a saved model, as Model.evaluate() gives them. data: what headrace.open() returns, to which the
    operations that the file tells are done; or batches in the form that the net takes. views: None: the file's.
    custom_objects: as those of restore_model()."""
    batched = data.batch_size is not None
    return _native.evaluate_record(strategy._native, os.fspath(file), plan_of(data), batched, steps=steps, input={**input},
                                   views=views, own=custom_parts(custom_objects))


def predict_record(strategy: Strategy, file: Path, data: Dataset, *, names: bool = False, steps: int = 0,
                   custom_objects: Mapping[str, Any] | None = None, **input: Unpack[LoaderOptions]) -> Predictions:
    """The results of a saved model. names: as for Model.predict(); labels are numbers of the net's classes. data and
    custom_objects: as for evaluate_record()."""
    batched = data.batch_size is not None
    found = predictions_of(_native.predict_record(strategy._native, os.fspath(file), plan_of(data), batched, steps=steps,
                                                  input={**input}, own=custom_parts(custom_objects)))
    return name_predictions(found, plan_of(data), _native.classes_of_record(os.fspath(file))) if names else found
