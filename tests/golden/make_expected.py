#!/usr/bin/env python3
"""Writes expected.json beside itself: a few training steps of small nets, computed by PyTorch in float64.

Images and weights are written channels-last, as Headrace keeps them: (N, H, W, C) and (O, KH, KW, C).
Run: python3 make_expected.py
"""
import json
import pathlib

import torch
from torch import nn

STEPS, BATCH, CLASSES = 4, 4, 5
torch.manual_seed(7)
torch.set_default_dtype(torch.float64)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        # No bias: before a batch norm its gradient is rounding noise, which Adam would follow.
        self.conv = nn.Conv2d(2, 4, 3, padding=1, bias=False)
        self.batch_norm = nn.BatchNorm2d(4, eps=1e-3, momentum=0.1)
        self.conv_1 = nn.Conv2d(4, 6, 3)
        self.dense = nn.Linear(6, CLASSES)

    def forward(self, x):
        x = torch.relu(self.batch_norm(self.conv(x)))
        x = nn.functional.max_pool2d(x, 2)
        x = nn.functional.gelu(self.conv_1(x))
        return self.dense(x.mean(dim=(2, 3)))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, stride=2, padding=1)
        self.conv_1 = nn.Conv2d(4, 4, 3, padding=1)
        self.dense = nn.Linear(4 * 4 * 4, CLASSES)

    def forward(self, x):
        x = nn.functional.silu(self.conv(x))
        x = x + torch.relu(self.conv_1(x))
        return self.dense(x.permute(0, 2, 3, 1).flatten(1))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(8, 16)
        self.dense_1 = nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.dense_1(torch.relu(self.dense(x)))


ADAM = {"eps": 1e-7}
CASES = {
    "mlp_adam": (Mlp, (8,), lambda p: torch.optim.Adam(p, lr=1e-2, **ADAM), 0.0),
    "mlp_sgd": (Mlp, (8,), lambda p: torch.optim.SGD(p, lr=5e-2), 0.0),
    "mlp_nesterov": (
        Mlp, (8,),
        lambda p: torch.optim.SGD(p, lr=5e-2, momentum=0.9, nesterov=True, weight_decay=1e-2), 0.1),
    "conv_net_adamw": (ConvNet, (7, 7, 2), lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=5e-2, **ADAM), 0.0),
    "residual_momentum": (Residual, (7, 7, 2), lambda p: torch.optim.SGD(p, lr=5e-2, momentum=0.9), 0.0),
}
NAMES = {"weight": "weights", "bias": "bias"}
NORM_NAMES = {"weight": "gamma", "bias": "beta", "running_mean": "running_mean", "running_var": "running_var"}


def numbers(tensor):
    return [float(f"{value:.8g}") for value in tensor.detach().flatten().tolist()]


def variables(net):
    found = {}
    for name, tensor in net.state_dict().items():
        layer, kind = name.rsplit(".", 1)
        if kind == "num_batches_tracked":
            continue
        if tensor.dim() == 4:
            tensor = tensor.permute(0, 2, 3, 1)
        found[layer + "/" + (NORM_NAMES if "norm" in layer else NAMES)[kind]] = numbers(tensor)
    return found


def run(make, shape, optimizer, smoothing):
    net = make()
    initial = variables(net)
    # The float32 values that Headrace starts from.
    with torch.no_grad():
        for tensor in net.state_dict().values():
            if tensor.is_floating_point():
                tensor.copy_(tensor.float().double())
    images = torch.randn(STEPS * BATCH, *shape).float().double()
    labels = torch.randint(0, CLASSES, (STEPS * BATCH,))
    steps = optimizer(net.parameters())
    losses = []
    for i in range(STEPS):
        x = images[i * BATCH:(i + 1) * BATCH]
        x = x.permute(0, 3, 1, 2) if x.dim() == 4 else x
        loss = nn.functional.cross_entropy(net(x), labels[i * BATCH:(i + 1) * BATCH], label_smoothing=smoothing)
        steps.zero_grad()
        loss.backward()
        steps.step()
        losses.append(float(loss.detach()))
    return {"shape": shape, "images": numbers(images), "labels": labels.tolist(), "initial": initial,
            "losses": losses, "final": variables(net)}


expected = {name: run(*case) for name, case in CASES.items()}
expected = {"made_with": "torch " + torch.__version__.split("+")[0], "batch": BATCH, "cases": expected}
path = pathlib.Path(__file__).with_name("expected.json")
path.write_text(json.dumps(expected, separators=(",", ":")).replace('},"', '},\n"').replace('],"', '],\n"') + "\n")
print(path, path.stat().st_size, "bytes")
