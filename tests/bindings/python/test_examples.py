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
    ("recipe", ["--records", "6000"]),
    ("pytorch_classifier", ["--epochs", "1", "--records", "8000"]),
])
def test_programs_of_the_trainer(name, options, tmp_path):
    run_example(name, *options, cwd=tmp_path)


@pytest.fixture
def photographs(tmp_path):
    """A folder in tmp_path with ten images to train on and six to validate with."""
    image = pytest.importorskip("PIL.Image")
    for split, count in (("train", 5), ("val", 3)):
        for name in ("cat", "dog"):
            folder = tmp_path / "photographs" / split / name
            folder.mkdir(parents=True)
            for i in range(count):
                pixels = np.random.default_rng(i).integers(0, 256, (240 + i, 300 - i, 3), np.uint8)
                image.fromarray(pixels).save(folder / f"{i}.jpg")
    return "photographs"


def run_example(name, *options, cwd):
    done = subprocess.run([sys.executable, FOLDER / f"{name}.py", *options], cwd=cwd, timeout=300, text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_pipeline_of_dali(photographs, tmp_path):
    printed = run_example("dali_resnet_pipeline", "--data", photographs, "--devices", "cpu:2", "--batch-size", "4",
                          "--epochs", "2", cwd=tmp_path)
    assert [line.split(",")[1] for line in printed.splitlines()] == [" training: 10 images", " validation: 6 images"] * 2


def test_pytorchs_imagenet_example(photographs, tmp_path):
    options = ["--data", photographs, "--size", "32", "-b", "4", "--devices", "cpu:2"]
    assert "val_accuracy" in run_example("pytorch_imagenet", *options, "--epochs", "1", cwd=tmp_path)
    again = run_example("pytorch_imagenet", *options, "--epochs", "2", "--resume", cwd=tmp_path)
    assert "Restoring from" in again and "Epoch 2/2" in again and "Epoch 1/2" not in again
    best = run_example("pytorch_imagenet", *options, "--evaluate", "checkpoints/best.safetensors", cwd=tmp_path)
    assert " * accuracy" in best
