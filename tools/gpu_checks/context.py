"""Keeps the GPU's context open for as long as a check runs: the driver's state then outlives each program's.

It is done in a process of its own: a driver that hangs takes that along, not the check.
"""
import contextlib
import pathlib
import re
import sys

from gpu_checks.runner import stop, tail

HOLDER = pathlib.Path(__file__).with_name("hold_context.py")


@contextlib.contextmanager
def held(runner, device):
    """Gives a function that says how it went so far: "held", why not, or that the driver has not answered yet."""
    ordinal = (re.findall(r"\d+", device) or ["0"])[0]
    process = runner.start("context", [sys.executable, HOLDER, ordinal])
    try:
        yield lambda: tail(runner.logs / "context.log").strip() or "the driver has not answered yet"
    finally:
        stop(process)
