"""The DataLoader: PyTorch's arguments in front of a headrace.Loader."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import torch
from torch.utils._pytree import tree_map

from headrace import Batch, Dataset
from headrace._errors import config_error
from headrace._loader import check_loader
from headrace._movable import MovableLoader
from headrace.torch import _arguments as arguments
from headrace.torch import _handover as handover
from headrace.torch._plan import UNSET, plan_of, without_subsets

_STATE_VERSION = 1


class DataLoader:
    """Gives batches of tensors, as torch.utils.data.DataLoader does for its common arguments.

    What it cannot honour it refuses, when it is made, with a ConfigError that says what to use in its place: worker_init_fn,
    multiprocessing_context, datasets without numbers (IterableDataset), and batches of several sizes. It stays as it is
    made: setting an attribute is an error. Those of worker processes (num_workers, prefetch_factor, persistent_workers,
    timeout) read as of a loader without any, for libraries that make another loader of this one.

    dataset: a Headrace dataset, a torch Subset of one (also of random_split()), or any object with __len__ and
        __getitem__ (a map-style torch Dataset). The items of the latter are made by Python code on the engine's threads,
        one at a time under the GIL.
    batch_size: examples of one batch of this process, 1 if nothing is said. Of a plan that ends in batch(): leave it
        out; the plan's is the batch of all processes. None, of a torch Dataset: items as they are, as there.
    shuffle, sampler: a full permutation, another one each epoch. Sequential-, Random- (without replacement) and
        DistributedSampler are recognised and done by the engine: the seed decides the order, which is not PyTorch's.
        A custom sampler, or an iterable of record numbers, is read at the start of each epoch and gives its order; for a
        number that it repeats random operations draw anew. Call its set_epoch(), if it has one. It chooses this process's
        records: leave out rank and world_size.
    batch_sampler: the same, of lists of record numbers, all of one length but for a smaller last one. One without an end,
        or a sampler, is read in pieces.
    collate_fn: is called with the samples of each batch, as a list; the loop sees what it returns. Of a torch Dataset they
        are its items, of any form, and None is torch's default_collate. Of a Headrace dataset they are dicts or, with
        `fields`, tuples of tensors: it takes apart a batch that was ready and usually copies it once more. Runs in Python
        on the loop's thread.
    num_workers: threads that decode and operate; 0: the engine chooses.
    prefetch_factor: batches ahead for each worker, as there; None: two batches in all.
    persistent_workers: None or True: the engine runs on between epochs and prepares the next one. False: it stops at
        each epoch's end.
    drop_last: the last, smaller batch of an epoch is left out.
    pin_memory: batches are copied into pinned memory, where there is a GPU. With `device` they need not be.
    timeout: seconds without a batch after which an error names the stage waited for; 0: the engine's 120.
    generator, seed: what is random. One of the two; with neither the seed is drawn from PyTorch's default generator
        (torch.manual_seed()), or 0 where there are several processes, which must agree.
    rank, world_size: this process among those that share the data, DistributedSampler's job; None: those of the
        DistributedSampler, of torch.distributed where it is initialised, or of the launcher's variables (torchrun,
        mpirun, srun, a Kubernetes Job with JOB_COMPLETIONS, TF_CONFIG); else 0 and 1.
        world_size=1 gives every process all the data.
    even_shares: "repeat" or "drop" where collectives need equally many examples of every process: the first examples of a
        batch that does not divide come once more at its end (`repeats` says how many of this process's last batch those
        are), or its last ones are left out. "off": some processes have one fewer.
    fields: names of fields: batches are then tuples of these. None: of a Headrace dataset they are dicts, of a torch
        Dataset what its items are.
    device: "cpu", or a GPU as "cuda:1", in whose memory the batches then are. Those of a torch Dataset are moved there
        by the loop's thread.
    copy: None: tensors are views of the engine's memory as long as the loop gives batches back before the engine
        needs their memory, and copies if it keeps them. True: copies always. False: views always; a loop that keeps
        batches stops, with an error that says so.
    options: more options of headrace.Loader, as on_error="skip".

    Iterating makes an epoch; the next one begins with the next iter(), or where set_epoch() says. state_dict() and
    load_state_dict() are those of torchdata's StatefulDataLoader: also within an epoch, with another number of threads
    or, the batch of all processes being the same, of processes. Within an epoch in the order of a custom sampler the state
    holds that order, a number per record; after resuming, the sampler is next read for the epoch that follows.
    """

    def __init__(
        self,
        dataset: Dataset | Any,
        batch_size: int | None = UNSET,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Any = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool | None = None,
        pin_memory_device: str = "",
        in_order: bool = True,
        seed: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        even_shares: Literal["off", "repeat", "drop"] = "off",
        fields: Sequence[str] | None = None,
        device: str | torch.device = "cpu",
        copy: bool | None = None,
        **options: Any,
    ) -> None:
        arguments.require_types(
            batch_size=1 if batch_size is UNSET else batch_size, shuffle=shuffle, num_workers=num_workers,
            collate_fn=collate_fn, pin_memory=pin_memory, drop_last=drop_last, timeout=timeout, generator=generator,
            prefetch_factor=prefetch_factor, persistent_workers=persistent_workers, in_order=in_order, seed=seed,
            fields=fields, copy=copy, even_shares=even_shares)
        arguments.refuse(worker_init_fn=worker_init_fn, multiprocessing_context=multiprocessing_context,
                         pin_memory_device=pin_memory_device)
        arguments.require_counts(num_workers=num_workers, timeout=timeout, prefetch_factor=prefetch_factor)
        arguments.require_alone(batch_sampler, batch_size=1 if batch_size is UNSET else batch_size, shuffle=shuffle,
                                sampler=sampler, drop_last=drop_last)
        dataset = without_subsets(dataset)
        self.device = arguments.one_device(device)
        self._collate = arguments.wanted_collate(collate_fn, dataset, batch_size=batch_size, fields=fields)
        self.rank, self.world_size = arguments.place_in_world(rank, world_size,
                                                              sampler if batch_sampler is None else batch_sampler)
        self._seed = arguments.seed_of(seed, generator, sampler, self.world_size)
        self._said_seed = seed is not None
        self._plan = plan_of(dataset, batch_size=batch_size, shuffle=shuffle, sampler=sampler, batch_sampler=batch_sampler,
                             drop_last=drop_last, world_size=self.world_size, even_shares=even_shares)
        self.dataset, self.sampler, self.generator = dataset, sampler, generator
        self.batch_size = self._plan.local_batch if batch_size is not None or isinstance(dataset, Dataset) else None
        self.drop_last, self.pin_memory, self.in_order = drop_last, pin_memory, in_order
        self.fields = None if fields is None else tuple(fields)
        self.collate_fn = handover.collate_fn_of(dataset, collate_fn)
        self._batch_sampler = batch_sampler
        self._threads, self._prefetch_factor, self._timeout = num_workers, prefetch_factor, timeout
        self._persistent = persistent_workers is not False
        self._form = self._plan.form_of(self.fields if self._plan.parked is None else None)
        self._pins = self._can_pin()
        self._even_shares, self._repeats = even_shares, 0
        # Of a GPU's memory nobody tells when a tensor of it goes, and a copy costs little.
        self._clones = self.device.type != "cpu" and copy is not False
        parked = self._plan.parked
        engine = self._loader_options(options)
        check_loader(self._plan.sample_plan, **engine)
        self._engine = MovableLoader(engine, False if self._pins or parked is not None else copy,
                                     when_closed=None if parked is None else parked.forget)
        self._epoch, self._begun = 0, False  # of the next iter(), or of the one that runs
        self._iterator: _Epoch | None = None
        self._resume: dict[str, Any] | None = None
        self._made = True

    # Those of worker processes, of which there are none.
    num_workers, prefetch_factor, persistent_workers, timeout = 0, None, False, 0
    worker_init_fn = multiprocessing_context = None
    pin_memory_device = ""

    @property
    def seed(self) -> int:
        """Of all that is random: that of a state once one was loaded."""
        return self._seed

    @property
    def batch_sampler(self) -> Any:
        """Gives the batches of the next epoch to torch's own loader; of a torch Dataset what was given, if anything was."""
        return handover.batches_of(self, self._batch_sampler)

    @property
    def repeats(self) -> int:
        """Of the batch that was given last: how many of its examples, the last ones, repeat others, by even_shares."""
        return self._repeats

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__dict__.get("_made") and not name.startswith("_") and (hasattr(self, name) or type(self) is DataLoader):
            raise config_error(f"setting {name} of a DataLoader has no effect: it stays as it was made",
                               f"make another one, with {name}" if hasattr(self, name) else "there is no such attribute")
        super().__setattr__(name, value)

    def _loader_options(self, more: Mapping[str, Any]) -> dict[str, Any]:
        said_here = {"world", "world_replicas", "world_first", "epochs", "start", "devices", "threads", "prefetch",
                     "stall_timeout_seconds"} & set(more)
        if said_here:
            raise config_error(f"{min(said_here)} is not an option of this DataLoader",
                               "device, num_workers, prefetch_factor, timeout, rank and world_size say the same here")
        options: dict[str, Any] = {
            "threads": self._threads, "seed": self.seed, "world_replicas": self.world_size, "world_first": self.rank,
            "in_order": self.in_order, "even_shares": self._even_shares,
        }
        if self._plan.parked is not None and more.get("headspace"):
            raise config_error("headspace over a torch Dataset, whose items are handed out once",
                               "leave it out, or make the dataset one of Headrace: hr.from_torch_dataset()")
        if self._plan.parked is None:
            options["devices"] = str(self.device)
        elif self._threads:
            options["reader_threads"] = self._threads
        if self._prefetch_factor is not None:
            options["prefetch"] = self._prefetch_factor * max(1, self._threads)
        if self._timeout:
            options["stall_timeout_seconds"] = float(self._timeout)
        return options | dict(more)

    def _can_pin(self) -> bool:
        if not self.pin_memory or self.device.type != "cpu":
            return False
        if torch.cuda.is_available():
            return True
        warnings.warn("pin_memory has no effect: there is no GPU to pin memory for", stacklevel=3)
        return False

    def _tensors(self, batch: Batch) -> dict[str, torch.Tensor]:
        if self._plan.parked is None and self.device.type != "cpu":
            tensors = batch.torch()
            return {name: tensor.clone() for name, tensor in tensors.items()} if self._clones else tensors
        tensors = {name: torch.from_numpy(array) for name, array in self._engine.arrays(batch).items()}
        pins = self._pins and self._plan.parked is None
        return {name: tensor.pin_memory() for name, tensor in tensors.items()} if pins else tensors

    def _given(self, tensors: dict[str, torch.Tensor]) -> Any:
        """What the loop sees of a batch."""
        if self._collate is None:
            return self._form(tensors)
        if self._plan.parked is not None:
            made = self._collate(self._plan.parked.collect(tensors["ticket"].tolist()))
            if self.device.type != "cpu":
                return tree_map(lambda leaf: leaf.to(self.device) if isinstance(leaf, torch.Tensor) else leaf, made)
            return _pinned(made) if self._pins else made
        rows = zip(*(tensor.unbind() for tensor in tensors.values()), strict=True)
        return self._collate([self._form(dict(zip(tensors, row, strict=True))) for row in rows])

    def __len__(self) -> int:
        """Batches of an epoch, the same for every process. TypeError of a stream."""
        return self._plan.batches()

    def set_epoch(self, epoch: int) -> None:
        """The epoch that the next iter() gives, from 0: what its order and its random numbers are drawn for."""
        if epoch < 0:
            raise config_error(f"set_epoch({epoch}): epochs count from 0")
        if self._resume is None or self._resume["epoch"] != epoch:
            self._epoch, self._begun, self._resume = int(epoch), False, None

    def __iter__(self) -> Iterator[Any]:
        self._end_iteration()
        resume, self._resume = self._resume, None
        if resume is not None and resume["engine"] is not None:
            self._epoch, step = int(resume["epoch"]), int(resume["step"])
            plan, length = self._plan.restored(resume)
            self._engine.set_option("seed", self._plan.seed_of_epoch(self.seed, self._epoch))
            self._engine.restore(plan, resume["engine"])
            self._iterator = _Epoch(self, length, step)
        else:
            self._iterator = self._begin(self._next_epoch())
        self._begun = True
        return self._iterator

    def _begin(self, epoch: int, step: int = 0) -> _Epoch:
        self._epoch = epoch
        plan, length = self._plan.of_epoch(epoch)
        self._seek(plan, length, step)
        return _Epoch(self, length, step)

    def _seek(self, plan: Dataset, length: int | None, step: int = 0) -> None:
        self._engine.set_option("seed", self._plan.seed_of_epoch(self.seed, self._epoch))
        if length != 0:
            self._engine.seek(plan, epoch=0 if self._plan.replanned else self._epoch, length=length, step=step)

    def _begin_elsewhere(self) -> int:
        """Ends what is iterated, for a loader that another library makes of this one; the epoch that it is to give."""
        self._end_iteration()
        epoch = self._next_epoch() if self._resume is None else int(self._resume["epoch"])
        self._epoch, self._begun, self._resume = epoch, True, None
        return epoch

    def _batch_at(self, epoch: int, step: int) -> Any:
        running = self._iterator
        if running is None or self._epoch != epoch or running.given != step:
            self._end_iteration()
            running = self._iterator = self._begin(epoch, step)
        return next(running)

    def _next_epoch(self) -> int:
        followed = arguments.followed_epoch(self.sampler)
        if followed is not None:
            return followed
        return self._epoch + 1 if self._begun else self._epoch

    def state_dict(self) -> dict[str, Any]:
        """Where the iteration stands, after the last batch that it gave."""
        if self._resume is not None:
            return dict(self._resume)
        running = self._iterator if self._begun else None
        return {
            "version": _STATE_VERSION,
            "seed": self.seed,
            "epoch": self._epoch,
            "step": 0 if running is None else running.given,
            "complete": running is not None and running.complete,
            "engine": None if running is None else self._engine.state(),
            **({} if running is None or running.complete else self._plan.state()),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iter() goes on from there: with the rest of the epoch, or after a complete one with the next."""
        if state.get("version") != _STATE_VERSION or not {"seed", "epoch", "step", "complete", "engine"} <= set(state):
            raise config_error("this is no state of headrace.torch.DataLoader",
                               "give what its state_dict() returned; a state of PyTorch's own loader does not fit")
        if self._said_seed and self.seed != state["seed"]:
            raise config_error(f"the state is of seed {state['seed']}, and this loader was given {self.seed}",
                               "give the same seed, or none: a state brings its own")
        self._end_iteration()
        self._seed = int(state["seed"])
        self._epoch, self._begun = int(state["epoch"]), bool(state["complete"])
        self._resume = None if state["complete"] else dict(state)

    def _end_iteration(self) -> None:
        if self._iterator is not None:
            self._iterator.end()
        self._iterator = None

    def stats(self) -> dict[str, Any]:
        """What the engine measured of itself since it began, as headrace.Loader.stats(); empty before the first batch."""
        return self._engine.stats()

    def __repr__(self) -> str:
        running = self._iterator if self._begun else None
        place = f"epoch {self._epoch}, step {0 if running is None else running.given}"
        return (f"<headrace.torch.DataLoader of {self.dataset!r}; batch_size {self.batch_size}, rank {self.rank} of "
                f"{self.world_size} on {self.device}; {place}>")

    def close(self) -> None:
        """Stops the engine's threads. Tensors live on; the next iter() starts them again."""
        self._end_iteration()
        self._engine.pause()

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _pinned(made: Any) -> Any:
    """What a collate_fn made, its tensors in pinned memory."""
    from torch.utils.data._utils.pin_memory import pin_memory  # torch's loader has it, under no public name

    return pin_memory(made)


class _Epoch:
    """The batches of one epoch of a DataLoader, of which one is iterated at a time."""

    def __init__(self, loader: DataLoader, length: int | None, step: int) -> None:
        self._loader, self._length = loader, length
        self.given, self.complete, self._ended = step, length is not None and step >= length, False
        self._comes_in_pieces = length is None and loader._plan.replanned
        self._piece_ended, self._number = False, None  # the number is the engine's, of the latest batch

    def __iter__(self) -> _Epoch:
        return self

    def __repr__(self) -> str:
        length = "unknown length" if self._length is None else f"{self._length} batches"
        return f"<an epoch of {length}, {self.given} given, of {self._loader!r}>"

    def __len__(self) -> int:
        if self._length is None:
            raise TypeError("a stream has no length")
        return self._length - self.given

    def __next__(self) -> Any:
        if self.complete:
            raise StopIteration
        if self._ended:
            raise config_error("this iteration of the DataLoader has ended: another one has begun since",
                               "make a DataLoader for each of two loops that run at a time")
        loader = self._loader
        batch = None if self._piece_ended else loader._engine.next(self._number)
        while batch is None:
            plan = loader._plan.more_of_epoch() if self._comes_in_pieces else None
            if plan is None:
                self._finish()
                raise StopIteration
            loader._seek(plan, None)
            batch = loader._engine.next()
        self._number = batch.epoch
        self.given += 1
        loader._repeats = batch.repeats
        tensors = loader._tensors(batch)
        try:
            return loader._given(tensors)
        finally:
            self._piece_ended = batch.last_of_epoch
            if self._piece_ended and not self._comes_in_pieces:
                self._finish()

    def _finish(self) -> None:
        self.complete = True
        if not self._loader._persistent:
            self._loader._engine.pause()

    def end(self) -> None:
        self._ended = True

