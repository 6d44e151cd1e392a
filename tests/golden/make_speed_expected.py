#!/usr/bin/env python3
"""Writes speed_expected.json beside itself: the first steps of the recipes cifar10-fast and cifar10-fast-b on a narrow
net, and its evaluation with six views, computed by PyTorch in float64; and the same where the products of Muon are rounded to
bf16, as on a GPU. There a product that lies between two values of bf16 becomes one or the other by the order of its sum, and
the steps that follow multiply the difference. How much, PERTURBED further runs tell, in which each product is changed by
about the error of a sum in float32 before it is rounded: their largest distance from the first is the scale of what a GPU may show.

Images and parameters are made from their positions by the same integers here and in speed_test.cpp, so that only
results are stored. Run: python3 make_speed_expected.py
"""
import json
import pathlib
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

STEPS, BATCH, TOTAL_STEPS, WHITENING_STEPS = 4, 12, 40, 3
PERTURBED, SUM_ERROR = 32, 2**-22
WIDTHS = (16, 24, 32)
torch.set_default_dtype(torch.float64)


@dataclass
class Recipe:
    activation: object = F.gelu
    statistics: float = 0.4  # weight of a batch in the running statistics
    rates: tuple = (0.053, 0.053, 0.67)  # whitening's bias, norms' biases, head
    conv_rate: float = 0.24
    momentum: float = 0.85
    conv_momentum: float = 0.6
    coefficients: tuple = (3.4445, -4.7750, 2.0315)
    decay: float = 2e-6
    convs_decay: bool = False
    interval: tuple = (1, 0)  # steps between two scalings of norms: at first, and how it grows
    smoothing: float = 0.2


RECIPES = {"cifar10-fast": Recipe(),
           "cifar10-fast-b": Recipe(F.silu, 0.4434, (0.0573, 0.0573, 0.5415), 0.205, 0.825, 0.655, (3.4576, -4.7391, 2.0843),
                                    1.0418e-6, True, (2, 15), 0.09)}


def mixed(count, salt):
    """`count` integers of 32 bits."""
    h = (np.arange(count, dtype=np.uint64) * 0x9E3779B1 + salt * 0x85EBCA77) & 0xFFFFFFFF
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
        h = ((h ^ (h >> shift)) * factor) & 0xFFFFFFFF
    return h


def numbers(shape, salt, scale=1.0):
    """float32 in [-scale, scale)."""
    unit = (mixed(int(np.prod(shape)), salt) >> 8).astype(np.float32) / np.float32(2**23) - np.float32(1)
    return (unit * np.float32(scale)).reshape(shape)


