# peers: torch numpy
# package: headrace
"""Convolutions of the trainer and PyTorch's on the same numbers: what they give and, by one step of gradient descent, the
gradients of their weights, biases and inputs; kernels, strides, dilations, paddings and output paddings, each of them for both
axes or as a pair; groups."""

import itertools

import numpy as np
import torch
from torch import nn

import headrace as hr
import peers
from headrace import train

IMAGES, HEIGHT, WIDTH, CHANNELS, FILTERS = 40, 9, 8, 4, 6
RATE = 100  # so that steps are not small beside the values
STRATEGY = train.Strategy("cpu:2", announce=False)
rng = np.random.default_rng(7)
checks = peers.Checks()


def close(what, ours, theirs, tolerance, example):
    same = ours.shape == theirs.shape
    difference = np.max(np.abs(ours.astype(np.float64) - theirs)) if same else f"{ours.shape} to {theirs.shape}"
    checks.expect(what, same and difference <= tolerance, f"{example}: {difference}")


def compare(kind, ours, theirs):
    """A layer called "conv" that ours(g, x) adds, behind a dense layer that begins as an identity, and PyTorch's `theirs`."""
    x = rng.normal(size=(IMAGES, HEIGHT, WIDTH, CHANNELS)).astype(np.float32)
    model = STRATEGY.build(lambda g: ours(g, g.dense(g.input("x", x.shape[1:]), CHANNELS, bias=False, name="first")))
    given = {"first/weights": np.eye(CHANNELS, dtype=np.float32)}
    for name in ("conv/weights", "conv/bias"):
        given[name] = (0.3 * rng.normal(size=model.read_variable(name).shape)).astype(np.float32)
    for name, values in given.items():
        model.write_variable(name, values)
    first = torch.eye(CHANNELS, requires_grad=True)
    with torch.no_grad():
        theirs.weight.copy_(torch.from_numpy(given["conv/weights"].transpose(0, 3, 1, 2)))
        theirs.bias.copy_(torch.from_numpy(given["conv/bias"]))
    seen = theirs((torch.from_numpy(x) @ first.T).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    results = model.predict(hr.from_arrays({"x": x}).batch(16)).values
    close(f"{kind}: results", results, seen.detach().numpy(), 2e-5, theirs)

    label = rng.normal(size=seen.shape).astype(np.float32)
    model.compile(train.sgd(RATE), train.mean_squared_error(), metrics=[])
    model.fit(hr.from_arrays({"x": x, "label": label}).batch(IMAGES), epochs=1, verbose=0)
    ((seen - torch.from_numpy(label)) ** 2).mean().backward()
    slopes = {"first/weights": first.grad, "conv/weights": theirs.weight.grad.permute(0, 2, 3, 1),
              "conv/bias": theirs.bias.grad}
    for name, slope in slopes.items():
        expected = slope.numpy()
        close(f"{kind}: slopes", (given[name] - model.read_variable(name)) / RATE, expected,
              1e-4 * np.max(np.abs(expected)) + 2e-7, f"{theirs}, {name}")


def square_windows():
    for kernel, stride, dilation, padding in itertools.product((1, 2, 3), (1, 2), (1, 2, 3), (0, 1, 3, "even", "same")):
        if padding == "even" and kernel % 2 == 0 or padding == "same" and stride > 1:
            continue
        yield kernel, stride, dilation, padding


def uneven_windows():
    """A random seventh of all."""
    for kernel, stride, dilation, padding in itertools.product(((1, 3), (3, 1), (2, 3), (5, 3)), ((1, 1), (2, 1), (1, 3)),
                                                               ((1, 1), (1, 2), (2, 1)), ((0, 1), (2, 0), "even", "same")):
        if padding == "even" and kernel[0] % 2 == 0 or padding == "same" and stride != (1, 1):
            continue
        if rng.random() < 1 / 7 or padding == "same":
            yield kernel, stride, dilation, padding


def pair(numbers):
    return numbers if isinstance(numbers, tuple) else (numbers, numbers)


def even(kernel, dilation):
    return tuple(d * (k - 1) // 2 for k, d in zip(pair(kernel), pair(dilation)))


def main():
    for kernel, stride, dilation, padding in (*square_windows(), *uneven_windows()):
        pixels = even(kernel, dilation) if padding == "even" else padding
        options = {"kernel": kernel, "stride": stride, "dilation": dilation, "padding": padding, "name": "conv"}
        arguments = {"stride": stride, "dilation": dilation, "padding": pixels}
        for groups in (1, 2):
            compare("conv", lambda g, x: g.conv(x, FILTERS, groups=groups, **options),
                    nn.Conv2d(CHANNELS, FILTERS, kernel, groups=groups, **arguments))
        compare("depthwise_conv", lambda g, x: g.depthwise_conv(x, multiplier=2, **options),
                nn.Conv2d(CHANNELS, 2 * CHANNELS, kernel, groups=CHANNELS, **arguments))
        if padding == "same":
            continue
        for beyond in {tuple(share * (s - 1) for s in pair(stride)) for share in (0, 1)}:
            for groups in (1, 2):
                compare("conv_transpose",
                        lambda g, x: g.conv_transpose(x, FILTERS, output_padding=beyond, groups=groups, **options),
                        nn.ConvTranspose2d(CHANNELS, FILTERS, kernel, output_padding=beyond, groups=groups, **arguments))
    checks.finish()


main()
