"""Sources: files, arrays, and what Python makes."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._dataset import Dataset
from ._errors import HeadraceError, config_error
from ._fields import Field, FieldLike, Path, dtype_name, encoded_image, from_native
from ._function import name_of
from ._native.operations import layout_is
from ._plan_parts import MAKERS, Part, held_alone
from ._records import as_array, fields_of, is_encoded, packer, typed_array

if TYPE_CHECKING:
    from typing_extensions import Unpack


def open(path: Path, split: Literal["train", "test"] = "train", **options: Unpack[_native.SourceOptions]) -> Dataset:
    """Opens whatever lies at `path`, a path or a URL ("https://host/train-{000..099}.tar", "s3://bucket/prefix/", with
    the credentials of the environment), recognised by content: folders, tar and zip archives of images, IDX and CIFAR
    binaries, WebDataset shards, TFRecords, NumPy arrays, CSV tables, Headrace's own record files. How it was read,
    Dataset.reading, is printed on standard error in one line, by worker 0 of several. Dataset.columns says what was taken
    along and what was left out; pipeline/sources/README.md says how columns are read.

    """
    data = Dataset(_native.open(os.fspath(path), {"split": split, **options}))
    say_reading(data)
    return data


open.__doc__ = f"{open.__doc__}{_native.SourceOptions}"

_said: set[str] = set()  # readings; data that are opened again are read alike


def say_reading(data):
    reading = data.reading
    if reading in _said or sys.stderr is None or not _is_first_worker():
        return
    _said.add(reading)
    print(f"headrace: reading {reading}", file=sys.stderr)


def _is_first_worker():
    try:
        process = _native.launched_process()
    except HeadraceError:  # open_world() says what is wrong with the environment
        return True
    return process is None or not process[0]


def from_arrays(arrays: Mapping[str, ArrayLike] | NDArray[Any], *, name: str = "arrays", classes: Sequence[str] = (),
                layout: Literal["channels_first", "channels_last"] | None = None) -> Dataset:
    """Arrays whose first axis counts the records, one field each; a list of bytes is a field of JPEG and PNG files.
    A structured array stands for its fields, a DataFrame for its columns. C-ordered arrays of a type that the engine knows are not
    copied: do not change them while the dataset lives. Images are (N, H, W, C); layout="channels_first" says that they are
    (N, C, H, W)."""
    columns: Any = arrays
    if isinstance(arrays, np.ndarray) and arrays.dtype.names:
        columns = {field: arrays[field] for field in arrays.dtype.names}
    elif hasattr(columns, "columns") and hasattr(columns, "shape"):  # a DataFrame
        columns = {str(field): columns[field].to_numpy() for field in columns.columns}
    if not isinstance(columns, Mapping) or not columns:
        raise config_error("from_arrays() takes a dict of arrays", 'from_arrays({"image": images, "label": labels})')
    lengths = {field: len(values) for field, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise config_error(f"{name}: arrays of different lengths: {lengths}", "every array holds one entry a record")
    if any(len(values) and is_encoded(values[0]) for values in columns.values()):
        return _from_files_in_memory(columns, name, classes)
    given = [_column(field, values, name) for field, values in columns.items()]
    data = Dataset(_native.arrays(name, next(iter(lengths.values())), given, list(classes)))
    return data if layout is None else data.map(layout_is(layout))


def _column(field, values, name):
    array = as_array(values)
    if array.ndim == 0 or array.dtype == object:
        raise config_error(f"{name}: field '{field}' is {array.dtype} of {array.ndim} axes", "give arrays of numbers")
    if field == "image" and array.ndim == 3:
        array = array[..., np.newaxis]  # a channel, as images of .npy files are given
    dtype, array = typed_array(array, field, name)
    return Field(field, dtype, array.shape[1:]).native(), array


def _from_files_in_memory(arrays, name, classes):
    columns = {field: values if is_encoded(values[0]) else as_array(values) for field, values in arrays.items()}
    records = len(next(iter(columns.values())))
    fields = [encoded_image(field) if is_encoded(values[0]) else
              Field(field, dtype_name(values.dtype, field), values.shape[1:]) for field, values in columns.items()]
    content = hashlib.blake2b(digest_size=8)
    for field, values in columns.items():
        content.update(field.encode())
        for value in values:
            content.update(memoryview(value) if is_encoded(value) else np.ascontiguousarray(value))
    pack = packer(fields, name)
    return _generated(lambda index: pack({field: values[index] for field, values in columns.items()}),
                      records, fields, name, int.from_bytes(content.digest(), "little"), classes)


def _generated(make, records, fields, name, fingerprint, classes, anonymous=False):
    held = _native.PlanFunction(make)
    return Dataset(_native.generated(name, [field.native() for field in fields], records, fingerprint, anonymous,
                                     list(classes), held), parts=(held_alone(held),))


def _identity(*parts):
    return int.from_bytes(hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest(), "little")


def from_function(function: Callable[[int], Any], records: int, *, fields: Mapping[str, FieldLike] | None = None,
                  name: str | None = None, version: int = 1, classes: Sequence[str] = ()) -> Dataset:
    """Records that function(index) makes, in any order and on several threads. A record is a dict of fields, or a
    tuple: ("image", "label") of two. Encoded images are bytes. Without `fields` record 0 is looked at. `name` and
    `version` are what the stream is known by: change `version` with the function or its data. A cache on disk looks
    into some records as well where no name is given."""
    used = name_of(function) if name is None else name
    made = _fields_of_function(function, records, fields, used)
    return _with_part(_function(function, records=records, fields=[field.native() for field in made], name=used,
                                version=version, classes=list(classes), anonymous=name is None))


def _fields_of_function(function, records, fields, name):
    if records < 1:
        raise config_error(f"{name}: there are {records} records", "give the number of records")
    return fields_of(None if fields is not None else function(0), fields, name)


def _function(function, *, records, fields, name, version, classes, anonymous):
    made = [from_native(field) for field in fields]
    pack = packer(made, name)
    source = _generated(lambda index: pack(function(index)), records, made, name, _identity(name, version), classes, anonymous)
    return Part("function", name, function, {"records": records, "fields": fields, "name": name, "version": version,
                                             "classes": classes, "anonymous": anonymous}, source._native, source._parts[0].held)


def _with_part(part):
    return Dataset(part.native, parts=(part,))


def from_torch_dataset(dataset: Any, *, fields: Mapping[str, FieldLike] | None = None, name: str | None = None,
                       version: int = 1) -> Dataset:
    """Any object with __len__ and __getitem__, as torch.utils.data.Dataset. Items are dicts, tuples (image, label), or
    single arrays; of tensors, NumPy arrays, PIL images, numbers, or bytes of JPEG and PNG files."""
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        raise config_error(f"{type(dataset).__name__} has no __len__ and __getitem__",
                           "give an iterable to from_generator()")
    used = name_of(type(dataset)) if name is None else name
    made = _fields_of_function(dataset.__getitem__, len(dataset), fields, used)
    pack = packer(made, used)
    make = getattr(dataset, "_packed_item", None) or (lambda index: pack(dataset[index]))  # of headrace.torch
    return _generated(make, len(dataset), made, used, _identity(used, version),
                      getattr(dataset, "classes", None) or (), anonymous=name is None)


def from_generator(generator: Callable[..., Iterable[Any]], *, fields: Mapping[str, FieldLike] | None = None,
                   name: str | None = None, version: int = 1, in_memory: bool = False, memory_limit: int = 0,
                   classes: Sequence[str] = ()) -> Dataset:
    """Records that an iterator gives one after another: generator() is called once by each loader. A stream: one epoch,
    shuffled within windows only. A generator with a parameter `first` is asked for the records from there on when a
    loader is restored; of another one those before are passed over. in_memory=True reads all of it at once and keeps
    it, up to memory_limit bytes, so that it is shuffled, counted and repeated like everything else."""
    name = name_of(generator) if name is None else name
    if not callable(generator):
        raise config_error(f"{name} cannot be called", "give a function that returns an iterator, not the iterator")
    first_item = None
    if fields is None:
        first_item = next(iter(_records_from(generator, 0)), None)
        if first_item is None:
            raise config_error(f"{name} gives no record to look at", "say what its fields are with fields=")
    made = fields_of(first_item, fields, name)
    return _with_part(_generator(generator, fields=[field.native() for field in made], name=name, version=version,
                                 in_memory=in_memory, memory_limit=memory_limit, classes=list(classes)))


def _generator(generator, *, fields, name, version, in_memory, memory_limit, classes):
    pack = packer([from_native(field) for field in fields], name)
    held = None
    if in_memory:
        native = _native.pulled(name, fields, classes, memory_limit, _puller(generator, 0, pack))
    else:
        held = _native.PlanFunction(lambda first: _puller(generator, first, pack))
        native = _native.streamed(name, fields, _identity(name, version), classes, held)
    return Part("generator", name, generator, {"fields": fields, "name": name, "version": version, "in_memory": in_memory,
                                               "memory_limit": memory_limit, "classes": classes}, native, held)


MAKERS["function"] = _function
MAKERS["generator"] = _generator


def _records_from(generator, first):
    if "first" in _parameters(generator):
        return iter(generator(first=first))
    records = iter(generator())
    return itertools.islice(records, first, None) if first else records


def _parameters(generator):
    try:
        return inspect.signature(generator).parameters
    except (TypeError, ValueError):
        return {}


def _puller(generator, first, pack):
    records = _records_from(generator, first)

    def pull():
        for record in records:
            return pack(record)
        return None

    return pull
