"""What other libraries read of a DataLoader to make one of their own of it, as accelerate's skip_first_batches() does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch.utils import data as torch_data

from headrace import Dataset
from headrace._errors import config_error

if TYPE_CHECKING:
    from headrace.torch._loader import DataLoader


def batches_of(loader: DataLoader, batch_sampler: Any) -> Any:
    """The batch_sampler with which torch's own loader gives the batches of the next epoch: of a torch Dataset, lists of
    record numbers; of a Headrace dataset, what its __getitems__() makes batches of this loader of."""
    if not isinstance(loader.dataset, Dataset):
        return _Numbers(loader) if batch_sampler is None else batch_sampler
    return _Tickets(loader)


def collate_fn_of(dataset: Any, collate_fn: Any) -> Any:
    if not isinstance(dataset, Dataset):
        return torch_data.default_collate if collate_fn is None else collate_fn
    return _ready


def _ready(batches: list[Any]) -> Any:
    """What Dataset.__getitems__() gave is a batch already."""
    [batch] = batches
    return batch


class _Ticket:
    """A batch of an epoch, which is made when it is asked for."""

    def __init__(self, loader: DataLoader, epoch: int, step: int) -> None:
        self._loader, self._epoch, self._step = loader, epoch, step

    def batch(self) -> Any:
        return self._loader._batch_at(self._epoch, self._step)

    def __reduce__(self) -> Any:
        raise config_error("a batch of a headrace.torch.DataLoader is made in its own process",
                           "say num_workers=0: the engine has threads of its own")


class _Batches:
    def __init__(self, loader: DataLoader) -> None:
        self._loader = loader
        self.batch_size, self.drop_last, self.sampler = loader.batch_size, loader.drop_last, loader.sampler

    def __len__(self) -> int:
        return len(self._loader)

    def set_epoch(self, epoch: int) -> None:
        self._loader.set_epoch(epoch)


class _Tickets(_Batches):
    def __iter__(self) -> Iterator[list[_Ticket]]:
        epoch = self._loader._begin_elsewhere()
        for step in range(len(self)):
            yield [_Ticket(self._loader, epoch, step)]


class _Numbers(_Batches):
    def __iter__(self) -> Iterator[list[int]]:
        loader = self._loader
        epoch = loader._begin_elsewhere()
        yield from loader._plan.numbers(epoch, loader._loader_options({}))
