"""A headrace.Loader that can be moved in its stream, and batches that a loop may keep."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from headrace import Dataset, Loader

_RESTARTS_FOR_KEPT_BATCHES = 1  # after them batches are copied


class _Views:
    """Which of the batches that were given as views of the engine's memory are still in use.

    A tensor made by torch.from_numpy() keeps the array that it was made of as long as anything uses the memory, views
    of the tensor and graphs of autograd included: when the array goes, the memory is free.
    """

    def __init__(self) -> None:
        self._used: dict[int, int] = {}  # by number of the batch

    def tensors(self, batch: Any) -> dict[str, torch.Tensor]:
        made = {}
        for name, tensor in batch.items():
            array = np.asarray(tensor)
            number = batch.sequence
            self._used[number] = self._used.get(number, 0) + 1
            weakref.finalize(array, self._drop, number).atexit = False
            made[name] = torch.from_numpy(array)
        return made

    def _drop(self, number: int) -> None:
        left = self._used.get(number, 0) - 1
        if left > 0:
            self._used[number] = left
        else:
            self._used.pop(number, None)

    def oldest(self) -> int | None:
        return min(tuple(self._used), default=None)


class Engine:
    """One loader at a time, at a known place of its stream."""

    def __init__(self, options: Mapping[str, Any], *, copy: bool | None, pin: bool) -> None:
        self._options, self._pin = dict(options), pin
        on_host = str(options["devices"]).startswith("cpu")
        # Of a GPU's memory nobody tells when a tensor of it goes, and a copy costs little.
        self._copies = copy if copy is not None else pin or not on_host
        self._may_copy = copy is None
        self._on_host = on_host
        self._loader: Loader | None = None
        self._dataset: Dataset | None = None
        self._length: int | None = None
        self._restarts = 0
        self._paused: dict[str, Any] | None = None  # the state of a loader that was closed between epochs
        self._begin_views()

    def _begin_views(self) -> None:
        self._views, self._first, self._given, self._slots = _Views(), 0, 0, 0

    # ---- where it stands

    def seek(self, dataset: Dataset, *, epoch: int, length: int | None) -> None:
        """To the beginning of an epoch, each of which has `length` batches; None: there is one, of any length."""
        if length is None:
            return self._open(dataset, None, epochs=1)
        wanted = epoch * length
        if self._dataset is dataset and self._loader is not None and self._position() == wanted:
            return None
        if self._dataset is dataset and self._paused is not None:
            return self._open(dataset, _at(self._paused, wanted))
        if self._dataset is not dataset or self._loader is None:
            self._open(dataset, None)
        if wanted != self._position():
            self._open(dataset, _at(self._loader.state_dict(), wanted))
        return None

    def restore(self, dataset: Dataset, state: Mapping[str, Any]) -> None:
        self._open(dataset, dict(state))

    def state(self) -> dict[str, Any] | None:
        if self._loader is None:
            return self._paused
        return self._loader.state_dict()

    def _position(self) -> int:
        return sequence_of(self._loader.state_dict())

    def _open(self, dataset: Dataset, start: Mapping[str, Any] | None, epochs: int | None = None) -> None:
        if self._loader is not None:
            self._loader.close()
        self._loader = Loader(dataset, epochs=epochs, start=start, **self._options)
        self._dataset, self._paused = dataset, None
        self._begin_views()
        self._first = 0 if start is None else sequence_of(start)
        self._slots = int(self._loader.stats()["slots"])

    def pause(self) -> None:
        """Stops the loader; the next seek() goes on with another one."""
        if self._loader is None:
            return
        self._paused = None if self._dataset.streamed else self._loader.state_dict()
        self._loader.close()
        self._loader = None

    def close(self) -> None:
        self.pause()

    def stats(self) -> dict[str, Any]:
        return {} if self._loader is None else self._loader.stats()

    # ---- batches

    def next(self) -> tuple[dict[str, torch.Tensor] | None, bool]:
        """The tensors of the next batch, None at the end of the stream; and whether it is the last of its epoch."""
        if not self._copies and self._may_copy:
            self._make_room()
        batch = self._loader.next()
        if batch is None:
            return None, True
        self._given += 1
        return self._tensors(batch), batch.last_of_epoch

    def _make_room(self) -> None:
        """Where the loop keeps batches whose memory is the next one's: a new loader has memory of its own, the old
        one's lives on with the batches."""
        oldest = self._views.oldest()
        if oldest is None or self._first + self._given - oldest < self._slots:
            return
        if self._restarts == _RESTARTS_FOR_KEPT_BATCHES:
            self._copies = True
        self._restarts += 1
        epochs = 1 if self._dataset.streamed else None
        self._open(self._dataset, self._loader.state_dict(), epochs)

    def _tensors(self, batch: Any) -> dict[str, torch.Tensor]:
        if not self._copies and self._on_host:
            return self._views.tensors(batch)
        tensors = batch.torch()
        if self._pin:
            return {name: tensor.pin_memory() for name, tensor in tensors.items()}
        if self._copies:
            return {name: tensor.clone() for name, tensor in tensors.items()}
        return tensors
