"""A running plan."""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import time
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._batch import Batch
from ._dataset import Dataset
from ._digest import digest_of
from ._errors import HeadraceError, config_error
from ._fields import Field, from_native
from ._native import Workers
from ._show import counted, fields_text

if TYPE_CHECKING:
    from typing_extensions import Unpack

_ENDLESS = 1 << 30  # epochs, for a run that its consumer ends
_STATE = "headrace"
_FUNCTIONS = "functions"

# Closed when the interpreter ends, while the engine's threads can still come back from Python.
_open_loaders: "weakref.WeakSet[Any]" = weakref.WeakSet()


def _close_all():
    _native.forget_exceptions()
    if _native.end_of_python():
        _write_open_files()
    for loader in list(_open_loaders):
        loader.close()
    _native.let_go_of_objects()


def _write_open_files():
    """A function that was left to itself, after a time-out, keeps the variables of its module: they are never deleted, and
    open files among them not written."""
    for each in gc.get_objects():
        if issubclass(type(each), io.IOBase):
            with contextlib.suppress(Exception):
                each.flush()


atexit.register(_close_all)


def _place_in(world: tuple[int, int] | Workers | Literal["auto"]) -> tuple[int, int]:
    """How many replicas, or processes, there are, and the number of the first one that is this process's."""
    if isinstance(world, Workers):
        return world.count, world.rank
    if isinstance(world, str):
        if world != "auto":
            raise config_error(f"world = '{world}' is not known", "give 'auto', Workers or (replicas, first)")
        return _native.place_worker()
    return world


def check_loader(dataset: Dataset, *, devices: str = "cpu", world: Any = None, **options: Any) -> None:
    """Throws what a Loader of these options for ever would. Nothing is started."""
    if world is not None:
        options["world_replicas"], options["world_first"] = _place_in(world)
    _native.check_loader(dataset._native, devices, {**options, "epochs": 1 if dataset.one_pass else _ENDLESS})


