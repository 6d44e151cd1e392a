"""The plan that a DataLoader runs: a Headrace dataset, shuffled and batched, or the items of a torch Dataset."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils import data as torch_data

from headrace import Dataset, from_arrays, from_torch_dataset
from headrace._calls import type_words
from headrace._errors import config_error
from headrace._movable import MovableLoader
from headrace.torch import _arguments as arguments
from headrace.torch._order import Order
from headrace.torch._parked import FIELDS, Parked

UNSET: Any = object()  # batch_size, where nothing is said

_SEED_STEP = 0x9E3779B97F4A7C15  # from epoch to epoch: odd, and far from what seeds differ by
_PIECE_STEP = 0xD1B54A32D192ED03  # from piece to piece of an epoch

_Form = Callable[[Mapping[str, torch.Tensor]], Any]


def plan_of(dataset: Any, *, batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any,
            drop_last: bool, world_size: int, even_shares: str) -> Plan:
    size = 1 if batch_size is UNSET else batch_size
    if not isinstance(dataset, Dataset) and size is None:
        size = 1  # items as they are, one after another
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
        return _of_torch(dataset, size or 1, shuffle, sampler, order, drop_last, world_size, even_shares)
    if order is not None:
        return _in_order(dataset, order)
    return _of_headrace(dataset, batch_size, shuffle, sampler, drop_last, world_size, even_shares)


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

    replanned = False    # each epoch is a plan of its own
    parked: Parked | None = None  # the items of a torch Dataset, where batches hold but their tickets

    def __init__(self, dataset: Dataset, local_batch: int | None) -> None:
        self._dataset, self.local_batch = dataset, local_batch

    @property
    def sample_plan(self) -> Dataset:
        """A plan such as each epoch has."""
        return self._dataset

    def batches(self) -> int:
        if self._dataset.streamed:
            raise TypeError("a stream has no length")
        return len(self._dataset)

    def of_epoch(self, epoch: int) -> tuple[Dataset, int | None]:
        """The plan, and its batches in this epoch; None: as many as come."""
        return self._dataset, None if self._dataset.streamed else len(self._dataset)

    def more_of_epoch(self) -> Dataset | None:
        """The plan of the next piece of an epoch whose order may have no end; None: there is none."""
        return None

    def numbers(self, epoch: int, options: Mapping[str, Any]) -> Iterator[list[int]]:
        """The numbers of the records of each batch of an epoch, as `options` share it out; of a torch Dataset."""
        raise NotImplementedError

    def form_of(self, fields: tuple[str, ...] | None) -> _Form:
        """What is made of a batch's tensors."""
        if fields is None:
            return dict
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
    """By a custom sampler, which is read once an epoch, or piece by piece; each of them is then a separate plan."""

    replanned = True

    def __init__(self, order: Order, records: Callable[[list[int]], Dataset], some: Dataset) -> None:
        self._order, self._records = order, records
        self._given: tuple[list[int], int] | None = None  # of the epoch that runs, or is to be gone on with
        self._piece, self._is_read = 0, True
        super().__init__(some.batch(1), order.batch_size)

    def batches(self) -> int:
        return self._order.batches()

    def of_epoch(self, epoch: int) -> tuple[Dataset, int | None]:
        self._piece, self._is_read = 0, True
        return self._planned(self._order.read())

    def more_of_epoch(self) -> Dataset | None:
        if self._is_read and self._order.is_whole:
            return None
        self._piece += 1
        given = self._order.more() if self._is_read else self._order.read(self._piece)
        self._is_read = True
        plan, length = self._planned(given)
        return None if length == 0 else plan

    def _planned(self, given: tuple[list[int], int] | None) -> tuple[Dataset, int | None]:
        self._given = given
        if given is None:
            return self._dataset, 0
        numbers, size = given
        if self._order.drop_last and len(numbers) < size:
            return self._dataset, 0
        plan = self._records(numbers).batch(size, drop_remainder=self._order.drop_last)
        return plan, len(plan) if self._order.is_whole else None

    def numbers(self, epoch: int, options: Mapping[str, Any]) -> Iterator[list[int]]:
        given = self._order.read()
        while given is not None:
            numbers, size = given
            for first in range(0, len(numbers) - (size - 1 if self._order.drop_last else 0), size):
                yield numbers[first:first + size]
            given = None if self._order.is_whole else self._order.more()

    def state(self) -> dict[str, Any]:
        if self._given is None:
            return {}
        piece = {} if self._order.is_whole else {"order_piece": self._piece}
        return {"order": self._given[0], "order_batch": self._given[1], **piece}

    def restored(self, state: Mapping[str, Any]) -> tuple[Dataset, int | None]:
        if "order" not in state:
            raise config_error("the state is of a DataLoader without a sampler of its own",
                               "load it into one that is made with the same arguments")
        self._piece, self._is_read = int(state.get("order_piece", 0)), "order_piece" not in state
        self._order.is_whole = self._is_read
        return self._planned((list(state["order"]), int(state["order_batch"])))

    def seed_of_epoch(self, seed: int, epoch: int) -> int:
        """Another one each epoch: the engine counts this plan's epochs from 0 anew."""
        return (seed + epoch * _SEED_STEP + self._piece * _PIECE_STEP) % 2**63


