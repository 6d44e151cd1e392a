"""What the tests of the Python package share."""

import io
import os
import subprocess
import sys
import tarfile
import textwrap

import numpy as np
import pytest

import headrace as hr
from worker_processes import LAUNCHERS

RECORDS = 100

os.environ["HEADRACE_INDEX_FOLDER"] = "off"  # of other tests' files with the same URL


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (RECORDS, 8, 8, 3), dtype=np.uint8)


@pytest.fixture
def labels():
    return np.arange(RECORDS) % 10


@pytest.fixture
def data(images, labels):
    return hr.from_arrays({"image": images, "label": labels})


@pytest.fixture
def shards(tmp_path):
    """A folder of three archives in WebDataset's naming, with 60 images whose labels are their numbers."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for shard in range(3):
        with tarfile.open(tmp_path / f"{shard}.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
            for number in range(20 * shard, 20 * shard + 20):
                pixels = io.BytesIO()
                image.fromarray(np.full((8, 8, 3), number, np.uint8)).save(pixels, "png")
                for name, content in (("png", pixels.getvalue()), ("cls", str(number).encode())):
                    member = tarfile.TarInfo(f"{number:03d}.{name}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
    return tmp_path


@pytest.fixture
def augmented(data):
    """A plan with everything random in it."""
    return data.shuffle(7).map(hr.pad_crop(8, 1), hr.flip(), hr.normalize([0.5] * 3, [0.2] * 3)).batch(16)


@pytest.fixture
def easy(request):
    """Images whose brightness tells their class, as many as the test's file says."""
    examples, classes = request.module.EXAMPLES, request.module.CLASSES
    labels = np.arange(examples) % classes
    noise = np.random.default_rng(0).integers(0, 40, (examples, 6, 6, 1))
    return hr.from_arrays({"image": (80 * labels[:, None, None, None] + noise).astype(np.uint8), "label": labels})


@pytest.fixture
def unlaunched(monkeypatch):
    """This process as if nothing had launched it."""
    for name in list(os.environ):
        if LAUNCHERS.match(name):
            monkeypatch.delenv(name)
    return monkeypatch


@pytest.fixture
def launched(unlaunched):
    """This process as worker 1 of 3."""
    unlaunched.setenv("RANK", "1")
    unlaunched.setenv("WORLD_SIZE", "3")
    return unlaunched


@pytest.fixture
def command():
    """The `headrace` command of the same build."""
    path = os.environ.get("HEADRACE_COMMAND", "")
    if not os.access(path, os.X_OK):
        pytest.skip("HEADRACE_COMMAND names no headrace command")
    return path


@pytest.fixture
def python():
    """Runs a program in a Python of its own: its completed process, after at most so many seconds."""

    def run(text, seconds=60, **options):
        return subprocess.run([sys.executable, "-c", textwrap.dedent(text)], timeout=seconds, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)

    return run


def pytest_make_parametrize_id(config, val, argname):
    return f"{argname}={val}"