class Loader:
    """A running plan. Iterating gives the batches of one epoch, the rest of it after a restore or a break; the next
    `for` goes on with the next epoch, until `epochs` are over. Batches are made ahead, across epochs, by threads that
    do not hold the GIL. Ctrl-C works while it waits.

    The stream depends on the plan, `seed` and nothing else: not on threads, replicas, prefetch. With in_order=False
    batches come as they become ready, each once and as it is in order, those of an epoch before any of the next: a
    slow record holds up no other batch, of as many as are prefetched. Given up is their order, which depends on timing,
    and so is digest(). A state of such a loader continues anywhere, too.

    devices: one a replica: "cpu", "cpu:4", "cuda:0,1", "auto". With several, take batches with next(replica) or
        replica(i), from one thread each if need be.
    epochs: None goes on for ever.
    world: which replicas of all processes this loader serves, one a device; of an indexed source it reads their records
        alone. "auto": those of this process among the ones that torchrun, mpirun, srun, Kubernetes or TF_CONFIG started, each with as many
        devices; Workers, of open_world(): the same of those; (replicas, first): the replicas from `first` on, of so many,
        which world_replicas and world_first say as well. None: there is no other process.
    start: a state_dict() to continue from.
    options: those below; None is the default. With even_shares="repeat" a batch's first examples come once more
        (batch.repeats says how many of a share's last rows), with "drop" its last ones are left out. A batch of which
        on_error="skip" leaves nothing is not handed out: then an epoch has fewer batches than len() says.
    """

    def __init__(self, dataset: Dataset, *, devices: str = "cpu", epochs: int | None = 1,
                 world: tuple[int, int] | Workers | Literal["auto"] | None = None, start: Mapping[str, Any] | str | None = None,
                 **options: Unpack[_native.LoaderOptions]) -> None:
        self._by_process = isinstance(world, (str, Workers))
        self._options: dict[str, Any] = dict(options)
        if world is not None:
            twice = {"world_replicas", "world_first"} & options.keys()
            if twice:
                raise config_error(f"world beside {min(twice)}", "give one of them: world=(world_replicas, world_first)")
            self._options["world_replicas"], self._options["world_first"] = _place_in(world)
        self._endless = epochs is None
        if epochs is None:
            epochs = 1 if dataset.one_pass else _ENDLESS
        self._dataset = dataset
        self._devices = devices
        self._options["epochs"] = epochs
        self._functions = dataset._functions
        self.reset_function_times()
        self._start(start)
        _open_loaders.add(self)

    def _start(self, state):
        self._native = _native.Loader(self._dataset._native, self._devices,
                                      dict(self._options, start="" if state is None else self._position_of(state)),
                                      self._by_process)
        self._local_replicas = self._native.replicas()
        self._world = self._native.world()

    # --------------------------------------------------------------------------------------------------- batches

    def next(self, replica: int = 0, *, epoch: int | None = None) -> Batch | None:
        """The replica's next batch, across epochs; None at the end of the last one and, if the next batch is of a later epoch
        than `epoch`, before it. A batch of which skipping left no example is passed over. Of several replicas all take equally
        many: one whose share of a batch is empty gets it with 0 `examples`."""
        batch = self._native.next(replica, epoch)
        if self._functions and batch is not None:
            return self._apply(batch)
        return batch

    def _apply(self, batch):
        for function, times in zip(self._functions, self._times):
            began = time.perf_counter_ns()
            batch = function.on_batch(batch)
            times[0] += 1
            times[1] += batch.examples
            times[2] += time.perf_counter_ns() - began
        return batch

    def __iter__(self) -> Iterator[Batch]:
        if self._local_replicas != 1:
            raise config_error(f"the loader has {self._local_replicas} replicas, and each its own batches",
                               "take them with loader.replica(i) or loader.next(i)")
        return self.replica(0)

    def replica(self, replica: int) -> Iterator[Batch]:
        """The batches of one replica, to the end of the epoch."""
        epoch = None  # that of the first batch
        while (batch := self.next(replica, epoch=epoch)) is not None:
            epoch, last = batch.epoch, batch.last_of_epoch
            yield batch
            del batch  # not to be held while the next one is waited for
            if last:
                return

    def all_epochs(self) -> Iterator[Batch]:
        """The batches to the end of the last epoch."""
        if self._local_replicas != 1:
            iter(self)
        while True:
            batch = self.next()
            if batch is None:
                return
            yield batch
            del batch

    def digest(self) -> str:
        """Takes what is left of the stream and gives its SHA-256, as `headrace digest` prints it."""
        return digest_of(self) if self._functions else self._native.digest()

    def __len__(self) -> int:
        """Batches of an epoch. TypeError of a stream, and of shards that are not indexed until an epoch has ended."""
        if not self._knows_length():
            raise TypeError("a stream has no known length, or shards that are not indexed before an epoch has ended")
        return self._native.steps_per_epoch()

    def _knows_length(self) -> bool:
        return not self._dataset.one_pass and self._native.knows_steps()

    def __bool__(self) -> bool:
        return True

    # --------------------------------------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """Where it stands, after the last batch that every replica took: small, to be pickled or written as JSON."""
        state = {_STATE: self._native.state()}
        if self._functions:
            state[_FUNCTIONS] = self._function_names()
        return state

    def load_state_dict(self, state: Mapping[str, Any] | str) -> None:
        """Goes on from there, with other threads and replicas if need be. ConfigError where it is of another stream."""
        self._position_of(state)
        self._native.close()
        self._start(state)

    def _position_of(self, state: Mapping[str, Any] | str) -> str:
        if isinstance(state, str):
            return state
        if _STATE not in state:
            raise config_error(f"the state has no entry '{_STATE}'; it has {', '.join(map(str, state))}",
                               "give what state_dict() returned")
        if state.get(_FUNCTIONS, []) != self._function_names():
            raise config_error(f"the state is of a stream with the functions {state.get(_FUNCTIONS, [])}",
                               f"this one has {self._function_names()}")
        return state[_STATE]

    def _function_names(self) -> list[str]:
        return [f"{function.name}:{function.version}" for function in self._functions]

    # --------------------------------------------------------------------------------------------------- questions

    def stats(self) -> dict[str, Any]:
        """What it measured of itself so far: rates, waits, and what each stage took. consumer_wait_ns is the time spent
        in next(): of a consumer that asks ahead of its devices more than they stall."""
        return self._native.stats().to_dict()

    def choices(self) -> list[tuple[str, str, str]]:
        """What the engine decided for itself: (what, value, reason)."""
        return self._native.choices()

    def function_times(self) -> list[tuple[Any, tuple[int, ...]]]:
        """Of each function of whole batches: calls, examples, nanoseconds."""
        return [(function, tuple(times)) for function, times in zip(self._functions, self._times)]

    def reset_function_times(self) -> None:
        self._times = [[0, 0, 0] for _ in self._functions]

    @property
    def trace(self) -> str:
        """What its threads did lately, in the Trace Event Format. ConfigError where trace_spans is 0."""
        return self._native.trace()

    @property
    def epoch(self) -> int:
        """The epoch that the next batch is of."""
        return self._taken() // max(len(self), 1) if self._knows_length() else 0

    def _taken(self) -> int:
        """Batches up to the first one that some replica did not take, of all epochs."""
        return int(self._native.state().split()[2])

    @property
    def replicas(self) -> int:
        """How many it serves: one a device."""
        return self._local_replicas

    @property
    def world(self) -> tuple[int, int]:
        """The replicas of all processes, and the first one that it serves."""
        return self._world

    @property
    def devices(self) -> str:
        """Their names, "cpu:0, cpu:1"."""
        return self._native.devices()

    @property
    def threads(self) -> int:
        """Tasks that may compute at once now."""
        return self._native.threads()

    @property
    def fields(self) -> dict[str, Field]:
        """The fields of one sample, before functions of whole batches."""
        return {field[0]: from_native(field) for field in self._native.fields()}

    @property
    def dataset(self) -> Dataset:
        return self._dataset

    # --------------------------------------------------------------------------------------------------- end

    def close(self) -> None:
        """Stops its threads within a second. Batches and arrays of it live on."""
        self._native.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.close()

    def __del__(self) -> None:  # before the garbage collector clears what its threads may call
        if hasattr(self, "_native"):
            self.close()

    def __repr__(self) -> str:
        try:
            where, place = self.devices, self._place()
        except HeadraceError:
            where, place = self._devices, "closed"
        world, first = self._world
        part = f" (replicas {first} to {first + self._local_replicas - 1} of {world})" if world > self._local_replicas else ""
        batch = f"batches of {self._dataset.batch_size}"
        return f"<headrace.Loader {fields_text(self._dataset.fields)}; {batch} on {where}{part}; {place}>"

    def _place(self) -> str:
        """Where the next batch is."""
        taken = self._taken()
        if not self._knows_length():
            return f"after {counted(taken, 'batch', 'batches')}"
        steps = max(len(self), 1)
        return f"epoch {taken // steps}, step {taken % steps} of {steps}"


Loader.__doc__ = f"{Loader.__doc__}{_native.LoaderOptions}"
