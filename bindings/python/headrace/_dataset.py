"""The plan."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._batch import Batch
from ._calls import require_function
from ._errors import HeadraceError, config_error
from ._explain import explain_functions, measure
from ._fields import Field, Path, from_native
from ._function import Function, batch_function_of, name_of
from ._plan_parts import MAKERS, Part, read, write
from ._show import fields_text, plan_html


class Cache:
    """Decoded samples, kept in memory or in a folder. Given to several datasets of one plan it is shared."""

    def __init__(self, where: Path | Literal["memory"] = "memory", *, budget_bytes: int = 0) -> None:
        if where == "memory":
            self._native = _native.memory_cache(budget_bytes)
        else:
            self._native = _native.disk_cache(os.fspath(where), budget_bytes)

    @property
    def counters(self) -> dict[str, int]:
        """How often it had a sample: hits, misses, records, bytes, refused, bad."""
        return self._native.counters()

    def __repr__(self) -> str:
        return f"Cache({self._native.describe()})"


class Dataset:
    """An immutable plan: every method returns a new one, nothing is read until a Loader runs it. Before batch(), what
    chooses and orders records (shuffle, repeat, take, skip, select, shard, filter) may stand anywhere among decode(), map() and
    cache(): it is done first, on record numbers. Nothing random may stand before cache(). After batch() come mixup(),
    cutmix(), functions of whole batches and prefetch() alone."""

    def __init__(self, native: _native.Dataset, *, source_fields: Any = None,
                 functions: tuple[Function, ...] = (), parts: tuple[Part, ...] = ()) -> None:
        self._native = native
        self._parts = parts  # its Python functions, for its JSON
        # The fields as the source holds them: what filters see.
        self._source_fields = native.fields() if source_fields is None else source_fields
        self._functions = functions  # of whole batches, done where they are taken

    def _with(self, native: _native.Dataset, what: str | None = None, parts: tuple[Part, ...] = ()) -> Dataset:
        if self._functions and what is not None:
            raise config_error(f"{what} after {self._functions[-1]!r}, which works on whole batches",
                               f"put {what} before it")
        return Dataset(native, source_fields=self._source_fields, functions=self._functions, parts=(*self._parts, *parts))

    def _stage(self, name: str, **options: Any) -> Dataset:
        return self._with(_stage(self._native, name, **options), f"{name}()")

    # --------------------------------------------------------------------------------------------------- samples

    def decode(self, *, height: int = 0, width: int = 0, apply_orientation: bool = False) -> Dataset:
        """JPEG / PNG to uint8 (H, W, 3). height and width: what all images are known to measure, if they do. Where
        batch() needs one size and nothing brings the images to it, the size of the first image of the source counts,
        and an image of another size is a bad record.
        apply_orientation: turns images the way up that their EXIF data say."""
        return self._stage("decode", height=height, width=width, apply_orientation=apply_orientation)

    def map(self, *operations: _native.Operations | Function |
            Callable[[dict[str, NDArray[Any]]], Mapping[str, ArrayLike]]) -> Dataset:
        """What is done to each sample, one after another, also after batch(): the engine's operations and Python
        functions. mixup(), cutmix() and functions of whole batches follow batch(); after them, samples stay as they
        are."""
        result = self
        for operation in operations:
            result = result._map_one(operation)
        return result

    def _map_one(self, operation):
        if isinstance(operation, _native.Operations):
            return self._with(self._native.map(operation), "map() of the engine's operations")
        function = operation if isinstance(operation, Function) else Function(operation)
        if self._native.is_ragged():
            raise config_error(f"map({function.name}) after ragged_batch()",
                               "put functions of single samples before it, and work on its batches in your own loop")
        if function.batched:
            if self.batch_size is None:
                raise config_error(f"{function!r} works on whole batches", "put it after batch()")
            return Dataset(self._native, source_fields=self._source_fields, functions=(*self._functions, function),
                           parts=(*self._parts, function.batch_part()))
        if self._native.has_buckets():
            raise config_error(f"map({function.name}) of single samples after bucket_by_length()",
                               "put it before, or give hr.function(f, batched=True)")
        part = function.operation(self.fields, self._first_sample)
        return self._with(self._native.map(part.native), f"map({function.name}) of single samples", (part,))

    def _first_sample(self):
        """The arrays of the first record as the stages so far leave it; images that are not decoded as bytes."""
        fields = self.fields
        if any(field.encoded or None in field.shape for field in fields.values()):
            return self._first_through_filter(list(fields.values()))
        from ._loader import Loader
        with Loader(Dataset(_stage(_stage(self._of_samples(), "take", count=1), "batch", **{"global_batch": 1})), threads=1) as loader:
            first = loader.next()
            if first is None:
                raise _no_sample()
            return {name: tensor.numpy()[0].copy() for name, tensor in first.items()}

    def _of_samples(self):
        return self._native if self.batch_size is None else _stage(self._native, "unbatch")

    def _first_through_filter(self, fields):
        seen = {}

        def look(arrays):
            seen.update(zip((field.name for field in fields), arrays))
            return True

        native = [field.native() for field in fields]
        first = _stage(self._of_samples(), "take", count=1)
        first.filter(_native.python_filter(_native.PlanFunction(look), "first record", 1, True, native)).size()
        if not seen:
            raise _no_sample()
        return seen

    def filter(self, keeps: Callable[[dict[str, Any]], Any] | None = None, *, labels: Sequence[int] | None = None,
               name: str | None = None, version: int = 1, processed: bool = False) -> Dataset:
        """Only the records that keeps(sample) is true of, or whose label is among `labels`. It sees the fields as the
        source holds them (an image is still encoded: bytes), or with processed=True as decode() and map() before it
        leave them. All records are read once when the plan is first counted or opened. `name` and `version` are part
        of the fingerprint."""
        if (keeps is None) == (labels is None):
            raise config_error("filter() takes a function or labels", "filter(lambda sample: ...) or filter(labels=[3, 5])")
        if labels is not None:
            return self._stage("filter", labels=list(labels))
        require_function(keeps, "filter():")
        seen = self._native.fields() if processed else self._source_fields
        part = _filter(keeps, name=name_of(keeps) if name is None else name, version=version, processed=processed,
                       fields=[list(field) for field in seen])
        return self._with(self._native.filter(part.native), "filter()", (part,))

    def cache(self, where: Cache | Path | Literal["memory"] = "memory", *, budget_bytes: int = 0) -> Dataset:
        """Each sample kept as the stages before leave it: in memory, in a folder, or in a Cache. A plan may have
        several. Nothing random may precede it."""
        cache = where if isinstance(where, Cache) else Cache(where, budget_bytes=budget_bytes)
        return self._with(self._native.cache(cache._native), "cache()")

    # --------------------------------------------------------------------------------------------------- order

    def shuffle(self, seed: int = 0, *, reshuffle_each_epoch: bool = True) -> Dataset:
        """A permutation of the whole epoch, in O(1) memory; after batch(), of its batches. The seed is mixed with the
        loader's."""
        return self._stage("shuffle", seed=seed, reshuffle_each_epoch=reshuffle_each_epoch)

    def shuffle_window(self, size: int = 1024, *, seed: int = 0, reshuffle_each_epoch: bool = True) -> Dataset:
        """Shuffles each `size` consecutive records, after batch() batches, among themselves: for what is best read
        nearly in order."""
        return self._stage("shuffle_window", size=size, seed=seed, reshuffle_each_epoch=reshuffle_each_epoch)

    def shuffle_shards(self, window: int = 1024, *, shards: int = 8, seed: int = 0,
                       reshuffle_each_epoch: bool = True) -> Dataset:
        """Shuffles shards that are not indexed (`hr.open(path, indexed=False)`): `shards` of them are read at a time, in a random
        order, a record of each in turn, and records are shuffled within windows, two of which are kept in memory. The order
        depends on the seed and the list of shards alone, and has every record once an epoch. It comes first in a plan."""
        return self._stage("shuffle_shards", window=window, shards=shards, seed=seed,
                           reshuffle_each_epoch=reshuffle_each_epoch)

    def shuffle_blocks(self, block: int = 256, group: int = 16, *, seed: int = 0,
                       reshuffle_each_epoch: bool = True) -> Dataset:
        """Shuffles blocks of consecutive records, after batch() batches, and the records within groups of blocks: nearly as
        mixed as by shuffle(), but read in long runs. Needs no memory."""
        return self._stage("shuffle_blocks", block=block, group=group, seed=seed, reshuffle_each_epoch=reshuffle_each_epoch)

    def repeat(self, times: int) -> Dataset:
        """An epoch becomes `times` passes, each shuffled again. After batch() a batch does not cross passes."""
        return self._stage("repeat", times=times)

    def take(self, count: int) -> Dataset:
        """The first records; after batch(), batches. -1: all."""
        return self._with(self._native, "take()") if count == _ALL else self._stage("take", count=_counted("take", count))

    def skip(self, count: int) -> Dataset:
        """All but the first records; after batch(), batches. -1: skips all."""
        return self._stage("take", count=0) if count == _ALL else self._stage("skip", count=_counted("skip", count))

    def select(self, indices: ArrayLike | Sequence[int]) -> Dataset:
        """The records with these numbers, in this order: positions, from 0, of what the stages before leave; after
        batch(), batches. A list, a range, an array or a tensor. A number may be repeated: random operations before
        batch() then treat its record differently each time, unless a shuffle() precedes. One that is out of range is a
        ConfigError when the plan is first counted or opened."""
        return self._with(self._native.select(record_numbers(indices)), "select()")

    def shard(self, count: int, index: int) -> Dataset:
        """Every count-th record, after batch() batch, from `index` on."""
        return self._stage("shard", count=count, index=index)

    def without_shard(self, count: int, index: int) -> Dataset:
        """All records but those of shard(count, index)."""
        return self._stage("without_shard", count=count, index=index)

    def shard_for_worker(self, count: int, index: int, *, by: Literal["auto", "file", "element"] = "auto") -> Dataset:
        """One worker's part; parts are disjoint and complete. by: "file", "element", or "auto": by file where there is
        at least a file a worker. Loaders of one world need no sharding: see Loader(world=...)."""
        return self._stage("shard_for_worker", count=count, index=index, by=by)

    def enumerate(self, field: str = "index") -> Dataset:
        """Adds an int64 field: the position at which the stage stands. Before shuffle() it is a number of the record,
        after it the position in the epoch. Numbers of shuffled or repeated records may not stand before cache()."""
        return self._stage("enumerate", field=field)

    def unbatch(self) -> Dataset:
        """After batch(), undoes it: what follows counts records, in the order of the batches. Before it, a record of N
        equal samples, the first extent of every field, becomes N records."""
        unbatched = self._with(self._native, "unbatch()")
        if self.batch_size is not None:
            return unbatched._with(_stage(self._native, "unbatch"))
        return Dataset(_stage(self._native, "unbatch"), parts=self._parts)

    def window(self, size: int, *, shift: int | None = None, drop_remainder: bool = True) -> Dataset:
        """A record of each `size` consecutive ones, every `shift` records (default: size), with a new first axis. What
        it is called on is neither shuffled, decoded, mapped nor cached: do so with the result. Without drop_remainder
        the last windows are shorter, for padded_batch()."""
        if shift is not None and shift < 1:
            raise config_error(f"window(shift={shift}): the next window begins at least one record later",
                               "leave shift out for windows that do not overlap")
        windows = self._stage("window", size=size, shift=shift or 0, drop_remainder=drop_remainder)
        return Dataset(windows._native, parts=self._parts)

    def concatenate(self, *others: Dataset) -> Dataset:
        """This and the others, one after the other."""
        return concatenate(self, *others)

    # --------------------------------------------------------------------------------------------------- batches

    def batch(self, global_batch: int, *, drop_remainder: bool = False) -> Dataset:
        """Global batches of so many examples: each replica of a loader gets its share."""
        return self._stage("batch", global_batch=global_batch, drop_remainder=drop_remainder)

    def padded_batch(self, global_batch: int, *, pad: Mapping[str, int | tuple[int, int]] | None = None,
                     drop_remainder: bool = False) -> Dataset:
        """batch() of records whose fields differ in their first extent: each is padded to one length, and a field
        `<name>_length` says what was there. pad: the length for each field, or (length, byte value); a length of 0, and
        every field where pad is None, is the longest record's."""
        return self._stage("padded_batch", global_batch=global_batch, drop_remainder=drop_remainder, pad=_padding(pad))

    def ragged_batch(self, global_batch: int, *, max_length: Mapping[str, int | None] | None = None,
                     drop_remainder: bool = False) -> Dataset:
        """Batches samples whose fields differ in their first extent, without padding: a batch holds the entries of all
        rows one after another, and `<name>_offsets` (int64, rows + 1) says where each row begins, from 0 in every replica's
        part. max_length: the ragged fields and the maximum length of each, None for that of the source's longest record;
        left out: every field of varying length. A batch reserves memory for `global_batch` rows of that length, and a longer sample
        is a bad record. An image that is named and not decoded is its bytes."""
        fields = [{"field": field, "max_length": length or 0} for field, length in (max_length or {}).items()]
        return self._stage("ragged_batch", global_batch=global_batch, drop_remainder=drop_remainder, fields=fields)

    def bucket_by_length(self, field: str, boundaries: Sequence[int], batch_sizes: int | Sequence[int], *,
                         max_length: int | None = None, pad: Mapping[str, int | tuple[int, int]] | None = None,
                         drop_remainder: bool = False) -> Dataset:
        """Batches of records whose `field` has similar lengths: up to boundaries[0], up to boundaries[1], ..., longer. Of
        each bucket so many examples (batch_sizes: one for each of the len(boundaries) + 1, or one for all), padded to its
        boundary; the last one's to max_length, or to the longest record. A batch comes where its last example arrives, the
        smaller last ones at the end of the epoch. pad: as for padded_batch(), where a length of 0 is the bucket's. All
        lengths are read once, when the plan is first counted or opened. Batches have several shapes: batch[field].shape."""
        sizes = [operator.index(batch_sizes)] if isinstance(batch_sizes, SupportsIndex) else list(batch_sizes)
        return self._stage("bucket_by_length", field=field, boundaries=list(boundaries), batch_sizes=sizes,
                           max_length=max_length or 0, pad=_padding(pad), drop_remainder=drop_remainder)

    def prefetch(self, batches: int) -> Dataset:
        """Batches in flight ahead of the consumer."""
        return self._with(_stage(self._native, "prefetch", batches=batches))

    # --------------------------------------------------------------------------------------------------- questions

    def explain(self, *, devices: str | None = None, seconds: float = 0, seed: int = 0, threads: int = 0) -> str:
        """The plan as it will run, one stage a line. With devices also what they do themselves. With seconds it is run
        for so long: what each stage cost, Python functions among them, what bounds the stream, what would help."""
        text = self._native.explain(devices) + explain_functions(self._functions)
        if seconds > 0:
            text += measure(self, devices or "cpu", seconds, seed, threads)
        return text

    @property
    def fingerprint(self) -> str:
        """Identity of the stream: source, operations with versions and parameters, decoder. 16 hexadecimal digits."""
        return self._native.fingerprint()

    @property
    def fields(self) -> dict[str, Field]:
        """The fields of one sample after all operations."""
        return {field[0]: from_native(field) for field in self._native.fields()}

    @property
    def classes(self) -> list[str]:
        """Class names, where the source has them."""
        return self._native.classes()

    @property
    def reading(self) -> str:
        """How the source was read, in one line: format, split, classes, label, and what is left out, with the reasons.
        headrace.open() prints it on standard error."""
        return self._native.reading()

    @property
    def columns(self) -> dict[str, tuple[str, str | None]]:
        """Of a CSV table or TFRecords: {name: (what it holds, the field that it is)}; None for one that is left out."""
        return {name: (holds, field or None) for name, holds, field in self._native.columns()}

    @property
    def records(self) -> int:
        """Records in one epoch."""
        return self._native.size()

    @property
    def streamed(self) -> bool:
        """Whether its records are those of a stream, of unknown length."""
        return self._native.streamed()

    @property
    def one_pass(self) -> bool:
        """Whether it has one epoch only: a stream that cannot be read again, unlike shards."""
        return self._native.one_pass()

    @property
    def batch_size(self) -> int | None:
        """Examples of a global batch; None before batch()."""
        return self._native.batch_size()

    def to_json(self) -> str:
        """The plan as JSON, to be run elsewhere: by C++, by another process. Python functions are written as "module:name":
        they are to stand at the top of modules that can be imported there, and only Python runs the plan."""
        return write(self._native, self._parts)

    def evaluation_json(self) -> str:
        """The part of the plan that evaluates a model on other data: what is done to every record alike, without what is
        random. `headrace evaluate --plan` runs it on its --data."""
        if self._functions:
            raise config_error(f"{self._functions[0]!r} is a Python function", "its JSON holds the engine's operations alone")
        return self._native.evaluation_json()

    @staticmethod
    def from_json(text: str, *, base: Path = "", allow_paths: bool = True, allow_imports: bool = False) -> Dataset:
        """The plan that to_json() wrote, here or in C++. base: where its relative paths begin. allow_paths=False
        refuses texts that name files, from somebody who must not say which ones are opened. allow_imports=True imports
        and runs the Python functions that it names: for texts of those who may choose what runs here."""
        text, natives, parts = read(text, allow_imports)
        native = _native.Dataset.from_json(text, os.fspath(base), allow_paths, natives)
        functions = tuple(batch_function_of(part) for part in parts if part.native is None)
        return Dataset(native, functions=functions, parts=tuple(parts))

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.to_json(),)

    def __len__(self) -> int:
        if self.streamed:
            raise TypeError("a stream has no known length")  # shards that are not indexed, too
        return self._native.size() if self.batch_size is None else self._native.steps_per_epoch()

    def __getitems__(self, places: Sequence[Any]) -> list[Any]:
        """For PyTorch's own loader, of the batches of a headrace.torch.DataLoader."""
        if not all(hasattr(place, "batch") for place in places):
            raise config_error("a headrace.Dataset given to torch.utils.data.DataLoader",
                               "use headrace.torch.DataLoader, which takes the same arguments")
        return [place.batch() for place in places]

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Batch]:
        from ._loader import Loader
        with Loader(self) as loader:
            yield from loader

    def __repr__(self) -> str:
        try:
            batch = "" if self.batch_size is None else f"; batches of {self.batch_size}"
            return f"<headrace.Dataset {fields_text(self.fields)}{batch}>"
        except HeadraceError as error:  # of a plan that cannot run
            return f"<headrace.Dataset that cannot run: {error.message}>"

    def _repr_html_(self) -> str:
        try:
            return plan_html(repr(self), self.explain())
        except HeadraceError as error:
            return plan_html(repr(self), error.hint)


