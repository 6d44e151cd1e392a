"""The processes that train together."""

from __future__ import annotations

import atexit
import os
import sys
import traceback
import weakref

from . import _native
from ._native import Workers

_process = os.getpid()
_joined: "weakref.WeakSet[Workers]" = weakref.WeakSet()


def open_world(*, start_timeout: float = 300, call_timeout: float = 60, share_cores: bool = True,
               listen: str = "") -> Workers | None:
    """Joins the workers that torchrun, mpirun, srun, Kubernetes or TF_CONFIG started together, and waits for all of
    them; None for a process that runs alone. Call it first: what was started before keeps its cores.

    start_timeout: seconds for all workers to join. DeviceError names those that did not.
    call_timeout: seconds that a worker waits for the others to reach the same call.
    share_cores: this thread, and those that it starts from then on, take the worker's share of its host's cores, unless
        the launcher gave each its own.
    listen: the address of its host at which worker 0 waits for the others; "": as HEADRACE_WORLD_LISTEN says, else
        loopback where the others are said to reach it there, else every address. HEADRACE_WORLD_SECRET or
        HEADRACE_WORLD_SECRET_FILE, on all workers, keeps others out.
    """
    workers = _native.open_world(start_timeout, call_timeout, share_cores, listen)
    if workers is not None:
        _joined.add(workers)
    return workers


def _tell_of_end() -> None:
    """The others would wait for a worker whose program has ended."""
    error = getattr(sys, "last_value", None)
    for workers in list(_joined) if os.getpid() == _process else []:  # a forked child is no worker
        if error is not None:
            workers.abort("".join(traceback.format_exception_only(error)).strip())
        workers.sign_off()


atexit.register(_tell_of_end)
