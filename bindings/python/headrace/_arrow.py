"""Tables of libraries that speak Arrow: pyarrow, Polars, DuckDB, Hugging Face datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _native
from ._dataset import Dataset
from ._errors import config_error
from ._plan_parts import held_alone
from ._sources import say_reading

if TYPE_CHECKING:
    from typing_extensions import Unpack


def from_arrow(data: Any | Callable[[], Any], **options: Unpack[_native.ArrowOptions]) -> Dataset:
    """A table of anything that has __arrow_c_stream__: a pyarrow Table or RecordBatchReader, a Polars or pandas DataFrame,
    a DuckDB relation; or a Hugging Face dataset. All of it is taken, without a copy of images and of numbers that the
    engine knows, and records are read by number. A function that returns such an object is a stream: its batches are
    read once by each loader and not kept, for tables larger than memory.

    The image is the only column of JPEG or PNG files, or image_column; the label is "label", or label_column: a number, or
    text, whose values are classes in bytewise order, or in the order of `classes`. "box.x" is a column in a struct. Lists
    are vectors, or of a varying first extent where they are of unequal length. Without image and `columns` all columns of
    numbers are taken. Prints in one line how it read the table, as headrace.open() does. A null makes its record bad.

    """
    given = {**options, "classes": options.get("classes") or _class_names(data, options.get("label_column") or "label")}
    if callable(data) and not hasattr(data, "__arrow_c_stream__"):
        held = _native.PlanFunction(lambda: _stream_of(data()))
        made = Dataset(_native.arrow_stream(held, given), parts=(held_alone(held),))
    else:
        made = Dataset(_native.arrow_table(_stream_of(data), given))
    say_reading(made)
    return made


from_arrow.__doc__ = f"{from_arrow.__doc__}{_native.ArrowOptions}"


def _is_hugging_face(data):
    return type(data).__module__.partition(".")[0] == "datasets" and hasattr(data, "with_format")


def _table_of(data):
    if not _is_hugging_face(data):
        return data
    if _format_of(data).get("type") == "custom":
        raise config_error("the dataset of Hugging Face has a transform, which its table lacks",
                           "give from_arrow() data.with_format(None) and say the transform with map(), or give "
                           "from_torch_dataset() the dataset")
    if not hasattr(data, "__len__"):
        raise config_error("a streaming dataset of Hugging Face has no table",
                           "give from_arrow() a loaded one, or from_generator() a function that returns iter(dataset)")
    if data._indices is not None:  # selected, sorted or shuffled: in its own order
        data = data.flatten_indices()
    table, chosen = data.data.table, _format_of(data).get("columns")
    return table.select(chosen) if chosen and chosen != table.column_names else table  # as its items are


def _format_of(data):
    form = getattr(data, "format", None)
    return form if isinstance(form, dict) else {}


def _class_names(data, label):
    if not _is_hugging_face(data) or not data.features:
        return ()
    return getattr(data.features.get(label), "names", None) or ()


def _stream_of(table):
    table = _table_of(table)
    if not hasattr(table, "__arrow_c_stream__"):
        raise config_error(f"{type(table).__name__} has no __arrow_c_stream__",
                           "give a pyarrow Table, a DataFrame of Polars, a DuckDB relation or a Hugging Face dataset")
    return table.__arrow_c_stream__()
