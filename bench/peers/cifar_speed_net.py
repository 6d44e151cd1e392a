"""The net of recipe cifar10-fast in PyTorch, for timing: its layers and sizes, PyTorch's own initial values."""
import torch.nn as nn


class FixedScaleNorm(nn.BatchNorm2d):
    """Only the shift is trained."""

    def __init__(self, channels):
        super().__init__(channels, eps=1e-12, momentum=0.4)
        self.weight.requires_grad_(False)


def group(c_in, c_out):
    conv = lambda inputs: nn.Conv2d(inputs, c_out, 3, padding=1, bias=False)
    return [conv(c_in), nn.MaxPool2d(2), FixedScaleNorm(c_out), nn.GELU(), conv(c_out), FixedScaleNorm(c_out), nn.GELU()]


def speed_net():
    """(N, 3, 32, 32) -> logits (N, 10). The first layer stays as it is but for its bias, as in the recipe."""
    first = nn.Conv2d(3, 24, 2)
    first.weight.requires_grad_(False)
    return nn.Sequential(first, nn.GELU(), *group(24, 64), *group(64, 256), *group(256, 256), nn.MaxPool2d(3), nn.Flatten(),
                         nn.Linear(256, 10, bias=False))
