#!/usr/bin/env python3
"""Data-parallel PyTorch fed by Headrace: each process takes its share of every global batch.

    torchrun --nproc-per-node 2 pytorch_distributed.py

There is no DistributedSampler: the loader reads the process's rank. Every record of an epoch is given to one process,
once, which the program checks at the end. Takes Fashion-MNIST of Debian's package dataset-fashion-mnist, or --data.
"""
# needs: torch numpy
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import headrace as hr
from headrace.torch import DataLoader


def data_of(opt):
    data = hr.open(opt.data).take(opt.records)
    return data.map(hr.normalize([0.2860], [0.3530]), hr.to_layout("channels_first"))


def check_every_record_once(opt):
    """The pixels of all processes' batches of an epoch are those of one process that reads everything."""
    def total(loader):
        pixels, examples = torch.zeros((), dtype=torch.float64), 0
        for images, _ in loader:
            pixels, examples = pixels + images.double().sum(), examples + len(images)
        return pixels, examples

    shared, alone = (DataLoader(data_of(opt), batch_size=100, shuffle=True, drop_last=False, fields=("image", "label"),
                                seed=3, **world) for world in ({}, {"world_size": 1}))
    pixels, examples = (torch.as_tensor(value) for value in total(shared))
    dist.all_reduce(pixels)
    dist.all_reduce(examples)
    expected_pixels, expected_examples = total(alone)
    assert examples == expected_examples == opt.records, (examples, expected_examples)
    assert torch.isclose(pixels, expected_pixels), (pixels, expected_pixels)


def main():
    arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    arg.add_argument("--records", type=int, default=6000)
    arg.add_argument("--epochs", type=int, default=2)
    opt = arg.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)

    loader = DataLoader(data_of(opt), batch_size=64, shuffle=True, num_workers=1, drop_last=True,
                        fields=("image", "label"))
    model = DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    means = []
    for epoch in range(opt.epochs):
        loader.set_epoch(epoch)
        total = torch.zeros(())
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        means.append(total.item() / len(loader) / dist.get_world_size())
        if loader.rank == 0:
            print(f"epoch {epoch + 1}: loss {means[-1]:.3f}, {loader.world_size} processes, "
                  f"{len(loader)} batches of {loader.batch_size} each", flush=True)
    check_every_record_once(opt)
    if loader.rank == 0:
        print("every record of an epoch was given once")
    dist.destroy_process_group()
    if not means[-1] < means[0]:
        raise SystemExit("the net does not learn")


if __name__ == "__main__":
    try:
        main()
    except hr.HeadraceError as error:
        raise SystemExit(str(error)) from None
