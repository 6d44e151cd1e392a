"""The order of an epoch, as a sampler or a batch_sampler gives it."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator
from typing import Any

from headrace._errors import config_error

_MAX_WHOLE = 1 << 24  # records: the order of an epoch that is known to have no more is read at once
_PIECE = 1 << 16      # of one that may have no end


class Order:
    """A sampler, or a batch_sampler, that is asked anew for each epoch.

    batch_size: of a sampler; None: `given` is a batch_sampler, whose batches say it.
    """

    def __init__(self, given: Any, batch_size: int | None, drop_last: bool) -> None:
        self._given, self.batch_size, self.drop_last = given, batch_size, drop_last
        self.name = type(given).__name__
        if not hasattr(given, "__iter__"):
            raise config_error(f"a {self.name} as {'batch_sampler' if batch_size is None else 'sampler'}",
                               "give an iterable of record numbers, or of lists of them as batch_sampler")
        self._batches: Iterator[list[int]] = iter(())
        self._place, self._size, self._last, self.is_whole = 0, 0, 0, True

    def batches(self) -> int:
        """TypeError where it has no length."""
        if self.batch_size is None:
            return len(self._given)
        whole, rest = divmod(len(self._given), self.batch_size)
        return whole + (1 if rest and not self.drop_last else 0)

    def read(self, piece: int = 0) -> tuple[list[int], int] | None:
        """The numbers of the records of an epoch's first piece, or of a later one, and how many make a batch. None: there
        are none."""
        try:
            self.is_whole = self.batches() <= _MAX_WHOLE
        except TypeError:
            self.is_whole = False
        self._batches, self._place, self._size, self._last = self._read(), 0, 0, 0
        for _ in range(piece):
            self.more()
        return self.more()

    def more(self) -> tuple[list[int], int] | None:
        """The same of the next piece."""
        numbers: list[int] = []
        for batch in self._batches:
            if self._size == 0:
                self._size = self._last = max(1, len(batch))
            if self._last < self._size or not 0 < len(batch) <= self._size:
                place, size = (self._place - 1, self._last) if self._last < self._size else (self._place, len(batch))
                raise config_error(f"batch {place} of the {self.name} has {size} records, and batch 0 has {self._size}",
                                   "the engine makes batches of one size, but for a smaller last one; for records of "
                                   "similar length there is Dataset.bucket_by_length()")
            self._place, self._last = self._place + 1, len(batch)
            numbers += batch
            if not self.is_whole and len(numbers) >= _PIECE:
                break
        return (numbers, self._size) if numbers else None

    def _read(self) -> Iterator[list[int]]:
        if self.batch_size is None:
            yield from map(self._numbers, self._given)
            return
        records = iter(self._given)
        while batch := self._numbers(itertools.islice(records, self.batch_size)):
            yield batch

    def _numbers(self, given: Iterable[Any]) -> list[int]:
        try:
            return [operator.index(number) for number in given]
        except TypeError as error:
            raise config_error(f"the {self.name} gave something that is no record number: {error}",
                               "a sampler gives whole numbers, a batch_sampler lists of them") from None
