"""What a check works with: the programs of a build or a bundle, the data, the scripts to compare with."""
import contextlib
import dataclasses
import os
import pathlib
import pwd
import shutil
import subprocess
import sys

from gpu_checks.runner import stop

PLAN_FOLDER = "HEADRACE_CUDA_PLAN_FOLDER"
COLLECTIVE_TIMEOUT = "10"  # seconds: NCCL must start within them on a cold machine; a lost replica costs no more
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Missing(Exception):
    """Something that a part needs is not here; the message says what to do."""


@dataclasses.dataclass
class Machine:
    root: pathlib.Path  # the tree, or its copy in a bundle
    bundle: pathlib.Path | None  # or the build folder where there is none
    build: pathlib.Path
    data: pathlib.Path | None
    photographs: pathlib.Path | None
    peers: pathlib.Path | None
    work: pathlib.Path  # scratch
    device: str  # "cuda:0"
    rehearsal: bool = False  # on a processor

    def program(self, name):
        """The path of headrace, test_devices, kernels_bench ..."""
        folders = [self.bundle / "bin"] if self.bundle else [self.build, self.build / "tests", self.build / "bench"]
        for folder in folders:
            if (folder / name).is_file():
                return folder / name
        raise Missing(f"no {name} in {', '.join(map(str, folders))}: pack it with tools/bundle, or build it")

    def two_replicas(self):
        """That share the device."""
        return "cpu:2" if self.rehearsal else f"{self.device}x2"

    def module(self):
        """The CUDA module; where the bundle's programs look for it themselves, or a build's."""
        return (self.bundle / "lib" if self.bundle else self.build) / "libheadrace_cuda.so"

    def need_data(self):
        if self.data is None:
            raise Missing("no data: give --data cifar10.tar.zst, here or to tools/bundle")
        return self.data

    def environment(self):
        """Returns the environment of every command: CUDA's libraries for the loader, data for the tests, a home. Convolution plans
        are kept for this check, unless the caller names their folder: without one, a recipe that tunes takes cuDNN's first."""
        environment = dict(os.environ)
        environment["HOME"] = environment.get("HOME") or own_home() or str(self.work)
        environment[PLAN_FOLDER] = environment.get(PLAN_FOLDER) or str(self.work / "plans")
        environment["HEADRACE_SOURCE"] = str(self.root)
        environment.setdefault("HEADRACE_COLLECTIVE_TIMEOUT", COLLECTIVE_TIMEOUT)
        if self.data is not None:
            environment["HEADRACE_DATA"] = str(self.data.parent)
        if self.bundle is None and self.module().exists():  # tests lie below the build's own folder
            environment["HEADRACE_CUDA_MODULE"] = str(self.module())
        finder = self.bundle / "bin/headrace-env" if self.bundle else self.root / "tools/headrace-env"
        found = subprocess.run([finder], capture_output=True, text=True, env=environment).stdout.split("\n")
        paths = [environment.get("LD_LIBRARY_PATH", ""), *found]
        if joined := ":".join(path for path in paths if path):
            environment["LD_LIBRARY_PATH"] = joined
        return environment


def own_home():
    """Returns the home folder that the system records for this user; None if it cannot be written to."""
    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return None
    return home if os.access(home, os.W_OK | os.X_OK) else None


@contextlib.contextmanager
def driver_held(runner):
    """Within, a program that looks at the GPU keeps its driver's state, which else ends and begins with each program's."""
    tool = find_tool("nvidia-smi")
    process = runner.start("held", [tool, "--loop=30", "--query-gpu=timestamp,clocks.sm,power.draw,temperature.gpu",
                                    "--format=csv"]) if tool else None
    try:
        yield
    finally:
        if process:
            stop(process)


def find_tool(name, *folders):
    """The path of a program of CUDA's, on PATH or in the usual folders; None where it is absent."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/cuda/bin", *folders])
    return shutil.which(name, path=path)


def torch_python():
    """A Python with PyTorch: this one, python3 of PATH, or that of bench/peers/setup."""
    peers = os.environ.get("HEADRACE_PEERS") or os.path.expanduser("~/.cache/headrace-peers")
    for python in (sys.executable, shutil.which("python3"), f"{peers}/bin/python"):
        if python and shutil.which(python):
            probe = subprocess.run([python, "-c", "import importlib.util as u; exit(u.find_spec('torch') is None)"])
            if probe.returncode == 0:
                return python
    raise Missing("no Python with PyTorch here: install torch, or name its environment in HEADRACE_PEERS")
