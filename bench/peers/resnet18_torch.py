#!/usr/bin/env python3
"""Training steps of ResNet-18 in its form for CIFAR-10 in PyTorch: compiled, channels-last, bf16 autocast, SGD.

  resnet18_torch.py [--device cuda|cpu] [--batch 512] [--steps 100] [--repeats 5] [--plain]

The batch lies on the device already and is the same in every step: what is measured is the step. One JSON line:
examples_per_second (the median of the repeats), samples, parameters, compiled, device, version. The clock is the host's,
read when the device is done; compiling and the first steps are not on it.
"""
import argparse
import json
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

WARM_UP = 10


def conv_norm(c_in, c_out, kernel, stride):
    return nn.Sequential(nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(c_out))


class Block(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.first, self.second = conv_norm(c_in, c_out, 3, stride), conv_norm(c_out, c_out, 3, 1)
        self.shortcut = nn.Identity() if c_in == c_out and stride == 1 else conv_norm(c_in, c_out, 1, stride)

    def forward(self, x):
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


def resnet18():
    """(N, 3, 32, 32) -> logits (N, 10); 11,173,962 parameters."""
    layers = [conv_norm(3, 64, 3, 1), nn.ReLU()]
    c_in = 64
    for group, c_out in enumerate((64, 128, 256, 512)):
        layers += [Block(c_in, c_out, 1 if group == 0 else 2), Block(c_out, c_out, 1)]
        c_in = c_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def measure(opt):
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    net = resnet18().to(opt.device).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4, nesterov=True,
                                fused=opt.device == "cuda")
    run = net if opt.plain else torch.compile(net)
    images = torch.randn(opt.batch, 3, 32, 32, device=opt.device).to(memory_format=torch.channels_last)
    labels = torch.randint(10, (opt.batch,), device=opt.device)

    def steps(count):
        start = time.perf_counter()
        for _ in range(count):
            with torch.autocast(opt.device, torch.bfloat16):
                logits = run(images)
            F.cross_entropy(logits.float(), labels).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if opt.device == "cuda":
            torch.cuda.synchronize()
        return count * opt.batch / (time.perf_counter() - start)

    steps(WARM_UP)
    samples = [steps(opt.steps) for _ in range(opt.repeats)]
    return {"examples_per_second": statistics.median(samples), "samples": samples,
            "parameters": sum(value.numel() for value in net.parameters()), "compiled": not opt.plain,
            "device": opt.device, "version": torch.__version__}


def main():
    arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arg.add_argument("--batch", type=int, default=512)
    arg.add_argument("--steps", type=int, default=100)
    arg.add_argument("--repeats", type=int, default=5)
    arg.add_argument("--plain", action="store_true", help="not compiled")
    print(json.dumps(measure(arg.parse_args())), flush=True)


if __name__ == "__main__":
    main()
