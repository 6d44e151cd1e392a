#!/usr/bin/env python3
"""Writes optimizers_expected.json beside itself: rates of PyTorch's schedules, and a small net trained over 24 steps with
clipped gradients, schedules, parameter groups, averages of weights and lookahead, computed by PyTorch in float64.

Run: python3 make_optimizers_expected.py
"""
import json
import pathlib

import torch
from torch import nn
from torch.optim import lr_scheduler as rates
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

STEPS, BATCH, CLASSES = 24, 4, 5
torch.manual_seed(11)
torch.set_default_dtype(torch.float64)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(8, 16)
        self.dense_1 = nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.dense_1(torch.relu(self.dense(x)))


def sgd(net, **options):
    return torch.optim.SGD(net.parameters(), **options)


def adam(net, **options):
    return torch.optim.Adam(net.parameters(), eps=1e-7, **options)


def warm_cosine(optimizer):
    warm = rates.LinearLR(optimizer, start_factor=0.25, total_iters=3)
    return rates.SequentialLR(optimizer, [warm, rates.CosineAnnealingLR(optimizer, 20, eta_min=0)], [4])


def groups(net):
    weights = [p for p in net.parameters() if p.dim() > 1]
    biases = [p for p in net.parameters() if p.dim() == 1]
    return torch.optim.AdamW([{"params": weights, "weight_decay": 0.1}, {"params": biases, "lr": 2e-2, "weight_decay": 0}],
                             lr=1e-2, eps=1e-7)


def groups_of_betas(net):
    weights = [p for p in net.parameters() if p.dim() > 1]
    biases = [p for p in net.parameters() if p.dim() == 1]
    return torch.optim.AdamW([{"params": weights}, {"params": biases, "betas": (0.7, 0.9), "eps": 1e-3, "weight_decay": 0}],
                             lr=1e-2, eps=1e-7, weight_decay=0.1)


def rmsprop(net):
    return torch.optim.RMSprop(net.parameters(), lr=1e-2, alpha=0.9, eps=1e-7, momentum=0.5)


SCHEDULES = {
    "constant": lambda o: rates.ConstantLR(o, 1.0, 0),
    "cosine": lambda o: rates.CosineAnnealingLR(o, STEPS, eta_min=1e-4),
    "exponential": lambda o: rates.ExponentialLR(o, 0.9),
    "one_cycle": lambda o: rates.OneCycleLR(o, 5e-2, STEPS, cycle_momentum=False),
    "one_cycle_linear": lambda o: rates.OneCycleLR(o, 5e-2, STEPS, pct_start=0.4, anneal_strategy="linear",
                                                   div_factor=10, final_div_factor=100, cycle_momentum=False),
    "piecewise": lambda o: rates.MultiStepLR(o, [6, 15], 0.1),
    "warm_cosine": warm_cosine,
}
# optimizer, schedule, maximum norm, maximum value, decay of the average, (every, share) of lookahead
CASES = {
    "adam_clip_norm": (lambda n: adam(n, lr=1e-2), "cosine", 0.2, None, None, None),
    "sgd_one_cycle": (lambda n: sgd(n, lr=5e-2, momentum=0.9), "one_cycle", None, None, None, None),
    "sgd_clip_value": (lambda n: sgd(n, lr=5e-2), "exponential", None, 0.02, None, None),
    "adamw_groups_average": (groups, "piecewise", None, None, 0.9, None),
    "adam_lookahead": (lambda n: adam(n, lr=1e-2), "warm_cosine", None, None, None, (5, 0.4)),
    "sgd_everything": (lambda n: sgd(n, lr=5e-2, momentum=0.9, nesterov=True), "one_cycle_linear", 0.3, None, 0.8, (3, 0.5)),
    "rmsprop": (rmsprop, "cosine", 0.2, None, None, None),
    "adamw_groups_betas": (groups_of_betas, "cosine", None, None, None, None),
    "adamw_groups_betas": (groups_of_betas, "cosine", None, None, None, None),
}


def numbers(tensor):
    return [float(f"{value:.8g}") for value in tensor.detach().flatten().tolist()]


def variables(net):
    names = {"weight": "weights", "bias": "bias"}
    found = {}
    for name, tensor in net.named_parameters():
        layer, kind = name.rsplit(".", 1)
        found[layer + "/" + names[kind]] = numbers(tensor)
    return found


def run(make, schedule, max_norm, max_value, decay, lookahead):
    net = Mlp()
    with torch.no_grad():  # the float32 values that Headrace starts from
        for tensor in net.parameters():
            tensor.copy_(tensor.float().double())
    initial = variables(net)
    images = torch.randn(STEPS * BATCH, 8).float().double()
    labels = torch.randint(0, CLASSES, (STEPS * BATCH,))
    optimizer = make(net)
    schedule = SCHEDULES[schedule](optimizer)
    average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(decay)) if decay else None
    slow = [p.detach().clone() for p in net.parameters()]
    for i in range(STEPS):
        batch = slice(i * BATCH, (i + 1) * BATCH)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images[batch]), labels[batch]).backward()
        if max_norm:
            nn.utils.clip_grad_norm_(net.parameters(), max_norm)
        if max_value:
            nn.utils.clip_grad_value_(net.parameters(), max_value)
        optimizer.step()
        schedule.step()
        if lookahead and (i + 1) % lookahead[0] == 0:
            with torch.no_grad():
                for p, s in zip(net.parameters(), slow):
                    s += lookahead[1] * (p - s)
                    p.copy_(s)
        if average:
            average.update_parameters(net)
    made = {"images": numbers(images), "labels": labels.tolist(), "initial": initial, "final": variables(net)}
    if average:
        made["average"] = variables(average.module)
    return made


def rates_of(schedule):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=5e-2)
    schedule = SCHEDULES[schedule](optimizer)
    values = []
    for _ in range(STEPS):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if len(values) < STEPS:
            schedule.step()
    return values


expected = {"made_with": "torch " + torch.__version__.split("+")[0], "batch": BATCH, "steps": STEPS,
            "rates": {name: rates_of(name) for name in SCHEDULES},
            "cases": {name: run(*case) for name, case in CASES.items()}}
path = pathlib.Path(__file__).with_name("optimizers_expected.json")
path.write_text(json.dumps(expected, separators=(",", ":")).replace('},"', '},\n"').replace('],"', '],\n"') + "\n")
print(path, path.stat().st_size, "bytes")