def _in_order(dataset: Dataset, order: Order) -> Plan:
    if dataset.batch_size is not None:
        raise config_error(f"a {order.name} with a plan that is batched already",
                           "leave batch() out of the plan: the sampler chooses records")
    if dataset.streamed:
        raise config_error(f"a {order.name} over a stream, which has no record numbers",
                           "keep the records in memory or write them to a file first")
    return _Ordered(order, dataset.select, dataset.select([]))


def _of_headrace(dataset: Dataset, batch_size: int | None, shuffle: bool | None, sampler: Any, drop_last: bool,
                 world_size: int, even_shares: str) -> Plan:
    shuffled = arguments.wants_shuffle(shuffle, sampler)
    if dataset.batch_size is not None:
        return _of_batched(dataset, batch_size, shuffled, drop_last, world_size, even_shares)
    if batch_size is None:
        raise config_error("batch_size=None with a dataset that is not batched",
                           "end the plan with batch(), or say batch_size")
    if shuffled and dataset.streamed:
        raise config_error("shuffle=True: a stream cannot be permuted",
                           f"use Dataset.{'shuffle_window' if dataset.one_pass else 'shuffle_shards'}()")
    whole = _batched(dataset, shuffled, 1 if batch_size is UNSET else batch_size, drop_last, world_size, even_shares)
    return Plan(whole, 1 if batch_size is UNSET else batch_size)


