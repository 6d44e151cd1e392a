"""The order of an epoch, as a sampler or a batch_sampler gives it."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from headrace._errors import config_error


class Order:
    """A sampler, or a batch_sampler, that is asked anew for each epoch.

    batch_size: of a sampler; None: `given` is a batch_sampler, whose batches say it.
    """

    def __init__(self, given: Any, batch_size: int | None, drop_last: bool) -> None:
        self._given, self.batch_size, self.drop_last = given, batch_size, drop_last
        self.name = type(given).__name__

    def batches(self) -> int:
        """TypeError where it has no length."""
        if self.batch_size is None:
            return len(self._given)
        whole, rest = divmod(len(self._given), self.batch_size)
        return whole + (1 if rest and not self.drop_last else 0)

    def read(self, epoch: int) -> tuple[list[int], int]:
        """The numbers of the records, and how many make a batch."""
        numbers, size = self._in_batches() if self.batch_size is None else (self._numbers(self._given), self.batch_size)
        if not numbers:
            raise config_error(f"the {self.name} gave no index for epoch {epoch}")
        return numbers, size

    def _in_batches(self) -> tuple[list[int], int]:
        batches = [self._numbers(batch) for batch in self._given]
        size = len(batches[0]) if batches else 1
        for place, batch in enumerate(batches):
            if len(batch) == size or (place + 1 == len(batches) and 0 < len(batch) < size):
                continue
            raise config_error(f"batch {place} of the {self.name} has {len(batch)} records, and batch 0 has {size}",
                               "the engine makes batches of one size, but for a smaller last one; for records of similar "
                               "length there is Dataset.bucket_by_length()")
        return [number for batch in batches for number in batch], size

    def _numbers(self, given: Iterable[Any]) -> list[int]:
        try:
            return [operator.index(number) for number in given]
        except TypeError as error:
            raise config_error(f"the {self.name} gave something that is no record number: {error}",
                               "a sampler gives whole numbers, a batch_sampler lists of them") from None
