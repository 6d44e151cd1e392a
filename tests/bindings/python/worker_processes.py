"""Processes that are started with torchrun's variables, for the tests of several workers."""

import json
import os
import random
import re
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import headrace as hr

LAUNCHERS = re.compile("^(RANK|WORLD_SIZE|LOCAL_|MASTER_|TF_CONFIG|OMPI_|MV2_|PMI|SLURM_|JOB_COMPLETION|HEADRACE_COORD|HEADRACE_WORLD|TORCHELASTIC)")

with_module = pytest.mark.skipif(not (Path(hr.__file__).parent / "libheadrace_workers.so").exists(),
                                 reason="the wheel was built without gRPC or Gloo")


def free_port():
    """The first of two that nobody has: torchrun's own store would take it, the coordinator takes the next one.

    Below the ports that Linux hands to clients (32768 on), which could take them before anybody listens."""
    for port in random.sample(range(12_000, 32_000, 2), 100):
        with socket.socket() as one, socket.socket() as next_one:
            try:
                one.bind(("", port))
                next_one.bind(("", port + 1))
                return port
            except OSError:
                continue
    raise RuntimeError("no two ports are free")


def without_launcher():
    """This process's variables, as if nothing had launched it."""
    return {name: value for name, value in os.environ.items() if not LAUNCHERS.match(name)}


def variables(rank, count, port):
    place = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": count}
    return without_launcher() | {name: str(value) for name, value in place.items()} | {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "HEADRACE_CPU_THREADS": "1"}


def start(text, *, count=2, ranks=None, port=None):
    """Starts a program as these ranks of a world: the processes."""
    port = port or free_port()
    command = [sys.executable, "-c", textwrap.dedent(text)] if isinstance(text, str) else [sys.executable, *text]
    return [subprocess.Popen(command, env=variables(rank, count, port), text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
            for rank in (range(count) if ranks is None else ranks)]


def finish(processes, seconds=120):
    """What each printed and its exit status."""
    try:
        printed = [process.communicate(timeout=seconds)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return printed, [process.returncode for process in processes]


def run(text, **options):
    printed, statuses = finish(start(text, **options))
    assert not any(statuses), printed
    return printed


def results(text, **options):
    """The last line of each worker, which is JSON."""
    return [json.loads(one.splitlines()[-1]) for one in run(text, **options)]
