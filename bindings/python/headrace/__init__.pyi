"""Headrace's input engine: reads, decodes, shuffles, augments, batches and shards training data.

    import headrace as hr

    train = (hr.open("cifar10.tar.zst", split="train").decode().cache("memory").shuffle(seed=7)
             .map(hr.pad_crop(32, 4), hr.flip(), hr.normalize(mean, std), hr.to_layout("channels_first"))
             .batch(512).prefetch(2))
    loader = hr.Loader(train, epochs=10)
    for epoch in range(10):
        for batch in loader:
            step(batch.torch())
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: str

_Path: TypeAlias = str | os.PathLike[str]
_Split: TypeAlias = Literal["train", "test"]
_DTypeName: TypeAlias = Literal["uint8", "int32", "int64", "float16", "bfloat16", "float32"]
_Shape: TypeAlias = tuple[int | None, ...]

class Field(NamedTuple):
    """One named field of a record: its element type and shape. An extent of None differs from record to record."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    encoded: bool = ...  # the bytes of a JPEG or PNG file

# What names a field's type where one has to be declared: "int64" (a scalar), ("float32", (32, 32, 3)), "image" (the
# bytes of a JPEG or PNG file), or a Field, whose name is ignored.
_FieldLike: TypeAlias = str | tuple[str, _Shape] | Field

# ------------------------------------------------------------------------------------------------------- exceptions

class HeadraceError(Exception):
    """Says what was wrong, where, and what to do next. str() is "message (hint)", as in C++."""

    code: str  # "invalid_argument", "not_found", "timeout", "cancelled", ...
    message: str
    hint: str
    def __init__(self, text: str = "", *, code: str = "internal", message: str | None = None, hint: str = "") -> None: ...

class ConfigError(HeadraceError, ValueError):
    """What was asked for cannot be: a wrong option, an unknown name, shapes that do not match."""

    def __init__(
        self, text: str = "", *, code: str = "invalid_argument", message: str | None = None, hint: str = ""
    ) -> None: ...

class DataError(HeadraceError, OSError):
    """The input is missing, unreadable or malformed."""

    source: str
    record: int | None
    offset: int | None
    def __init__(
        self,
        text: str = "",
        *,
        code: str = "data_corrupt",
        message: str | None = None,
        hint: str = "",
        source: str = "",
        record: int | None = None,
        offset: int | None = None,
    ) -> None: ...

class DeviceError(HeadraceError, RuntimeError):
    """A device call failed."""

    device: str
    def __init__(
        self, text: str = "", *, code: str = "device", message: str | None = None, hint: str = "", device: str = ""
    ) -> None: ...

# ------------------------------------------------------------------------------------------------------- operations

class Operations:
    """What is done to a sample, or a chain of it, applied left to right: pad_crop(32, 4) | flip()."""

    def __or__(self, other: Operations, /) -> Operations: ...
    def __len__(self) -> int: ...

def pad_crop(size: int = 32, pad: int = 4, *, padding: Literal["zero", "reflect"] = "zero") -> Operations: ...
def flip(probability: float = 0.5, *, alternating: bool = False) -> Operations: ...
def normalize(mean: Sequence[float] | NDArray[Any], std: Sequence[float] | NDArray[Any]) -> Operations: ...
def cast(to: _DTypeName) -> Operations: ...
def to_layout(layout: Literal["channels_first", "channels_last"]) -> Operations: ...
def flatten() -> Operations: ...
def random_resized_crop(
    size: int = 224,
    *,
    area: tuple[float, float] = (0.08, 1.0),
    ratio: tuple[float, float] = (0.75, 4 / 3),
) -> Operations: ...
def resize(size: int) -> Operations: ...
def center_crop(size: int) -> Operations: ...
def color_jitter(
    *, brightness: float = 0.0, contrast: float = 0.0, saturation: float = 0.0, hue: float = 0.0
) -> Operations: ...
def brightness_contrast(*, brightness: float = 0.0, contrast: float = 0.0) -> Operations: ...
def cutout(size: int = 8, *, fill: float | Sequence[float] = 0.0) -> Operations: ...
def one_hot(classes: int, *, smoothing: float = 0.0) -> Operations: ...
def mixup(alpha: float = 0.2, *, probability: float = 1.0) -> Operations: ...
def cutmix(alpha: float = 1.0, *, probability: float = 1.0) -> Operations: ...