def _of_batched(dataset: Dataset, batch_size: int | None, shuffled: bool, drop_last: bool, world_size: int,
                even_shares: str) -> Plan:
    if batch_size is not UNSET and batch_size is not None:
        raise config_error(f"batch_size = {batch_size}, but the plan ends in batch({dataset.batch_size}) already",
                           "leave one of them out")
    if shuffled or drop_last:
        raise config_error(f"{'shuffle' if shuffled else 'drop_last'}=True with a plan that is batched already",
                           "say shuffle() before batch() in the plan, and batch(..., drop_remainder=True)")
    batch = dataset.batch_size
    assert batch is not None, "the plan has batch()"
    if batch % world_size:
        raise config_error(f"a batch of {batch} for {world_size} processes",
                           "batch() is of all processes together: make it a multiple of their number")
    rest = _rest(dataset, world_size)
    if even_shares != "repeat" and rest:
        raise _too_few(rest, world_size, "end the plan with batch(..., drop_remainder=True), say even_shares=\"repeat\"")
    return Plan(dataset, batch // world_size)


def _batched(dataset: Dataset, shuffled: bool, batch_size: int, drop_last: bool, world_size: int, even_shares: str) -> Dataset:
    """The plan of all processes. ConfigError where one would have no example in the last batch: its loss would be that
    of nothing."""
    records = dataset.shuffle() if shuffled else dataset
    whole = records.batch(batch_size * world_size, drop_remainder=drop_last)
    rest = _rest(whole, world_size)
    if rest and even_shares == "drop":
        drop_last, whole, rest = True, records.batch(batch_size * world_size, drop_remainder=True), 0
    if drop_last and not dataset.streamed and len(whole) == 0 and dataset.records > 0:
        raise config_error(f"{dataset.records} records make no batch of {batch_size * world_size}, and drop_last=True "
                           "leaves them out", "make the batch smaller")
    if rest and even_shares == "off":
        raise _too_few(rest, world_size, "say drop_last=True, even_shares=\"repeat\"")
    return whole


def _rest(dataset: Dataset, world_size: int) -> int:
    """The examples of a last batch that has none for some process; 0: there is no such batch."""
    if world_size == 1 or dataset.streamed or len(dataset) == 0:
        return 0
    batch = dataset.batch_size
    assert batch is not None, "the plan has batch()"
    rest = dataset.records % batch
    return rest if rest < world_size and len(dataset) * batch > dataset.records else 0


def _too_few(rest: int, world_size: int, remedy: str) -> Exception:
    return config_error(f"the last batch of an epoch has {rest} examples for {world_size} processes: one would have none",
                        f"{remedy}, or another batch_size")


# ------------------------------------------------------------------------------------------------- torch's datasets


class _InOrder:
    """Some of the items, in an order."""

    def __init__(self, items: Parked, numbers: list[int]) -> None:
        self._items, self._numbers = items, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> Any:
        return self._items[self._numbers[index]]

    def _packed_item(self, index: int) -> list[bytes]:
        return self._items._packed_item(self._numbers[index])


class _FromTorch(Plan):
    """`batched` makes the plan of records in the order of the dataset's."""

    def __init__(self, records: Dataset, batched: Callable[[Dataset], Dataset], local_batch: int) -> None:
        self._batched = batched
        super().__init__(batched(records), local_batch)

    def numbers(self, epoch: int, options: Mapping[str, Any]) -> Iterator[list[int]]:
        twin = self._batched(from_arrays({"number": np.arange(self._dataset.records)}))
        loader = MovableLoader({**options, "prefetch": 2})
        loader.seek(twin, epoch=epoch, length=len(twin))
        for _ in range(len(twin)):
            yield loader.next().records.tolist()
        loader.pause()


class _Nothing(Plan):
    """Of a dataset without items."""

    def batches(self) -> int:
        return 0

    def of_epoch(self, epoch: int) -> tuple[Dataset, int | None]:
        return self._dataset, 0

    def numbers(self, epoch: int, options: Mapping[str, Any]) -> Iterator[list[int]]:
        return iter(())


def _of_torch(dataset: Any, batch_size: int, shuffle: bool | None, sampler: Any, order: Order | None,
              drop_last: bool, world_size: int, even_shares: str) -> Plan:
    if isinstance(dataset, str):
        raise config_error(f"DataLoader(): dataset = {dataset!r} is a str", "give headrace.open(path), with decode() for images")
    if isinstance(dataset, torch_data.IterableDataset) or not all(hasattr(dataset, name) for name in ("__getitem__", "__len__")):
        raise config_error(f"{type_words(dataset)} has no numbered items",
                           "make a Headrace dataset of it: hr.from_generator(lambda: iter(dataset), fields=...)")
    items, kind = Parked(dataset), type(dataset).__name__
    shuffled = arguments.wants_shuffle(shuffle, sampler) if order is None else False

    def in_order(numbers: list[int]) -> Dataset:
        digest = zlib.crc32(np.asarray(numbers, np.int64).tobytes())
        return from_torch_dataset(_InOrder(items, numbers), fields=FIELDS, version=digest)

    if order is not None:
        plan: Plan = _Ordered(order, in_order, in_order([0]))
    elif len(dataset) == 0:
        plan = _Nothing(in_order([0]).batch(batch_size), batch_size)
    else:
        plan = _FromTorch(from_torch_dataset(items, fields=FIELDS, name=kind), lambda records: _batched(
            records, shuffled, batch_size, drop_last, world_size, even_shares), batch_size)
    plan.parked = items
    return plan
