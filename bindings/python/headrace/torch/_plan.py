"""The plan that a DataLoader runs: a Headrace dataset, shuffled and batched, or the items of a torch Dataset."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils import data as torch_data

from headrace import Dataset, from_torch_dataset
from headrace._errors import config_error
from headrace.torch import _arguments as arguments
from headrace.torch._order import Order
from headrace.torch._parked import FIELDS, Parked

UNSET: Any = object()  # batch_size, where nothing is said

_SEED_STEP = 0x9E3779B97F4A7C15  # from epoch to epoch: odd, and far from what seeds differ by

_Form = Callable[[Mapping[str, torch.Tensor]], Any]


def plan_of(dataset: Any, *, batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any,
            drop_last: bool, world_size: int, collates: bool) -> Plan:
    size = 1 if batch_size is UNSET else batch_size
    if size is not None and size < 1:
        raise config_error(f"batch_size = {size}", "say 1 or more")
    order = None
    if batch_sampler is not None:
        order = Order(batch_sampler, None, False)
    elif arguments.is_own_sampler(sampler) or _chooses(sampler, dataset):
        if world_size > 1:
            raise config_error(f"a {type(sampler).__name__} of {len(sampler)} records in {world_size} processes",
                               "give the records as a Subset or by Dataset.select(), and leave the sampler out")
        if shuffle:
            raise config_error("shuffle=True beside a sampler", "the sampler gives the order: leave one of them out")
        if size is None:
            raise config_error(f"batch_size=None beside a {type(sampler).__name__}", "say batch_size")
        order = Order(sampler, size, drop_last)
    if not isinstance(dataset, Dataset):
        return _of_torch(dataset, size, shuffle, sampler, order, drop_last, world_size, collates)
    if order is not None:
        return _in_order(dataset, order)
    return _of_headrace(dataset, batch_size, shuffle, sampler, drop_last, world_size)


def _chooses(sampler: Any, dataset: Any) -> bool:
    """Whether a sampler that the engine knows is made for fewer or more records than there are."""
    if type(sampler) not in (torch_data.SequentialSampler, torch_data.RandomSampler):
        return False
    if not isinstance(dataset, Dataset):
        return hasattr(dataset, "__len__") and len(sampler) != len(dataset)
    return not dataset.streamed and dataset.batch_size is None and len(sampler) != len(dataset)


def without_subsets(dataset: Any) -> Any:
    """select() in place of torch's Subsets of a Headrace dataset; any other dataset as it is."""
    if type(dataset) is not torch_data.Subset:
        return dataset
    whole = without_subsets(dataset.dataset)
    return whole.select(dataset.indices) if isinstance(whole, Dataset) else dataset


class Plan:
    """A plan that is the same in every epoch."""

    from_python = False  # Python code makes the records
    replanned = False    # each epoch is a plan of its own
    parked: Parked | None = None  # the items, where batches hold but their tickets

    def __init__(self, dataset: Dataset, local_batch: int | None, form: _Form | None = None) -> None:
        self._dataset, self.local_batch, self._form = dataset, local_batch, form

    def batches(self) -> int:
        if self._dataset.streamed:
            raise TypeError("a stream has no length")
        return len(self._dataset)

    def of_epoch(self, epoch: int) -> tuple[Dataset, int | None]:
        """The plan, and its batches in this epoch; None: as many as come."""
        return self._dataset, None if self._dataset.streamed else len(self._dataset)

    def form_of(self, fields: tuple[str, ...] | None) -> _Form:
        """What is made of a batch's tensors."""
        if fields is None:
            return self._form or dict
        missing = [name for name in fields if name not in self._dataset.fields]
        if missing:
            raise config_error(f"the batches have no field '{missing[0]}'",
                               "there are " + ", ".join(f"'{name}'" for name in self._dataset.fields))
        return lambda tensors: tuple(tensors[name] for name in fields)

    def state(self) -> dict[str, Any]:
        return {}

    def restored(self, state: Mapping[str, Any]) -> tuple[Dataset, int | None]:
        """Plan and batches of the epoch that a state is of."""
        return self.of_epoch(int(state["epoch"]))

    def seed_of_epoch(self, seed: int, epoch: int) -> int:
        """The engine's seed in this epoch."""
        return seed