def _unpickled(text: str) -> Dataset:
    return Dataset.from_json(text, allow_imports=True)


def _no_sample():
    return config_error("there is no record to try the function on", "say what it returns: hr.function(f, outputs={...})")


_ALL = -1  # of take() and skip(), as tf.data has it


def _counted(call: str, count: int) -> int:
    if count < 0:
        raise config_error(f"{call}({count})", f"count from 0; {call}({_ALL}) {call}s all")
    return count


def record_numbers(indices: Any) -> NDArray[np.uint64]:
    """The numbers that select() is given. ConfigError where they are none."""
    numbers = np.asarray(indices)
    if numbers.dtype == bool:
        raise config_error("select() of a mask: it takes the numbers of records", "select(np.flatnonzero(mask))")
    if numbers.ndim != 1 or (numbers.size > 0 and numbers.dtype.kind not in "iu"):
        given = f"{numbers.dtype} {numbers.shape}" if numbers.ndim > 0 else type(indices).__name__
        raise config_error(f"select() of {given}", "give a list, a range or a one-dimensional array of whole numbers")
    if numbers.dtype.kind == "i" and (numbers < 0).any():
        place = int(np.argmax(numbers < 0))
        raise config_error(f"select(): number {numbers[place]}, at place {place} of the list, is negative",
                           "records are numbered from 0; len(data) - 1 is the last one's number")
    return np.ascontiguousarray(numbers, np.uint64)


