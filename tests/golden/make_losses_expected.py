#!/usr/bin/env python3
"""Writes losses_expected.json beside itself: 20 steps of a small net with each loss, computed by PyTorch in float64.

Run: python3 make_losses_expected.py
"""
import json
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

STEPS, BATCH, INPUTS, OUTPUTS = 20, 4, 6, 3
torch.manual_seed(11)
torch.set_default_dtype(torch.float64)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(INPUTS, 8)
        self.dense_1 = nn.Linear(8, OUTPUTS)

    def forward(self, x):
        return self.dense_1(F.gelu(self.dense(x)))


def cross_entropy(smoothing):
    return lambda z, t: F.cross_entropy(z, t, label_smoothing=smoothing)


# Of logits or results z and targets t.
CASES = {
    "categorical": cross_entropy(0.0),
    "categorical_smoothed": cross_entropy(0.1),
    "mean_squared_error": F.mse_loss,
    "mean_absolute_error": F.l1_loss,
    "binary": F.binary_cross_entropy_with_logits,
    "binary_of_probabilities": lambda z, t: F.binary_cross_entropy(z.softmax(1), t),
    "squared_error_of_probabilities": lambda z, t: F.mse_loss(z.softmax(1), t),
    "weighted_sum": lambda z, t: 0.7 * F.cross_entropy(z, t) + 0.3 * F.mse_loss(z, t),
    # As Keras smooths for two classes; PyTorch has no smoothing of its own here.
    "binary_smoothed": lambda z, t: F.binary_cross_entropy_with_logits(z, 0.8 * t + 0.1),
}


def numbers(tensor):
    return [float(f"{value:.8g}") for value in tensor.detach().flatten().tolist()]


def variables(net):
    return {name.replace(".", "/").replace("weight", "weights"): numbers(value)
            for name, value in net.state_dict().items()}


net = Mlp()
initial = variables(net)
images = torch.randn(STEPS * BATCH, INPUTS).float().double()
targets = torch.rand(STEPS * BATCH, OUTPUTS)
targets = (targets / targets.sum(dim=1, keepdim=True)).float().double()


def run(loss_of):
    net = Mlp()
    net.load_state_dict({name: torch.tensor(initial[name.replace(".", "/").replace("weight", "weights")])
                         .float().double().reshape(value.shape) for name, value in net.state_dict().items()})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for i in range(STEPS):
        rows = slice(i * BATCH, (i + 1) * BATCH)
        loss = loss_of(net(images[rows]), targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(f"{float(loss.detach()):.10g}"))
    return {"losses": losses, "final": variables(net)}


expected = {"made_with": "torch " + torch.__version__.split("+")[0], "batch": BATCH, "images": numbers(images),
            "labels": numbers(targets), "initial": initial,
            "cases": {name: run(loss_of) for name, loss_of in CASES.items()}}
path = pathlib.Path(__file__).with_name("losses_expected.json")
path.write_text(json.dumps(expected, separators=(",", ":")).replace('},"', '},\n"').replace('],"', '],\n"') + "\n")
print(path, path.stat().st_size, "bytes")