class _Ordered(Plan):
    """By a custom sampler, which is read once an epoch; each epoch is then a separate plan."""

    replanned = True

    def __init__(self, order: Order, records: Callable[[list[int]], Dataset], form: _Form | None = None) -> None:
        self._order, self._records = order, records
        self._given: tuple[list[int], int] | None = None  # of the epoch that runs, or is to be gone on with
        super().__init__(records([0]).batch(1), order.batch_size, form)

    def batches(self) -> int:
        return self._order.batches()

    def of_epoch(self, epoch: int) -> tuple[Dataset, int | None]:
        return self._planned(*self._order.read(epoch))

    def _planned(self, numbers: list[int], size: int) -> tuple[Dataset, int]:
        self._given = numbers, size
        plan = _in_batches(self._records(numbers), size, self._order.drop_last)
        return plan, len(plan)

    def state(self) -> dict[str, Any]:
        return {} if self._given is None else {"order": self._given[0], "order_batch": self._given[1]}

    def restored(self, state: Mapping[str, Any]) -> tuple[Dataset, int | None]:
        if "order" not in state:
            raise config_error("the state is of a DataLoader without a sampler of its own",
                               "load it into one that is made with the same arguments")
        return self._planned(list(state["order"]), int(state["order_batch"]))

    def seed_of_epoch(self, seed: int, epoch: int) -> int:
        """Another one each epoch: the engine counts this plan's epochs from 0 anew."""
        return (seed + epoch * _SEED_STEP) % 2**63


def _in_order(dataset: Dataset, order: Order) -> Plan:
    if dataset.batch_size is not None:
        raise config_error(f"a {order.name} with a plan that is batched already",
                           "leave batch() out of the plan: the sampler chooses records")
    if dataset.streamed:
        raise config_error(f"a {order.name} over a stream, which has no record numbers",
                           "keep the records in memory or write them to a file first")
    return _Ordered(order, dataset.select)


def _of_headrace(dataset: Dataset, batch_size: int | None, shuffle: bool | None, sampler: Any, drop_last: bool,
                 world_size: int) -> Plan:
    shuffled = arguments.wants_shuffle(shuffle, sampler)
    if dataset.batch_size is not None:
        return _of_batched(dataset, batch_size, shuffled, drop_last, world_size)
    if batch_size is None:
        raise config_error("batch_size=None with a dataset that is not batched",
                           "end the plan with batch(), or say batch_size")
    if shuffled and dataset.streamed:
        raise config_error("shuffle=True: a stream cannot be permuted", "use Dataset.shuffle_window()")
    return _batched(dataset.shuffle() if shuffled else dataset, 1 if batch_size is UNSET else batch_size, drop_last,
                    world_size)