def _options(options: Mapping[str, Any]) -> str:
    """As they stand in a plan's JSON."""
    return json.dumps(options, default=_plain)


def _plain(value):
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, SupportsIndex):
        return operator.index(value)
    raise config_error(f"{value!r} is a {type(value).__name__}", "give a number, a text, or a list of them")


def _stage(native, name, **options):
    return native.stage(name, _options(options))


def _padding(pad):
    entries = {field: entry if isinstance(entry, tuple) else (entry, 0) for field, entry in (pad or {}).items()}
    return [{"field": field, "length": length, "value": value} for field, (length, value) in entries.items()]


def _filter(keeps, *, name, version, processed, fields):
    names = [field[0] for field in fields]
    held = _native.PlanFunction(lambda arrays: bool(keeps(dict(zip(names, arrays)))))
    native = _native.python_filter(held, name, version, processed, fields)
    return Part("filter", name, keeps, {"name": name, "version": version, "processed": processed, "fields": fields}, native, held)


MAKERS["filter"] = _filter


def _natives(parts: Sequence[Dataset], what: str) -> list[_native.Dataset]:
    for part in parts:
        if not isinstance(part, Dataset):
            raise config_error(f"{what}() was given {type(part).__name__}", f"{what}(first, second, ...) of datasets")
        if part._functions:
            part._with(part._native, f"{what}()")
    return [part._native for part in parts]


