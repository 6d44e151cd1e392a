"""Items of a torch Dataset, which the engine makes ahead and in its order, but does not hold: they have any form."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable
from typing import Any

FIELDS = {"ticket": ("int64", ())}  # of the records that stand for the items


class Parked:
    """A torch Dataset whose items wait here, each under a number of its own, for whoever has the number.

    Called by the engine's threads, under the GIL.
    """

    def __init__(self, items: Any) -> None:
        self._items = items
        self._tickets = itertools.count()
        self._waiting: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> dict[str, int]:
        ticket = next(self._tickets)
        self._waiting[ticket] = self._items[index]
        return {"ticket": ticket}

    def _packed_item(self, index: int) -> list[bytes]:
        """The item's record as the engine copies it."""
        return [self[index]["ticket"].to_bytes(8, sys.byteorder)]

    def collect(self, tickets: Iterable[int]) -> list[Any]:
        """The items of a batch, which are handed out once."""
        return [self._waiting.pop(ticket) for ticket in tickets]

    def forget(self) -> None:
        """Drops what was made for a loader that is closed."""
        self._waiting.clear()
