"""A loader that can be moved in its stream, and batches that a loop may keep: for the frameworks' own loops."""

import weakref

import numpy as np

from ._loader import Loader

_RESTARTS_FOR_KEPT_BATCHES = 1  # after them batches are copied
_STATE = "headrace"  # the entry of a loader's state that has its place, as LoaderState::serialize() writes it


def _count_of(state):
    """How many batches were handed out before, of all epochs."""
    words = state[_STATE].split()
    ahead = words[5] if len(words) > 5 and words[5] != "-" else ""
    return int(words[2]) + sum(int(digit, 16).bit_count() for digit in ahead)


def _at(state, sequence):
    """The state of the same stream at another place."""
    header, stream, _, *identity = state[_STATE].split()[:5]
    return {**state, _STATE: " ".join([header, stream, str(sequence), *identity])}


class _Views:
    """Which of the batches that were given as views of the engine's memory are still in use.

    Whatever is made of an array without a copy, as torch.from_numpy() does, keeps it as long as anything uses the
    memory: when the array goes, the memory is free.
    """

    def __init__(self):
        self._used = {}  # arrays in use by number of the batch

    def of(self, batch):
        number = batch.sequence
        made = {}
        for name, tensor in batch.items():
            made[name] = array = np.asarray(tensor)
            self._used[number] = self._used.get(number, 0) + 1
            weakref.finalize(array, self._drop, number).atexit = False
        return made

    def _drop(self, number):
        left = self._used.get(number, 0) - 1
        if left > 0:
            self._used[number] = left
        else:
            self._used.pop(number, None)

    def oldest(self):
        return min(tuple(self._used), default=None)


class MovableLoader:
    """One headrace.Loader at a time, at a known place of its stream.

    copy: None: host arrays are views as long as batches are given back before their memory is needed, and copies if
    they are kept; True: copies; False: views.
    when_closed: called after a loader was closed, whose remaining batches nobody gets.
    """

    def __init__(self, options, copy=None, when_closed=None):
        self._options = dict(options)
        self._when_closed = when_closed
        self._may_copy, self.copies = copy is None, bool(copy)
        self._loader = self._dataset = self._paused = None  # _paused: the state of a loader that was closed
        self._restarts = 0
        self._begin_views()

    def _begin_views(self):
        self._views, self._next, self._slots = _Views(), 0, 0
        self._epoch = 0  # of the latest batch

    def set_option(self, name, value):
        """Of headrace.Loader, for the next one that is opened."""
        if self._options.get(name) != value:
            self._options[name] = value
            self.pause()
            self._dataset = self._paused = None

    # ---- where it stands

    def seek(self, dataset, *, epoch, length, step=0):
        """To a step of an epoch, each of which has `length` batches; None: to the beginning of one of any length."""
        if length is None:
            self._seek_epoch(dataset, epoch)
            return
        wanted = epoch * length + step
        if self._dataset is dataset and self._paused is not None:
            self._open(dataset, _at(self._paused, wanted))
            return
        if self._dataset is not dataset or self._loader is None:
            self._open(dataset, None)
        if self._next != wanted:
            self._open(dataset, _at(self._loader.state_dict(), wanted))

    def _seek_epoch(self, dataset, epoch):
        """Epochs of unknown length are read up to where the next one begins."""
        if dataset.one_pass or self._dataset is not dataset or epoch < self._epoch:
            self._open(dataset, None)
        elif self._loader is None:
            self._open(dataset, self._paused)
        while not dataset.one_pass and epoch > 0 and self._loader.next(epoch=epoch - 1) is not None:
            self._next += 1
        self._epoch = epoch

    def restore(self, dataset, state):
        self._open(dataset, dict(state))

    def state(self):
        """None before the first seek()."""
        return self._paused if self._loader is None else self._loader.state_dict()

    def _open(self, dataset, start):
        self._close()
        self._loader = Loader(dataset, epochs=None, start=start, **self._options)
        self._dataset, self._paused = dataset, None
        self._begin_views()
        self._next = 0 if start is None else _count_of(start)
        self._slots = self._loader.stats()["slots"]

    def pause(self):
        """Stops the loader; the next seek() goes on with another one."""
        if self._loader is None:
            return
        self._paused = None if self._dataset.one_pass else self._loader.state_dict()
        self._close()

    def _close(self):
        if self._loader is None:
            return
        self._loader.close()
        self._loader = None
        if self._when_closed is not None:
            self._when_closed()

    def stats(self):
        return {} if self._loader is None else self._loader.stats()

    # ---- batches

    def next(self, epoch=None):
        """The next batch; None at the end of the stream, and before a batch of a later epoch than `epoch`."""
        if self._may_copy and not self.copies:
            self._make_room()
        batch = self._loader.next(epoch=epoch)
        if batch is not None:
            self._next += 1
            self._epoch = batch.epoch
        return batch

    def arrays(self, batch):
        """Its fields as NumPy arrays, as `copy` says."""
        if self.copies:
            return {name: np.array(tensor) for name, tensor in batch.items()}
        return self._views.of(batch)

    def _make_room(self):
        """Where the loop keeps a batch whose memory is the next one's: a new loader has memory of its own, the old
        one's lives on with the batch."""
        oldest = self._views.oldest()
        if oldest is None or self._next - oldest < self._slots:
            return
        if self._restarts == _RESTARTS_FOR_KEPT_BATCHES:
            self.copies = True
        self._restarts += 1
        self._open(self._dataset, self._loader.state_dict())
