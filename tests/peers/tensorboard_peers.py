# peers: tensorboard numpy
# builds: headrace
"""Event files of `headrace train --tensorboard` as TensorBoard's own reader has them, against the lines of --json."""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import peers

rng = np.random.default_rng(7)
EPOCHS, STEPS, EVERY = 3, 20, 5


def write_idx(path, array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(int(extent).to_bytes(4, "big") for extent in array.shape)
    path.write_bytes(header + array.tobytes())


def write_digits(folder):
    for half, count in (("train", 10_300), ("t10k", 40)):
        write_idx(folder / f"{half}-images-idx3-ubyte", rng.integers(0, 256, (count, 28, 28), dtype=np.uint8))
        write_idx(folder / f"{half}-labels-idx1-ubyte", rng.integers(0, 10, count, dtype=np.uint8))


def train(data, logs):
    command = [str(peers.BUILD / "headrace"), "train", "--recipe", "mnist-mlp", "--data", str(data)]
    command += ["--devices", "cpu:2", "--epochs", str(EPOCHS), "--steps-per-epoch", str(STEPS), "--verbose", "0"]
    command += ["--tensorboard", str(logs), "--tensorboard-steps", str(EVERY), "--histograms", "1"]
    command += ["--gradient-norms", "--json", "-"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines if "epoch" in json.loads(line)]


def main():
    checks = peers.Checks()
    with tempfile.TemporaryDirectory() as name:
        data, logs = Path(name) / "data", Path(name) / "logs"
        data.mkdir()
        write_digits(data)
        epochs = train(data, logs)
        reader = EventAccumulator(str(logs), size_guidance={"scalars": 0, "histograms": 0})
        reader.Reload()
    ends = [STEPS * (epoch + 1) for epoch in range(EPOCHS)]
    keys = ("loss", "accuracy", "val_loss", "val_accuracy", "examples_per_second", "seconds", "host_us_per_step")
    for key in keys:
        read = [(event.step, event.value) for event in reader.Scalars(key)]
        expected = [(step, float(np.float32(line[key]))) for step, line in zip(ends, epochs)]
        checks.expect("values of epochs", read == expected, f"{key}: {read}, not {expected}")
    for tag in ("step/loss", "step/step_ms", "gradient_norm/all", "learning_rate/group_0", "replica_1/step_ms"):
        steps = [event.step for event in reader.Scalars(tag)]
        wanted = list(range(EVERY, EPOCHS * STEPS + 1, EVERY))
        checks.expect("steps of values", steps == wanted, f"{tag}: {steps}")
    tags = reader.Tags()["histograms"]
    checks.expect("histograms", len(tags) == 6, tags)
    for tag in tags:
        events = reader.Histograms(tag)
        checks.expect("steps of histograms", [event.step for event in events] == ends, tag)
        for event in events:
            counted = event.histogram_value
            checks.expect("buckets add up", sum(counted.bucket) == counted.num > 0, tag)
    checks.finish()


main()
