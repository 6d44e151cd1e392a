"""What a check works with: the programs of a build or a bundle, the data, the scripts to compare with."""
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

from gpu_checks.gtest import gpu_filter, list_text
from gpu_checks.test_runs import TestRun

TEST_DEVICES = "HEADRACE_TEST_DEVICES"
COLLECTIVE_TIMEOUT = "3"  # seconds: a replica that does not come costs that, and not a part's time
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

    def program(self, name):
        """The path of headrace, test_devices, kernels_bench ..."""
        folders = [self.bundle / "bin"] if self.bundle else [self.build, self.build / "tests", self.build / "bench"]
        for folder in folders:
            if (folder / name).is_file():
                return folder / name
        raise Missing(f"no {name} in {', '.join(map(str, folders))}: pack it with tools/bundle, or build it")

    def test_runs(self):
        """What counts most first: the tests that are for CUDA by name; programs that take their devices from
        HEADRACE_TEST_DEVICES whole, on one replica, then on two that share the GPU."""
        folder = self.bundle / "bin" if self.bundle else self.build / "tests"
        programs = [path for path in sorted(folder.glob("test_*")) if path.is_file() and os.access(path, os.X_OK)]
        taking = sorted((path for path in programs if TEST_DEVICES.encode() in path.read_bytes()),
                        key=lambda path: (path.name != "test_train", path.name))
        runs = []
        for path in programs:
            if path not in taking and (wanted := gpu_filter(list_text(path))):
                runs.append(TestRun(f"{path.name}@cuda", path, wanted, {}))
        for spec in (self.device, f"{self.device}x2"):
            runs += [TestRun(f"{path.name}@{spec}", path, "*", {TEST_DEVICES: spec}) for path in taking]
        return runs

    def need_data(self):
        if self.data is None:
            raise Missing("no data: give --data cifar10.tar.zst")
        return self.data

    def environment(self):
        """That of every command: the bundle's programs on PATH, CUDA's libraries for the loader, data for the tests."""
        environment = dict(os.environ)
        environment["HEADRACE_SOURCE"] = str(self.root)
        environment.setdefault("HEADRACE_COLLECTIVE_TIMEOUT", COLLECTIVE_TIMEOUT)
        if self.data is not None:
            environment["HEADRACE_DATA"] = str(self.data.parent)
        if self.bundle is None and (self.build / "libheadrace_cuda.so").exists():  # tests lie below the build's own folder
            environment["HEADRACE_CUDA_MODULE"] = str(self.build / "libheadrace_cuda.so")
        if self.bundle is not None:
            environment["PATH"] = os.pathsep.join([environment.get("PATH", os.defpath), str(self.bundle / "bin")])
        finder = self.bundle / "bin/headrace-env" if self.bundle else self.root / "tools/headrace-env"
        found = subprocess.run([finder], capture_output=True, text=True, env=environment).stdout.split("\n")
        paths = [environment.get("LD_LIBRARY_PATH", ""), *found]
        if joined := ":".join(path for path in paths if path):
            environment["LD_LIBRARY_PATH"] = joined
        return environment


def find_tool(name, *folders):
    """The path of a program of CUDA's, on PATH or in the usual folders; None where it is absent."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/cuda/bin", *folders])
    return shutil.which(name, path=path)


def torch_python():
    """A Python with PyTorch: this one, python3 of PATH, or that of bench/peers/setup."""
    peers = os.environ.get("HEADRACE_PEERS", pathlib.Path.home() / ".cache/headrace-peers")
    for python in (sys.executable, shutil.which("python3"), str(pathlib.Path(peers) / "bin/python")):
        if python and shutil.which(python):
            probe = subprocess.run([python, "-c", "import importlib.util as u; exit(u.find_spec('torch') is None)"])
            if probe.returncode == 0:
                return python
    raise Missing("no Python with PyTorch here: install torch, or name its environment in HEADRACE_PEERS")


def open_bundle(path, work):
    """The folder of a bundle; an archive is unpacked into `work`."""
    if path.is_dir():
        return path
    into = work / "bundle"
    into.mkdir()
    if path.suffix == ".zst":
        subprocess.run(["tar", "--zstd", "-x", "-f", path, "-C", into], check=True)
    else:
        with tarfile.open(path) as archive:
            archive.extractall(into, **({"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}))
    return next(into.iterdir())
