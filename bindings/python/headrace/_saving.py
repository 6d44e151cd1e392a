"""Writes the records of a dataset as record files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from . import _native
from ._plans import plan_of

if TYPE_CHECKING:
    from ._dataset import Dataset
    from ._fields import Path


def save_records(data: Dataset, to: Path, *, split: Literal["train", "test"] = "train", shard_bytes: int = 0,
                 format: Literal["records", "webdataset"] = "records", max_side: int = 0, quality: int = 0, apply_orientation: bool = False, threads: int = 0,
                 on_error: Literal["fail", "skip"] = "fail", max_bad_share: float = 0.01) -> dict[str, int]:
    """Writes the records of a dataset without stages, from files, arrays, tables or Python functions, to the record
    file `to`, which hr.open() reads by position. With shard_bytes `to` is a folder that gets several files of about so
    many bytes, read as one data set; repeating an interrupted call resumes it. The format "webdataset" writes tars instead,
    for data with an encoded image: 000000012.jpg, 000000012.cls, and other fields as 000000012.NAME.txt, .npy or .png.
    `to` may be in a store: "s3://bucket/key", gs:// or az://. Encoded images are decoded once to see that they are sound; with max_side larger ones are reduced to that side, with quality
    all become JPEGs of that quality. Returns records, bytes, shards, kept_shards (there before) and bad_records."""
    options = {"split": split, "shard_bytes": shard_bytes, "format": format, "max_side": max_side, "quality": quality,
               "apply_orientation": apply_orientation, "threads": threads, "on_error": on_error,
               "max_bad_share": max_bad_share}
    return _native.convert(plan_of(data), os.fspath(to), options)
