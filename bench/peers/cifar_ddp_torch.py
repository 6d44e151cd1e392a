#!/usr/bin/env python3
"""A training loop as it is commonly written, on CIFAR-10: DataLoader workers, torchvision's transforms image by image,
DistributedDataParallel over one process, autocast, SGD. Its net is recipe cifar10-fast's.

  cifar_ddp_torch.py --data FOLDER [--device cuda|cpu] [--epochs 4] [--batch 2000] [--workers N] [--compile]

FOLDER holds train.pt (images uint8 NHWC, labels). One JSON line an epoch after the first, which warms up: epoch,
seconds, examples_per_second, input_stall_fraction (the share of the epoch waiting for the loader). The last line: final,
the medians, and step_only_examples_per_second, the same step on one batch that is there already. The clock is the
host's, read when the device is done.
"""
import argparse
import json
import os
import pathlib
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torchvision.transforms.v2 as transforms
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from cifar_speed_net import speed_net

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


class Images(Dataset):
    def __init__(self, folder):
        data = torch.load(pathlib.Path(folder) / "train.pt")
        self.images, self.labels = data["images"].permute(0, 3, 1, 2).contiguous(), data["labels"]
        self.transform = transforms.Compose([
            transforms.RandomCrop(32, padding=2, padding_mode="reflect"), transforms.RandomHorizontalFlip(),
            transforms.ToDtype(torch.float32, scale=True), transforms.Normalize(MEAN, STD)])

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.transform(self.images[i]), self.labels[i]


class Training:
    def __init__(self, opt):
        self.device = torch.device(opt.device, 0) if opt.device == "cuda" else torch.device(opt.device)
        net = speed_net().to(self.device).to(memory_format=torch.channels_last)
        self.net = DistributedDataParallel(net, device_ids=[0] if opt.device == "cuda" else None)
        self.optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=1e-5, momentum=0.85,
                                         nesterov=True, fused=opt.device == "cuda")
        self.run = torch.compile(self.net) if opt.compile else self.net

    def step(self, images, labels):
        images = images.to(self.device, non_blocking=True, memory_format=torch.channels_last)
        labels = labels.to(self.device, non_blocking=True)
        with torch.autocast(self.device.type, torch.bfloat16):
            logits = self.run(images)
        loss = F.cross_entropy(logits.float(), labels, label_smoothing=0.2, reduction="sum")
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def done(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def epoch_of(training, loader):
    """Seconds in all, seconds waiting for a batch, examples."""
    start, waited, examples = time.perf_counter(), 0.0, 0
    batches = iter(loader)
    while True:
        asked = time.perf_counter()
        batch = next(batches, None)
        waited += time.perf_counter() - asked
        if batch is None:
            break
        training.step(*batch)
        examples += len(batch[1])
    training.done()
    return time.perf_counter() - start, waited, examples


def step_only(training, loader, steps=30):
    images, labels = (tensor.to(training.device) for tensor in next(iter(loader)))
    for _ in range(3):
        training.step(images, labels)
    training.done()
    start = time.perf_counter()
    for _ in range(steps):
        training.step(images, labels)
    training.done()
    return steps * len(labels) / (time.perf_counter() - start)


def options():
    arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--data", required=True)
    arg.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arg.add_argument("--epochs", type=int, default=4, help="one more warms up")
    arg.add_argument("--batch", type=int, default=2000)
    arg.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    arg.add_argument("--steps", type=int, default=30, help="of the figure without input")
    arg.add_argument("--compile", action="store_true")
    return arg.parse_args()


def train(opt):
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    loader = DataLoader(Images(opt.data), opt.batch, shuffle=True, drop_last=True, num_workers=opt.workers,
                        pin_memory=opt.device == "cuda", persistent_workers=True, prefetch_factor=4)
    training = Training(opt)
    rates, stalls = [], []
    for epoch in range(opt.epochs + 1):
        seconds, waited, examples = epoch_of(training, loader)
        if epoch == 0:
            continue
        rates.append(examples / seconds)
        stalls.append(waited / seconds)
        print(json.dumps({"epoch": epoch, "seconds": seconds, "examples_per_second": rates[-1],
                          "input_stall_fraction": stalls[-1]}), flush=True)
    print(json.dumps({"final": True, "examples_per_second": statistics.median(rates),
                      "input_stall_fraction": statistics.median(stalls),
                      "step_only_examples_per_second": step_only(training, loader, opt.steps), "workers": opt.workers,
                      "compiled": opt.compile, "device": opt.device, "version": torch.__version__}), flush=True)


def main():
    opt = options()
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("nccl" if opt.device == "cuda" else "gloo", init_method=f"file://{folder}/store", rank=0,
                                world_size=1)
        try:
            train(opt)
        finally:
            dist.destroy_process_group()


if __name__ == "__main__":
    main()
