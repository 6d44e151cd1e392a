"""Headrace as the data of a Keras 3 model, on any of its backends.

    from headrace.keras import PyDataset

    model.fit(PyDataset(train), epochs=5, validation_data=PyDataset(test))
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from headrace import Dataset
from headrace._calls import speak
from headrace._errors import config_error
from headrace._loader import check_loader
from headrace._movable import MovableLoader

__all__ = ["PyDataset"]

_MAX_PEEKED = 4  # batches that Keras looks at before an epoch, to learn their shapes

_Fields = str | Sequence[str]


class PyDataset(keras.utils.PyDataset):
    """A batched Headrace dataset as a keras.utils.PyDataset: (x, y) or (x, y, sample_weight) of NumPy arrays.

    x, y, sample_weight: names of fields; of several, a list of arrays is given. y=None: x alone, for predict().
    options: more options of headrace.Loader, as seed, threads and on_error="skip".

    The order of the batches is the plan's: the first batch that Keras asks for in an epoch is the stream's first,
    whatever its number. So fit(shuffle=True), Keras's default, changes nothing: shuffle() in the plan does. When all
    batches were given, or Keras asks for one again (after evaluate(steps=5), say), the stream's next epoch begins.
    """

    def __init__(self, dataset: Dataset, x: _Fields = "image", y: _Fields | None = "label",
                 sample_weight: str | None = None, **options: Any) -> None:
        super().__init__(workers=1, use_multiprocessing=False)
        if not isinstance(dataset, Dataset) or dataset.batch_size is None:
            raise config_error("PyDataset takes a batched headrace.Dataset", "end the plan with batch()")
        if dataset.streamed:
            raise config_error("PyDataset takes a dataset of known length, and this is a stream",
                               "give fit() a generator: ((b['image'], b['label']) for b in loader)")
        if y is None and sample_weight is not None:
            raise config_error("sample_weight without y")
        self._dataset, self._parts = dataset, [part for part in (x, y, sample_weight) if part is not None]
        self._require_fields()
        refused = {"epochs", "start", "devices"} & options.keys()
        if refused:
            raise config_error(f"{min(refused)} is not an option of PyDataset", "leave it out: Keras says how many epochs, and takes arrays of the CPU")
        check_loader(dataset, seed=0, **options)
        self._loader = MovableLoader({"seed": 0, **options})
        self._lock = threading.Lock()
        self._epoch, self._asked = 0, set[int]()  # of the pass over the data that goes on
        self._in_epoch, self._peeked = False, dict[int, Any]()

    def _require_fields(self) -> None:
        there = self._dataset.fields
        for part in self._parts:
            for name in [part] if isinstance(part, str) else part:
                if name not in there:
                    raise config_error(f"the batches have no field '{name}'", "there are " + ", ".join(there))

    @property
    def num_batches(self) -> int:
        return len(self._dataset)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        """The next batch of the epoch; `index` is known to tell a new epoch from the one that goes on."""
        with self._lock:
            if self._in_epoch and index in self._peeked:
                return self._peeked.pop(index)
            if index in self._asked or len(self._asked) == len(self._dataset):
                self._begin_pass()
            batch = self._next(index)
            if not self._in_epoch:
                self._remember(index, batch)
            return batch

    def _next(self, index: int) -> tuple[Any, ...]:
        if not self._asked:
            self._loader.seek(self._dataset, epoch=self._epoch, length=len(self._dataset))
        self._asked.add(index)
        batch = self._loader.next(epoch=self._epoch)
        if batch is None:
            raise config_error("an epoch has fewer batches than Keras asks for: skipping left no example of some",
                               'let on_error="substitute" put others in their place')
        arrays = self._loader.arrays(batch)
        return tuple(_chosen(arrays, part) for part in self._parts)

    def _begin_pass(self) -> None:
        self._epoch, self._asked = self._epoch + 1, set()
        self._peeked.clear()

    def _remember(self, index: int, batch: tuple[Any, ...]) -> None:
        """Keras looks at some batches before the epoch begins and asks for them again in it."""
        if len(self._asked) > _MAX_PEEKED:  # a loop of the caller's own
            self._peeked.clear()
        else:
            self._peeked[index] = _copied(batch)

    def on_epoch_begin(self) -> None:
        with self._lock:
            self._in_epoch = True

    def on_epoch_end(self) -> None:
        with self._lock:
            self._in_epoch = False

    def stats(self) -> dict[str, Any]:
        """What the engine measured of itself, as headrace.Loader.stats(); empty before the first batch."""
        return self._loader.stats()

    def __repr__(self) -> str:
        given = f"{len(self._asked)} of {len(self)} batches given"
        return f"<headrace.keras.PyDataset of {self._dataset!r}; epoch {self._epoch}, {given}>"

    def close(self) -> None:
        """Stops the engine's threads; the next epoch starts them again."""
        with self._lock:
            self._loader.pause()
            if self._asked:
                self._begin_pass()

    def __getstate__(self) -> Any:
        raise config_error("a headrace.keras.PyDataset stays in its process",
                           "leave use_multiprocessing out: the engine has threads of its own")


def _chosen(arrays: Mapping[str, np.ndarray], part: _Fields) -> Any:
    return arrays[part] if isinstance(part, str) else [arrays[name] for name in part]


def _copied(batch: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([np.array(a) for a in part] if isinstance(part, list) else np.array(part) for part in batch)


speak(globals(), __all__)
