"""The build backend of the wheel: scikit-build-core's, and then auditwheel's, so that the wheel carries the shared
libraries that it needs beside those that every Linux has."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scikit_build_core.build import *  # noqa: F403  the hooks that stay as they are
from scikit_build_core.build import build_wheel as _build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as folder:
        name = _build_wheel(folder, config_settings, metadata_directory)
        wheel = Path(folder, name)
        repaired = _with_libraries(wheel, Path(folder, "repaired"))
        shutil.copy2(repaired, wheel_directory)
        return repaired.name


def _with_libraries(wheel, folder):
    if sys.platform != "linux":
        return wheel
    done = subprocess.run(
        [sys.executable, "-m", "auditwheel", "repair", "--plat", "auto", "-w", str(folder), str(wheel)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"auditwheel could not give {wheel.name} its libraries:\n{done.stdout}")
    return next(folder.glob("*.whl"))

