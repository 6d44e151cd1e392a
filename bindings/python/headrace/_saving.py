"""Writes records as files: those of a dataset, or as they come."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._fields import FieldLike, Path
from ._plans import plan_of
from ._records import fields_of, packer

if TYPE_CHECKING:
    from ._dataset import Dataset


def save_records(data: Dataset, to: Path, *, split: Literal["train", "test"] = "train", shard_bytes: int = 0,
                 format: Literal["records", "webdataset"] = "records", max_side: int = 0, quality: int = 0, apply_orientation: bool = False, threads: int = 0,
                 on_error: Literal["fail", "skip"] = "fail", max_bad_share: float = 0.01) -> dict[str, int]:
    """Writes the records of a dataset without stages, from files, arrays, tables or Python functions, to the record
    file `to`, which hr.open() reads by position. With shard_bytes `to` is a folder that gets several files of about so
    many bytes, read as one data set; repeating an interrupted call resumes it. Streams, such as from_generator() and shards
    opened with indexed=False, are read once and need shard_bytes. The format "webdataset" writes tars instead,
    for data with an encoded image: 000000012.jpg, 000000012.cls, and other fields as 000000012.NAME.txt, .npy or .png.
    `to` may be in a store: "s3://bucket/key", gs:// or az://. Encoded images are decoded once to see that they are sound; with max_side larger ones are reduced to that side, with quality
    all become JPEGs of that quality. Returns records, bytes, shards, kept_shards (there before) and bad_records."""
    options = {"split": split, "shard_bytes": shard_bytes, "format": format, "max_side": max_side, "quality": quality,
               "apply_orientation": apply_orientation, "threads": threads, "on_error": on_error,
               "max_bad_share": max_bad_share}
    return _native.convert(plan_of(data), os.fspath(to), options)


class ShardWriter:
    """Writes records one at a time, without knowing how many there will be, as files that hr.open() reads as one data set:

        with hr.ShardWriter("s3://bucket/set", {"image": "image", "label": "int64"}, shard_bytes=64 << 20) as shards:
            for path in paths:
                shards.write({"image": path.read_bytes(), "label": label_of(path)})

    `fields` as from_generator() takes them; records are dicts, or tuples as there. The records of a shard are kept in memory
    until they have shard_bytes, and then checked and written with the options of save_records(). max_bad_share applies to
    each shard. The folder is no data set until finish(), which the end of `with` calls unless something was raised. Writing
    the same records again resumes an interrupted run: record files that already hold them are kept."""

    def __init__(self, to: Path, fields: Mapping[str, FieldLike], *, split: Literal["train", "test"] = "train",
                 shard_bytes: int = 64 << 20, classes: Sequence[str] = (), format: Literal["records", "webdataset"] = "records",
                 max_side: int = 0, quality: int = 0, apply_orientation: bool = False, threads: int = 0,
                 on_error: Literal["fail", "skip"] = "fail", max_bad_share: float = 0.01) -> None:
        made = fields_of(None, fields, os.fspath(to))
        self._pack = packer(made, os.fspath(to))
        self._native = _native.ShardWriter(os.fspath(to), [field.native() for field in made], list(classes), {
            "split": split, "shard_bytes": shard_bytes, "format": format, "max_side": max_side, "quality": quality,
            "apply_orientation": apply_orientation, "threads": threads, "on_error": on_error, "max_bad_share": max_bad_share})

    def write(self, record: Any) -> None:
        """Adds a record. Raises any failure to write the shard that was full before it."""
        self._native.append(self._pack(record))

    def finish(self) -> dict[str, int]:
        """Writes the last shard. Returns records, bytes, shards, kept_shards (there before) and bad_records."""
        return self._native.finish()

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.finish()
