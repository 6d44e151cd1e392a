#!/usr/bin/env python3
"""Writes layers_expected.json beside itself: 20 steps of a small net with each of some layers, computed by PyTorch in
float64.

Run: python3 make_layers_expected.py
"""
import json
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

STEPS, BATCH, SIDE, CHANNELS, CLASSES = 20, 4, 6, 2, 3
torch.manual_seed(7)
torch.set_default_dtype(torch.float64)


def flat(x):
    return x.permute(0, 2, 3, 1).flatten(1)  # channels last, as Headrace has them


class AveragePool(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(CHANNELS, 4, 3, padding=1)
        self.dense = nn.Linear(2 * 2 * 4, CLASSES)

    def forward(self, x):
        return self.dense(flat(F.avg_pool2d(torch.tanh(self.conv(x)), 3, stride=2)))


class Concat(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(CHANNELS, 3, 3, padding=1)
        self.conv_1 = nn.Conv2d(CHANNELS, 2, 3, padding=1)
        self.dense = nn.Linear(SIDE * SIDE * 7, CLASSES)

    def forward(self, x):
        return self.dense(flat(torch.cat([torch.sigmoid(self.conv(x)), x, F.relu(self.conv_1(x))], dim=1)))


class AddThree(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(CHANNELS, 4, 3, padding=1)
        self.conv_1 = nn.Conv2d(4, 4, 3, padding=1)
        self.conv_2 = nn.Conv2d(4, 4, 3, padding=1)
        self.dense = nn.Linear(4, CLASSES)

    def forward(self, x):
        x = F.silu(self.conv(x))
        y = self.conv_1(x)
        return self.dense((x + y + self.conv_2(y)).mean(dim=(2, 3)))


class SoftmaxInside(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(SIDE * SIDE * CHANNELS, 8)
        self.dense_1 = nn.Linear(8, CLASSES)

    def forward(self, x):
        return self.dense_1(self.dense(flat(x)).softmax(1))


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(CHANNELS, 4, 3, padding=1)
        self.conv_1 = nn.Conv2d(4, 4, 3, padding=1)
        self.dense = nn.Linear(4, CLASSES)

    def forward(self, x):
        x = F.gelu(self.conv(x))
        return self.dense(self.conv_1(F.gelu(self.conv_1(x))).mean(dim=(2, 3)))


class SynchronisedNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(CHANNELS, 4, 3, padding=1, bias=False)
        self.batch_norm = nn.BatchNorm2d(4)
        self.dense = nn.Linear(4, CLASSES)

    def forward(self, x):
        return self.dense(F.relu(self.batch_norm(self.conv(x))).mean(dim=(2, 3)))


CASES = {"average_pool": AveragePool, "concat": Concat, "add_three": AddThree, "softmax_inside": SoftmaxInside,
         "shared": Shared, "synchronised_norm": SynchronisedNorm}


def numbers(tensor):
    return [float(f"{value:.8g}") for value in tensor.detach().flatten().tolist()]


def variables(net):
    found = {}
    for name, value in net.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        layer, kind = name.split(".")
        words = {"weight": "gamma", "bias": "beta"} if layer.startswith("batch_norm") else {"weight": "weights"}
        tensor = value.permute(0, 2, 3, 1) if value.dim() == 4 else value
        found[f"{layer}/{words.get(kind, kind)}"] = numbers(tensor)
    return found


def run(make):
    net = make()
    for parameter in net.parameters():
        parameter.data = parameter.data.float().double()
    initial = variables(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for i in range(STEPS):
        rows = slice(i * BATCH, (i + 1) * BATCH)
        loss = F.cross_entropy(net(images[rows].permute(0, 3, 1, 2)), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(f"{float(loss.detach()):.10g}"))
    return {"initial": initial, "losses": losses, "final": variables(net)}


images = torch.randn(STEPS * BATCH, SIDE, SIDE, CHANNELS).float().double()
labels = torch.randint(CLASSES, (STEPS * BATCH,))
expected = {"made_with": "torch " + torch.__version__.split("+")[0], "batch": BATCH, "images": numbers(images),
            "labels": labels.tolist(), "cases": {name: run(make) for name, make in CASES.items()}}
path = pathlib.Path(__file__).with_name("layers_expected.json")
path.write_text(json.dumps(expected, separators=(",", ":")).replace('},"', '},\n"').replace('],"', '],\n"') + "\n")
print(path, path.stat().st_size, "bytes")
