#!/usr/bin/env python3
"""Workload mnist-mlp in PyTorch: 784-256-256-10, Adam 1e-3 (eps 1e-7), batch 32, 50,000 / 10,000.

One JSON object an epoch: epoch, seconds (training and validation), val_accuracy. Data are tensors in memory,
shuffled by one permutation an epoch and sliced: the fastest input PyTorch has for them.
"""
import argparse
import json
import time

import torch
import torch.nn as nn

import idx


def main():
    arg = argparse.ArgumentParser()
    arg.add_argument("--data", required=True)
    arg.add_argument("--epochs", type=int, default=3)
    arg.add_argument("--threads", type=int, default=1)
    arg.add_argument("--batch", type=int, default=32)
    arg.add_argument("--compile", action="store_true")
    arg.add_argument("--bf16", action="store_true", help="products in bfloat16, as torch.autocast has them")
    opt = arg.parse_args()
    torch.set_num_threads(opt.threads)
    torch.manual_seed(0)
    images, labels, _, _ = map(torch.from_numpy, idx.mnist(opt.data))
    net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.Adam(net.parameters(), 1e-3, eps=1e-7, fused=True)
    loss_of = nn.CrossEntropyLoss()

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=opt.bf16):
            loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = torch.compile(step) if opt.compile else step
    for epoch in range(opt.epochs):
        start = time.perf_counter()
        order = torch.randperm(50000)
        total = torch.zeros(())
        for first in range(0, 50000, opt.batch):
            rows = order[first:first + opt.batch]
            total += run(images[rows], labels[rows]) * len(rows)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=opt.bf16):
            correct = sum((net(images[i:i + 500]).argmax(1) == labels[i:i + 500]).sum().item()
                          for i in range(50000, 60000, 500))
        print(json.dumps({"epoch": epoch + 1, "seconds": time.perf_counter() - start, "loss": total.item() / 50000,
                          "val_accuracy": correct / 10000, "version": torch.__version__}), flush=True)


main()