def _of_batched(dataset: Dataset, batch_size: int | None, shuffled: bool, drop_last: bool, world_size: int) -> Plan:
    if batch_size is not UNSET and batch_size is not None:
        raise config_error(f"batch_size = {batch_size}, but the plan ends in batch({dataset.batch_size}) already",
                           "leave one of them out")
    if shuffled or drop_last:
        raise config_error(f"{'shuffle' if shuffled else 'drop_last'}=True with a plan that is batched already",
                           "say shuffle() before batch() in the plan, and batch(..., drop_remainder=True)")
    batch = _global_batch(dataset)
    if batch % world_size:
        raise config_error(f"a batch of {batch} for {world_size} processes",
                           "batch() is of all processes together: make it a multiple of their number")
    _require_shares(dataset, world_size)
    return Plan(dataset, batch // world_size)


def _batched(dataset: Dataset, batch_size: int, drop_last: bool, world_size: int, kind: type[Plan] = Plan,
             **more: Any) -> Plan:
    whole = _in_batches(dataset, batch_size * world_size, drop_last)
    _require_shares(whole, world_size)
    return kind(whole, batch_size, **more)


def _in_batches(dataset: Dataset, size: int, drop_last: bool) -> Dataset:
    whole = dataset.batch(size, drop_remainder=drop_last)
    if drop_last and not dataset.streamed and len(whole) == 0:
        raise config_error(f"{dataset.records} records make no batch of {size}, and drop_last=True leaves them out",
                           "make the batch smaller")
    return whole


def _global_batch(dataset: Dataset) -> int:
    assert dataset.batch_size is not None, "the plan has batch()"
    return dataset.batch_size


def _require_shares(dataset: Dataset, world_size: int) -> None:
    """ConfigError where a process would have no example in the last batch: its loss would be that of nothing."""
    if world_size == 1 or dataset.streamed or len(dataset) == 0:
        return
    batch = _global_batch(dataset)
    rest = dataset.records % batch
    if 0 < rest < world_size and len(dataset) * batch > dataset.records:
        raise config_error(f"the last batch of an epoch has {rest} examples for {world_size} processes: one would have "
                           "none", "say drop_last=True, or another batch_size")


# ------------------------------------------------------------------------------------------------- torch's datasets


class _Named:
    """Items as dicts, whatever they were: the engine's fields have names."""

    def __init__(self, items: Any, names: tuple[str, ...] | None, order: list[int] | None = None) -> None:
        self._items, self._names, self._order = items, names, order
        self.classes = getattr(items, "classes", None)

    def __len__(self) -> int:
        return len(self._items) if self._order is None else len(self._order)

    def __getitem__(self, index: int) -> Any:
        item = self._items[index if self._order is None else self._order[index]]
        if self._names is None:
            return item
        if self._names == ("data",):
            return {"data": item}
        return dict(zip(self._names, item, strict=True))


class _FromTorch(Plan):
    from_python = True


class _OrderedFromTorch(_Ordered):
    from_python = True


def _items(dataset: Any, names: tuple[str, ...] | None, numbers: list[int]) -> Dataset:
    digest = zlib.crc32(np.asarray(numbers, np.int64).tobytes())
    return from_torch_dataset(_Named(dataset, names, numbers), fields=_fields_of(dataset), version=digest)


def _fields_of(dataset: Any) -> Any:
    """None: those of its first item."""
    return FIELDS if isinstance(dataset, Parked) else None


def _of_torch(dataset: Any, batch_size: int | None, shuffle: bool | None, sampler: Any, order: Order | None,
              drop_last: bool, world_size: int, collates: bool) -> Plan:
    if isinstance(dataset, torch_data.IterableDataset) or not hasattr(dataset, "__getitem__"):
        raise config_error(f"a {type(dataset).__name__} has no numbered items",
                           "make a Headrace dataset of it: hr.from_generator(lambda: iter(dataset), fields=...)")
    if batch_size is None:
        raise config_error("batch_size=None is not supported for a torch Dataset: the engine makes the batches",
                           "say batch_size, and let the dataset give single items")
    if len(dataset) == 0:
        raise config_error(f"the {type(dataset).__name__} is empty")
    kind = type(dataset).__name__
    names, form = (None, None) if collates else _form_of_item(dataset[0])
    items = Parked(dataset) if collates else dataset
    if order is not None:
        plan: Plan = _OrderedFromTorch(order, lambda numbers: _items(items, names, numbers), form)
    else:
        records = from_torch_dataset(_Named(items, names), fields=_fields_of(items), name=kind)
        shuffled = records.shuffle() if arguments.wants_shuffle(shuffle, sampler) else records
        plan = _batched(shuffled, batch_size, drop_last, world_size, _FromTorch, form=form)
    plan.parked = items if collates else None
    return plan


def _form_of_item(item: Any) -> tuple[tuple[str, ...] | None, _Form]:
    """The names of the fields that an item has, None where it is a dict, and what default_collate makes of a batch."""
    if isinstance(item, Mapping):
        return None, dict
    if isinstance(item, tuple | list):
        names = ("image", "label") if len(item) == 2 else tuple(f"field_{i}" for i in range(len(item)))
        if hasattr(item, "_fields"):
            return tuple(item._fields), lambda tensors: type(item)(**tensors)
        return names, lambda tensors: [tensors[name] for name in names]
    return ("data",), lambda tensors: tensors["data"]
