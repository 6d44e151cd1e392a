"""The engine's operations. Joined with |, or given to Dataset.map() one after another."""

from ._errors import config_error as _config_error
from ._native import Operations
from ._native import operations as _engine
from ._native.operations import *

_NAMES = sorted({name for name in vars(_engine) if not name.startswith("_")} - {"resize_to"})


def resize(size: int | tuple[int, int]) -> Operations:
    """The shorter side to `size`, aspect kept; or to (height, width), whatever the aspect. Antialiased."""
    if not hasattr(size, "__len__"):
        return _engine.resize(size)
    if isinstance(size, str) or len(size) != 2:
        raise _config_error(f"size = {size!r} is not 2 numbers", "give a list of 2 numbers")
    return _engine.resize_to(*size)