def _combined(how: str, parts: Sequence[Dataset], **options: Any) -> Dataset:
    return Dataset(_native.combine(how, _natives(parts, how), _options(options)),
                   parts=tuple(part for dataset in parts for part in dataset._parts))


def concatenate(*parts: Dataset) -> Dataset:
    """One after the other. Every record of each once in an epoch. Of batched datasets: whole batches, which stay as they
    are; so it is for interleave() and mix()."""
    return _combined("concatenate", parts)


def interleave(*parts: Dataset, block: int = 1) -> Dataset:
    """In turn, `block` records of each, or batches if all are batched; one that has ended is passed over."""
    return _combined("interleave", parts, block=block)


def mix(*parts: Dataset, weights: Sequence[float] | None = None, seed: int = 0,
        until: Literal["first_ends", "all_seen"] = "first_ends") -> Dataset:
    """A random merge that keeps each dataset's order, in exact proportions: of records, or of whole batches if all are
    batched. until: "first_ends" (every one at most once) or "all_seen" (at least once)."""
    return _combined("mix", parts, weights=[] if weights is None else list(weights), seed=seed, end=until)


def zip_datasets(*parts: Dataset, suffixes: Sequence[str] = (), strict: bool = True) -> Dataset:
    """Record i has the fields of every dataset's record i. Of batched datasets batch i has the rows of every dataset's
    batch i, which must be equally many. strict: the datasets must be equally long, and images of files that stand side
    by side named alike ("7.jpg", "7_mask.png"); False: pairs by position alone and ends with the shortest. Masks beside
    photographs are paired by name: open(images, columns=["mask=../masks/{stem}_mask.png:mask"])."""
    return _combined("zip", parts, suffixes=list(suffixes), strict=strict)
