"""The processes that train together."""

from __future__ import annotations

import atexit
import os
import sys
import traceback
import weakref
from typing import TYPE_CHECKING

from . import _native
from ._native import Workers

if TYPE_CHECKING:
    from typing_extensions import Unpack

_process = os.getpid()
_joined: "weakref.WeakSet[Workers]" = weakref.WeakSet()


def open_world(*, share_cores: bool = True, **options: Unpack[_native.WorkerOptions]) -> Workers | None:
    """Joins the workers that torchrun, mpirun, srun, Kubernetes or TF_CONFIG started together, and waits for all of
    them; None for a process that runs alone. Call it first: what was started before keeps its cores.

    DeviceError names those that did not join. HEADRACE_WORLD_SECRET or HEADRACE_WORLD_SECRET_FILE, on all workers,
    keeps others out.

    share_cores: this thread, and those that it starts from then on, take the worker's share of its host's cores, unless
        the launcher gave each its own.
    """
    workers = _native.open_world(share_cores, dict(options))
    if workers is not None:
        _joined.add(workers)
    return workers


open_world.__doc__ = f"{open_world.__doc__}{_native.WorkerOptions}"


def _tell_of_end() -> None:
    """The others would wait for a worker whose program has ended."""
    error = getattr(sys, "last_value", None)
    for workers in list(_joined) if os.getpid() == _process else []:  # a forked child is no worker
        if error is not None:
            workers.abort("".join(traceback.format_exception_only(error)).strip())
        workers.sign_off()


atexit.register(_tell_of_end)
