"""The examples of bindings/python, where what they need is installed."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "bindings/python/examples").glob("*.py"))
MODULES = {"tensorflow-cpu": "tensorflow", "pillow": "PIL"}
ONE_PROCESS = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}


def needs(example):
    listed = re.findall("^# needs: (.*)$", example.read_text(), flags=re.MULTILINE)
    return [MODULES.get(name, name.split("[")[0]) for name in " ".join(listed).split()]


def test_there_are_examples():
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_without_data_an_example_says_so(example, tmp_path):
    for name in needs(example):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    done = subprocess.run([sys.executable, example, "--data", "no/such/data"], cwd=tmp_path, timeout=300, text=True,
                          capture_output=True, env=os.environ | ONE_PROCESS)
    assert done.returncode == 1, done.stderr
    assert "no/such/data" in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr, done.stderr