class Function:
    """A Python callable as an operation, for Dataset.map().

    Per sample, the default: `function` is given the sample as a dict of read-only NumPy arrays and returns a dict of
    the fields that it replaces or adds. It runs on the engine's threads, one at a time under the GIL (side by side on
    a free-threaded Python), and must depend on its input alone; what it raises is its record's fault, for `on_error`
    to deal with. With random=True it is called as function(sample, rng), with a numpy.random.Generator that is the
    record's in this pass, whoever runs it and when.

    With batched=True, behind batch(): it is given the fields of a whole batch and may change their shapes. It runs in
    the thread that takes the batch.

    `name` and `version` are part of every fingerprint: change `version` with the function. `outputs` declares what a
    function per sample returns; without it the function is tried on the first record. `inputs` are the fields that it
    is given; None: all.
    """

    def __init__(
        self,
        function: Callable[..., Mapping[str, ArrayLike]],
        *,
        name: str | None = None,
        version: int = 1,
        inputs: Sequence[str] | None = None,
        outputs: Mapping[str, _FieldLike] | None = None,
        random: bool = False,
        batched: bool = False,
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int: ...

function = Function

# ------------------------------------------------------------------------------------------------------- the plan

def open(
    path: _Path,
    split: _Split = "train",
    *,
    classes_at: str = "",
    train_folder: str = "",
    test_folder: str = "",
    label_count: int = 0,
    image_column: str = "",
    label_column: str = "",
    columns: Sequence[str] = (),
    label_type: Literal["auto", "class", "number"] = "auto",
) -> Dataset:
    """Opens whatever lies at `path`, recognised by content: folders, tar and zip archives of images, IDX and CIFAR
    binaries, WebDataset shards, TFRecords, NumPy arrays, CSV lists, Headrace's own record files. image_column,
    label_column, columns and label_type say which columns of a CSV table or features of TFRecords to take."""

def from_arrays(arrays: Mapping[str, ArrayLike], *, name: str = "arrays", classes: Sequence[str] = ()) -> Dataset:
    """Arrays whose first axis counts the records, one field each. C-ordered arrays of a type that the engine knows
    are not copied: do not change them while the dataset lives."""

def from_function(
    function: Callable[[int], Any],
    records: int,
    *,
    fields: Mapping[str, _FieldLike] | None = None,
    name: str | None = None,
    version: int = 1,
    classes: Sequence[str] = (),
) -> Dataset:
    """Records that function(index) makes, in any order and on several threads. A record is a dict of fields, or a
    tuple: ("image", "label") of two. Encoded images are bytes. Without `fields` record 0 is looked at."""

def from_generator(
    generator: Callable[..., Iterable[Any]],
    *,
    fields: Mapping[str, _FieldLike] | None = None,
    name: str | None = None,
    version: int = 1,
    in_memory: bool = False,
    memory_limit: int = 0,
    classes: Sequence[str] = (),
) -> Dataset:
    """Records that an iterator gives one after another: generator() is called once by each loader. A stream: one epoch,
    shuffled within windows only. A generator with a parameter `first` is asked for the records from there on when a
    loader is restored; of another one those before are passed over. in_memory=True reads all of it at once and keeps
    it, so that it is shuffled, counted and repeated like everything else."""

def from_torch_dataset(dataset: Any, *, fields: Mapping[str, _FieldLike] | None = None, name: str | None = None,
                       version: int = 1) -> Dataset:
    """Any object with __len__ and __getitem__, as torch.utils.data.Dataset. Items are dicts, tuples (image, label), or
    single arrays; of tensors, NumPy arrays, PIL images, numbers, or bytes of JPEG and PNG files."""

def concatenate(*parts: Dataset) -> Dataset: ...
def interleave(*parts: Dataset, block: int = 1) -> Dataset: ...
def mix(
    *parts: Dataset,
    weights: Sequence[float] | None = None,
    seed: int = 0,
    until: Literal["first_ends", "all_seen"] = "first_ends",
) -> Dataset: ...
def zip(*parts: Dataset, suffixes: Sequence[str] = ()) -> Dataset: ...

class Cache:
    """Decoded samples, kept in memory or in a folder. Given to several datasets of one plan it is shared."""

    def __init__(self, where: _Path | Literal["memory"] = "memory", *, budget_bytes: int = 0) -> None: ...
    @property
    def counters(self) -> dict[str, int]: ...

class Dataset:
    """An immutable plan: every method returns a new one, nothing is read until a Loader runs it."""

    def decode(self, *, height: int = 0, width: int = 0, apply_orientation: bool = False) -> Dataset: ...
    def map(
        self, *operations: Operations | Function | Callable[[dict[str, NDArray[Any]]], Mapping[str, ArrayLike]]
    ) -> Dataset: ...
    def filter(
        self,
        keeps: Callable[[dict[str, NDArray[Any]]], bool] | None = None,
        *,
        labels: Iterable[int] | None = None,
        name: str | None = None,
        version: int = 1,
        processed: bool = False,
    ) -> Dataset: ...
    def shuffle(self, seed: int = 0, *, reshuffle_each_epoch: bool = True) -> Dataset: ...
    def shuffle_window(self, size: int = 1024, *, seed: int = 0, reshuffle_each_epoch: bool = True) -> Dataset: ...
    def repeat(self, times: int) -> Dataset: ...
    def take(self, count: int) -> Dataset: ...
    def skip(self, count: int) -> Dataset: ...
    def shard(self, count: int, index: int) -> Dataset: ...
    def without_shard(self, count: int, index: int) -> Dataset: ...
    def shard_for_worker(
        self, count: int, index: int, *, by: Literal["auto", "file", "element"] = "auto"
    ) -> Dataset: ...
    def cache(self, where: Cache | _Path | Literal["memory"] = "memory", *, budget_bytes: int = 0) -> Dataset: ...
    def unbatch(self) -> Dataset: ...
    def batch(self, size: int, *, drop_remainder: bool = False) -> Dataset: ...
    def padded_batch(
        self,
        size: int,
        *,
        pad: Mapping[str, int | tuple[int, int]] | None = None,
        drop_remainder: bool = False,
    ) -> Dataset: ...
    def prefetch(self, batches: int) -> Dataset: ...
    def concatenate(self, *others: Dataset) -> Dataset: ...
    def explain(
        self,
        *,
        devices: str | None = None,
        seconds: float = 0,
        seed: int = 0,
        threads: int = 0,
    ) -> str: ...
    @property
    def fingerprint(self) -> str: ...  # 16 hexadecimal digits, as in a loader's state
    @property
    def fields(self) -> dict[str, Field]: ...
    @property
    def classes(self) -> list[str]: ...
    @property
    def columns(self) -> dict[str, tuple[str, str | None]]: ...  # of a CSV table or TFRecords; None: left out
    @property
    def records(self) -> int: ...  # in one epoch
    @property
    def streamed(self) -> bool: ...
    @property
    def batch_size(self) -> int | None: ...  # the global batch; None before batch()
    def to_json(self) -> str: ...
    def evaluation_json(self) -> str: ...
    @staticmethod
    def from_json(text: str, *, base: _Path = "", allow_paths: bool = True) -> Dataset: ...
    def _repr_html_(self) -> str: ...  # the plan as a table, for notebooks
    def __len__(self) -> int: ...  # batches in one epoch; records before batch()
    def __iter__(self) -> Iterator[Batch]: ...  # one epoch on the CPU, with the options as they are; see Loader

# ------------------------------------------------------------------------------------------------------- running it

class Tensor:
    """One field of a batch, in the memory of its device. Frameworks take it without a copy: numpy.asarray(t),
    torch.from_dlpack(t), jax.dlpack.from_dlpack(t); what they make of it keeps the memory alive, longer than batch
    and loader if need be."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def ndim(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def device(self) -> str: ...  # "cpu:0", "cuda:1"
    @property
    def data_ptr(self) -> int: ...
    def __len__(self) -> int: ...
    def __dlpack__(
        self,
        *,
        stream: int | Any | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def numpy(self) -> NDArray[Any]: ...
    def torch(self) -> Any: ...
    def jax(self) -> Any: ...
    def tensorflow(self) -> Any: ...
    def cupy(self) -> Any: ...

class BadRecord(NamedTuple):
    """A record that could not be used, and what stands in its place."""

    source: str
    record: int | None
    name: str
    offset: int | None
    operation: str
    cause: str
    substitute: int | None
    row: int

class Batch(Mapping[str, Tensor]):
    """One replica's share of a global batch: its fields by name, of the real examples alone."""

    def __getitem__(self, name: str, /) -> Tensor: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...  # fields
    def padded(self, name: str) -> Tensor:
        """The field with the rows that fill the batch up: the same shape for every batch of a loader."""
    @property
    def examples(self) -> int: ...
    @property
    def rows(self) -> int: ...  # with those that fill it up
    @property
    def epoch(self) -> int: ...
    @property
    def step(self) -> int: ...  # within the epoch
    @property
    def sequence(self) -> int: ...  # over all epochs
    @property
    def global_examples(self) -> int: ...
    @property
    def first_row(self) -> int: ...
    @property
    def last_of_epoch(self) -> bool: ...
    @property
    def replica(self) -> int: ...
    @property
    def records(self) -> NDArray[np.uint64]: ...  # each example's number in the source
    @property
    def bad_records(self) -> list[BadRecord]: ...
    def numpy(self) -> dict[str, NDArray[Any]]: ...
    def torch(self) -> dict[str, Any]: ...
    def jax(self) -> dict[str, Any]: ...
    def tensorflow(self) -> dict[str, Any]: ...
    def cupy(self) -> dict[str, Any]: ...

class Loader:
    """A running plan. Iterating gives the batches of one epoch, the rest of it after a restore or a break; the next
    `for` goes on with the next epoch, until `epochs` are over. Batches are made ahead, across epochs, by threads that
    do not hold the GIL. Ctrl-C works while it waits.

    The stream depends on the plan, `seed` and nothing else: not on threads, replicas, prefetch.

    devices: one a replica: "cpu", "cpu:4", "cuda:0,1", "auto". With several, take batches with next(replica) or
        replica(i), from one thread each if need be.
    epochs: None goes on for ever.
    world: (replicas, first): this loader serves the replicas from `first` on, one a device, of so many; a process of
        torchrun gives (world_size, rank).
    on_error: what becomes of records that cannot be used: "fail", "skip", "substitute".
    start: a state_dict() to continue from.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        devices: str = "cpu",
        epochs: int | None = 1,
        seed: int = 0,
        threads: int = 0,
        reader_threads: int = 0,
        prefetch: int | None = None,
        world: tuple[int, int] | None = None,
        start: Mapping[str, Any] | str | None = None,
        on_error: Literal["fail", "skip", "substitute"] = "fail",
        max_bad_share: float = 0.01,
        quarantine: _Path | None = None,
        convert: Literal["auto", "host", "device"] = "auto",
        converted: Literal["float32", "bfloat16"] = "float32",
        resident: Literal["auto", "never", "always"] = "auto",
        memory_budget_bytes: int = 0,
        pinned_budget_bytes: int = 0,
        resident_budget_bytes: int = 0,
        cpu_budget: int = 0,
        reader_limit: int = 8,
        numa_node: int = -1,
        core_type: int = -1,
        stall_timeout_seconds: float = 120,
        trace_spans: int = 0,
        headspace: int = 0,
    ) -> None: ...
    def __iter__(self) -> Iterator[Batch]: ...
    def __len__(self) -> int: ...  # batches of an epoch
    def next(self, replica: int = 0) -> Batch | None:
        """The replica's next batch, across epochs; None at the end of the last one."""
    def replica(self, replica: int) -> Iterator[Batch]:
        """The batches of one replica, to the end of the epoch."""
    def all_epochs(self) -> Iterator[Batch]:
        """The batches to the end of the last epoch."""
    def digest(self) -> str:
        """Takes what is left of the stream and gives its SHA-256, as `headrace digest` prints it."""
    def state_dict(self) -> dict[str, Any]:
        """Where it stands, after the last batch that every replica took: small, to be pickled or written as JSON."""
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from there, with other threads and replicas if need be. ConfigError where it is of another stream."""
    def stats(self) -> dict[str, Any]: ...
    def choices(self) -> list[tuple[str, str, str]]: ...  # what the engine decided for itself, and why
    @property
    def trace(self) -> str: ...  # in the Trace Event Format, where trace_spans were asked for
    @property
    def epoch(self) -> int: ...  # the one that the next batch is of
    @property
    def replicas(self) -> int: ...  # of this loader
    @property
    def devices(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def fields(self) -> dict[str, Field]: ...
    @property
    def dataset(self) -> Dataset: ...
    def close(self) -> None:
        """Stops its threads within a second. Batches and arrays of it live on."""
    def __enter__(self) -> Loader: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...
