#!/usr/bin/env python3
# peers: torch numpy
# package: headrace
"""Several workers as PyTorch's own torchrun starts them: Headrace's trainer, whose weights are those of one process with as
many replicas, and DistributedDataParallel over Gloo fed by Headrace's loaders, which give each record to one worker, once an
epoch, and read no other. As a program under torchrun (--ddp OUTPUT) it is that trainer."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import headrace as hr

ROOT = Path(__file__).resolve().parents[2]
WORKERS, RECORDS, BATCH, EPOCHS = 2, 1000, 48, 3  # the last batch of an epoch is smaller


def write_digits(folder):
    """Squares whose place tells the label, as MNIST's files."""
    random = np.random.default_rng(0)
    for split, count in (("train", RECORDS), ("t10k", 200)):
        labels = random.integers(0, 10, count)
        images = random.integers(0, 100, (count, 28, 28))
        for image, label in zip(images, labels):
            top, left = divmod(int(label), 4)
            image[7 * top:7 * top + 7, 7 * left:7 * left + 7] += 128
        for name, values in (("images-idx3", images), ("labels-idx1", labels)):
            header = bytes([0, 0, 8, values.ndim]) + b"".join(extent.to_bytes(4, "big") for extent in values.shape)
            (folder / f"{split}-{name}-ubyte").write_bytes(header + values.astype(np.uint8).tobytes())


# ------------------------------------------------------------------------------------------------- the user's own trainer


def asked_of(images, labels, asked):
    """A source that remembers what it is asked for."""
    def record(index):
        asked.append(index)
        return {"image": images[index], "label": np.int64(labels[index]), "number": np.int64(index)}

    fields = {"image": ("float32", (784,)), "label": "int64", "number": "int64"}
    return hr.from_function(record, len(labels), fields=fields)


def train_distributed(output):
    """Each worker's losses, records and reads of each epoch, as JSON."""
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    random = np.random.default_rng(1)
    labels = random.integers(0, 10, RECORDS)
    images = (random.random((RECORDS, 784)) + np.eye(10)[labels].repeat(79, axis=1)[:, :784]).astype(np.float32)
    asked = []
    loader = hr.Loader(asked_of(images, labels, asked).shuffle(7).batch(BATCH), epochs=EPOCHS, world="auto")
    model = DistributedDataParallel(nn.Linear(784, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    losses, given, states = [], [], []
    for _ in range(EPOCHS):
        numbers, total = [], 0.0
        for batch in loader:
            tensors = batch.torch()
            loss = nn.functional.cross_entropy(model(tensors["image"]), tensors["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(loader)
            numbers += tensors["number"].tolist()
        losses.append(total)
        given.append(numbers)
        states.append(loader.state_dict()["headrace"])
    weights = [parameter.detach().double().sum().item() for parameter in model.parameters()]
    Path(f"{output}.{dist.get_rank()}").write_text(json.dumps(
        {"losses": losses, "given": given, "asked": asked, "states": states, "weights": weights, "bytes": loader.stats()["bytes"],
         "world": loader.world}))
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------------------- the checks


def torchrun(*program, count=WORKERS, **environment):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count), *map(str, program)]
    done = subprocess.run(command, text=True, capture_output=True, timeout=300,
                          env=os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""} | environment)
    if done.returncode != 0:
        print(done.stdout[-4000:], done.stderr[-4000:])
    return done


def figures(text):
    return [line for line in text.splitlines() if line.startswith(("test ", "weights "))]


def check_trainer(checks, folder):
    example = ROOT / "bindings/python/examples/train_workers.py"
    arguments = ["--data", folder, "--records", str(RECORDS), "--devices"]
    alone = subprocess.run([sys.executable, example, *map(str, arguments), f"cpu:{WORKERS}"], text=True, capture_output=True,
                           timeout=300, env=os.environ | {"HEADRACE_CPU_THREADS": "1"})
    done = torchrun(example, *arguments, "cpu", HEADRACE_CPU_THREADS="1")
    checks.expect("train_workers.py under torchrun ends well", done.returncode == 0, done.stderr[-300:])
    checks.expect("its figures and weights are one process's", len(figures(done.stdout)) == 2 and
                  figures(done.stdout) == figures(alone.stdout), (figures(done.stdout), figures(alone.stdout), alone.stderr))
    checks.expect("the chief alone prints", done.stdout.count("Number of devices: 2") == 1 and done.stdout.count("weights ") == 1)
    checkpoints = folder / "checkpoints"
    for epochs in ("1", "2"):  # the second run goes on from the first one's
        done = torchrun(example, *arguments, "cpu", "--checkpoints", checkpoints, "--epochs", epochs, HEADRACE_CPU_THREADS="1")
        checks.expect("with checkpoints it ends well", done.returncode == 0)
    checks.expect("resumed it has the same weights", figures(done.stdout)[1:] == figures(alone.stdout)[1:])


def check_distributed(checks, folder):
    done = torchrun(Path(__file__).resolve(), "--ddp", folder / "ddp")
    checks.expect("DistributedDataParallel fed by loaders ends well", done.returncode == 0)
    if done.returncode != 0:
        return
    workers = [json.loads((folder / f"ddp.{rank}").read_text()) for rank in range(WORKERS)]
    for epoch in range(EPOCHS):
        shares = [worker["given"][epoch] for worker in workers]
        checks.expect("each record is given once an epoch", sorted(sum(shares, [])) == list(range(RECORDS)))
        checks.expect("shares differ by no more than a record a batch",
                      abs(len(shares[0]) - len(shares[1])) <= -(-RECORDS // BATCH), [len(share) for share in shares])
    for worker in workers:
        mine = sorted(sum(worker["given"], []))
        checks.expect("a worker reads the records that it trains on, and no other", sorted(worker["asked"]) == mine)
        checks.expect("it is handed their bytes, and no others", worker["bytes"] == len(mine) * (4 * 784 + 8 + 8), worker["bytes"])
        checks.expect("the net learns", worker["losses"][-1] < worker["losses"][0], worker["losses"])
    checks.expect("the workers' weights are the same", workers[0]["weights"] == workers[1]["weights"])
    checks.expect("their loaders have one state", workers[0]["states"] == workers[1]["states"])
    checks.expect("each has its place", [worker["world"] for worker in workers] == [[2, 0], [2, 1]])


def main():
    sys.path.insert(0, str(Path(__file__).parent))
    from peers import Checks

    checks = Checks()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_digits(folder)
        check_trainer(checks, folder)
        check_distributed(checks, folder)
    checks.finish()


if __name__ == "__main__":
    arg = argparse.ArgumentParser()
    arg.add_argument("--ddp", metavar="OUTPUT")
    opt = arg.parse_args()
    train_distributed(opt.ddp) if opt.ddp else main()