def filters(shape, salt, dirac):
    """Channels last, as Headrace keeps them, to channels first."""
    weights = numbers(shape, salt, np.float32(1) / np.sqrt(np.float32(shape[1] * shape[2] * shape[3])))
    if dirac:
        weights[:shape[3]] = 0
        for c in range(min(shape[0], shape[3])):
            weights[c, shape[1] // 2, shape[2] // 2, c] = 1
    return nn.Parameter(torch.tensor(weights).double().permute(0, 3, 1, 2).contiguous())


class Net(nn.Module):
    def __init__(self, recipe):
        super().__init__()
        self.activation = recipe.activation
        self.whiten = filters((24, 2, 2, 3), 1, False).detach()
        self.whiten_bias = nn.Parameter(torch.tensor(numbers((24,), 2, 0.1)).double())
        sizes = [24] + [width for width in WIDTHS for _ in range(2)]
        pairs = list(zip(sizes[:-1], sizes[1:]))
        self.convs = nn.ParameterList(filters((o, 3, 3, i), 10 + n, True) for n, (i, o) in enumerate(pairs))
        self.norms = nn.ModuleList(nn.BatchNorm2d(o, eps=1e-12, momentum=recipe.statistics) for _, o in pairs)
        for n, norm in enumerate(self.norms):
            norm.weight.requires_grad = False
            norm.bias.data = torch.tensor(numbers(tuple(norm.bias.shape), 20 + n, 0.1)).double()
        self.head = nn.Parameter(torch.tensor(numbers((10, WIDTHS[2]), 3, 1.7)).double())

    def forward(self, x, train_whitening=True):
        x = F.gelu(F.conv2d(x, self.whiten, self.whiten_bias if train_whitening else self.whiten_bias.detach()))
        for n, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            x = F.conv2d(x, conv, padding=1)
            x = self.activation(norm(F.max_pool2d(x, 2) if n % 2 == 0 else x))
        return F.max_pool2d(x, 3).flatten(1) @ self.head.T / 256


def exact(tensor):
    return tensor


def in_bf16(tensor):
    return tensor.to(torch.bfloat16).double()


def perturbed_in_bf16(seed):
    generator = torch.Generator().manual_seed(seed)

    def rounded(tensor):
        size = SUM_ERROR * tensor.square().mean().sqrt()
        return in_bf16(tensor + size * torch.randn(tensor.shape, generator=generator))
    return rounded


def orthogonal(update, coefficients, rounded):
    """rounded: what becomes of each tensor that is stored."""
    a, b, c = coefficients
    x = rounded(update / (update.norm() + 1e-7))
    for _ in range(3):
        gram = rounded(x @ x.T)
        x = rounded(a * x + rounded(b * gram + c * gram @ gram) @ x)
    return x


def summary(tensor):
    if tensor.dim() == 4:
        tensor = tensor.permute(0, 2, 3, 1)
    flat = tensor.detach().flatten()
    return {"first": flat[:8].tolist(), "sum": float(flat.sum()), "norm": float(flat.norm()), "count": flat.numel()}


def named(net):
    names = {"whiten/weights": net.whiten, "whiten/bias": net.whiten_bias, "head/weights": net.head}
    for n, (conv, norm) in enumerate(zip(net.convs, net.norms)):
        number = f"_{n}" if n > 0 else ""
        names |= {f"conv{number}/weights": conv, f"batch_norm{number}/beta": norm.bias,
                  f"batch_norm{number}/running_mean": norm.running_mean,
                  f"batch_norm{number}/running_var": norm.running_var}
    return names


def summaries(net):
    return {name: summary(tensor) for name, tensor in named(net).items()}


def train(net, recipe, rounded, images, labels):
    """The losses, and the variables after the first step."""
    decay, rates = recipe.decay * BATCH, recipe.rates
    groups = ([net.whiten_bias], [norm.bias for norm in net.norms], [net.head])
    sgd = torch.optim.SGD([{"params": list(g), "lr": r, "weight_decay": decay / r} for g, r in zip(groups, rates)],
                          momentum=recipe.momentum, nesterov=True)
    velocities = [torch.zeros_like(conv) for conv in net.convs]
    losses, scaled = [], 0
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        logits = net(images[rows], train_whitening=step < WHITENING_STEPS)
        loss = F.cross_entropy(logits, labels[rows], label_smoothing=recipe.smoothing, reduction="sum")
        net.zero_grad(set_to_none=True)
        loss.backward()
        left = 1 - step / TOTAL_STEPS
        shares = (max(0.0, 1 - step / WHITENING_STEPS), left, left)
        for group, rate, share in zip(sgd.param_groups, rates, shares):
            group["lr"] = rate * share
        sgd.step()
        scales = step + 1 - scaled >= recipe.interval[0] + int(recipe.interval[1] * (step + 1) / TOTAL_STEPS)
        scaled = step + 1 if scales else scaled
        rate = recipe.conv_rate * left
        with torch.no_grad():
            for conv, velocity in zip(net.convs, velocities):
                velocity.mul_(recipe.conv_momentum).add_(conv.grad)
                # Rows of channels last; the singular values are the same in any order of columns.
                update = orthogonal((conv.grad + recipe.conv_momentum * velocity).flatten(1), recipe.coefficients, rounded)
                if scales:
                    conv.mul_(len(conv) ** 0.5 / conv.norm())
                conv.mul_(1 - rate * decay * recipe.convs_decay).sub_(update.view_as(conv), alpha=rate)
        losses.append(float(loss.detach()) / BATCH)
        if step == 0:
            first = summaries(net)
    return losses, first


def evaluate(net, recipe, images, labels):
    net.eval()
    padded = F.pad(images, (1, 1, 1, 1), "reflect")
    views = [(0.5, images)] + [(0.25, padded[:, :, d:d + 32, d:d + 32]) for d in (0, 2)]
    with torch.no_grad():
        logits = sum(weight * (net(view) + net(view.flip(-1))) / 2 for weight, view in views)
    return {"loss": float(F.cross_entropy(logits, labels, label_smoothing=recipe.smoothing)),
            "correct": int((logits.argmax(1) == labels).sum())}


count = STEPS * BATCH
images = torch.tensor(numbers((count, 32, 32, 3), 7)).double().permute(0, 3, 1, 2)
labels = torch.tensor((mixed(count, 5) % 10).astype(np.int64))


def expected_of(recipe, rounded):
    net = Net(recipe)
    losses, first = train(net, recipe, rounded, images, labels)
    return {"losses": losses, "first_step": first, "final": summaries(net), "evaluation": evaluate(net, recipe, images, labels)}


def distances(one, other):
    """Of two runs, in the units of speed_test.cpp."""
    def of_variables(which):
        found = {"weights": 0.0, "sum": 0.0, "norm": 0.0}
        for name, expected in other[which].items():
            got, norm = one[which][name], expected["norm"]
            typical = norm / expected["count"] ** 0.5
            found["weights"] = max(found["weights"], max(abs(a - b) for a, b in zip(got["first"], expected["first"])) / typical)
            found["sum"] = max(found["sum"], abs(got["sum"] - expected["sum"]) / norm)
            found["norm"] = max(found["norm"], abs(got["norm"] - norm) / norm)
        return found

    loss, correct = (abs(one["evaluation"][key] - other["evaluation"][key]) for key in ("loss", "correct"))
    return {"first_step": of_variables("first_step"), "final": of_variables("final"),
            "losses": max(abs(a - b) / b for a, b in zip(one["losses"], other["losses"])),
            "evaluation": {"loss": loss / other["evaluation"]["loss"], "correct": correct}}


def largest(all_of_them):
    first = all_of_them[0]
    if isinstance(first, dict):
        return {key: largest([each[key] for each in all_of_them]) for key in first}
    return max(all_of_them)


def expected_in_bf16(recipe):
    expected = expected_of(recipe, in_bf16)
    further = [expected_of(recipe, perturbed_in_bf16(seed)) for seed in range(PERTURBED)]
    return expected | {"spread": largest([distances(each, expected) for each in further])}


expected = {"made_with": "torch " + torch.__version__.split("+")[0], "widths": WIDTHS, "steps": STEPS, "batch": BATCH,
            "total_steps": TOTAL_STEPS, "whitening_steps": WHITENING_STEPS,
            "recipes": {name: expected_of(recipe, exact) for name, recipe in RECIPES.items()},
            "recipes_with_muon_in_bf16": {name: expected_in_bf16(recipe) for name, recipe in RECIPES.items()}}
path = pathlib.Path(__file__).with_name("speed_expected.json")
path.write_text(json.dumps(expected).replace('},', '},\n') + "\n")
print(path, path.stat().st_size, "bytes")
