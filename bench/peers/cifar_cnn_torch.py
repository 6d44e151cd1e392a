#!/usr/bin/env python3
"""Workload train-step in PyTorch: the net of recipe cifar10-cnn, Adam, batch 512, f32 or bf16, channels last.

One JSON object an epoch of --steps steps: epoch, examples_per_second. The batch is a ready tensor: its input
costs PyTorch nothing here, while Headrace's figure includes decoding, augmentation and copying. As one of several
processes (torchrun's variables) it is DistributedDataParallel over Gloo: the batch is divided, rank 0 prints.
"""
import argparse
import json
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


def block(c_in, c_out):
    return [nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out, eps=1e-3), nn.ReLU()]


def cifar_cnn():
    return nn.Sequential(
        *block(3, 32), *block(32, 32), nn.MaxPool2d(2), nn.Dropout(0.1),
        *block(32, 64), *block(64, 64), nn.MaxPool2d(2), nn.Dropout(0.2),
        *block(64, 128), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2),
        nn.Linear(128, 10))


def main():
    arg = argparse.ArgumentParser()
    arg.add_argument("--data", help="ignored: the images are random")
    arg.add_argument("--epochs", type=int, default=3)
    arg.add_argument("--steps", type=int, default=8)
    arg.add_argument("--threads", type=int, default=1)
    arg.add_argument("--batch", type=int, default=512)
    arg.add_argument("--compile", action="store_true")
    arg.add_argument("--bf16", action="store_true", help="products in bfloat16, as torch.autocast has them")
    opt = arg.parse_args()
    torch.set_num_threads(opt.threads)
    torch.manual_seed(0)
    net = cifar_cnn().to(memory_format=torch.channels_last)
    world, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    if world > 1:
        dist.init_process_group("gloo")
        net = DistributedDataParallel(net)
    rows = opt.batch // world
    optimizer = torch.optim.Adam(net.parameters(), 2e-3, fused=True)
    loss_of = nn.CrossEntropyLoss()
    images = torch.randn(rows, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (rows,))

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=opt.bf16):
            loss = loss_of(net(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = torch.compile(step) if opt.compile else step
    for epoch in range(opt.epochs):
        start = time.perf_counter()
        for _ in range(opt.steps):
            loss = run()
        seconds = time.perf_counter() - start
        if rank > 0:
            continue
        print(json.dumps({"epoch": epoch + 1, "seconds": seconds, "loss": loss.item(),
                          "examples_per_second": opt.steps * opt.batch / seconds, "version": torch.__version__}),
              flush=True)
    if world > 1:
        dist.destroy_process_group()


main()
