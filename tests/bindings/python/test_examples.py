"""The examples of bindings/python, where what they need is installed."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "bindings/python/examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
FASHION = Path("/usr/share/datasets/fashion-mnist")
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


@pytest.mark.skipif(not FASHION.is_dir(), reason="the package dataset-fashion-mnist is not installed")
@pytest.mark.parametrize("name, options", [
    ("keras_distributed_training", ["--epochs", "1", "--records", "4000"]),
    ("custom_training", ["--epochs", "1", "--records", "2000", "--devices", "cpu:2"]),
    ("train_from_python", ["--records", "6000"]),
    ("pytorch_classifier", ["--epochs", "1", "--records", "8000"]),
])
def test_programs_of_the_trainer(name, options, tmp_path):
    done = subprocess.run([sys.executable, FOLDER / f"{name}.py", *options], cwd=tmp_path, timeout=300, text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr


def test_the_pipeline_of_dali(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for split, count in (("train", 5), ("val", 3)):
        for name in ("cat", "dog"):
            folder = tmp_path / "photographs" / split / name
            folder.mkdir(parents=True)
            for i in range(count):
                pixels = np.random.default_rng(i).integers(0, 256, (240 + i, 300 - i, 3), np.uint8)
                image.fromarray(pixels).save(folder / f"{i}.jpg")
    done = subprocess.run([sys.executable, FOLDER / "dali_resnet_pipeline.py", "--data", "photographs", "--devices", "cpu:2",
                           "--batch-size", "4", "--epochs", "2"], cwd=tmp_path, timeout=300, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert [line.split(",")[1] for line in done.stdout.splitlines()] == [" training: 10 images", " validation: 6 images"] * 2
