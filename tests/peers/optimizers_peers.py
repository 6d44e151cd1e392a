# peers: torch numpy
# package: headrace
"""Update rules that a user writes in Python, in groups or for all variables, and PyTorch's own: the weights after some steps."""

import numpy as np
import torch

import headrace as hr
import peers
from headrace import train

FEATURES, UNITS, CLASSES, ROWS, EPOCHS = 6, 5, 3, 96, 5
NAMES = ("hidden/weights", "hidden/bias", "last/weights", "last/bias")
STRATEGY = train.Strategy("cpu:2", announce=False)
checks = peers.Checks()


def rmsprop(update, alpha=0.99, epsilon=1e-8, momentum=0.0):
    squares, buffer = update.state["squares"], update.state["buffer"]
    squares *= alpha
    squares += (1 - alpha) * update.gradients ** 2
    buffer *= momentum
    buffer += update.gradients / (np.sqrt(squares) + epsilon)
    update.parameters -= update.learning_rate * buffer


def adagrad(update, epsilon=1e-10):
    update.state["sum"] += update.gradients ** 2
    update.parameters -= update.learning_rate * update.gradients / (np.sqrt(update.state["sum"]) + epsilon)


def adamax(update, beta1=0.9, beta2=0.999, epsilon=1e-8):
    mean, largest = update.state["mean"], update.state["largest"]
    mean += (1 - beta1) * (update.gradients - mean)
    np.maximum(beta2 * largest, np.abs(update.gradients) + epsilon, out=largest)
    update.parameters -= update.learning_rate / (1 - beta1 ** (update.step + 1)) * mean / largest


def compare(rule, state, theirs, rate, **options):
    rng = np.random.default_rng(7)
    x, label = rng.normal(size=(ROWS, FEATURES)).astype(np.float32), rng.integers(0, CLASSES, ROWS)
    model = STRATEGY.build(lambda g: g.dense(
        g.dense(g.input("x", (FEATURES,)), UNITS, activation="tanh", name="hidden"), CLASSES, name="last"), seed=3)
    net = torch.nn.Sequential(torch.nn.Linear(FEATURES, UNITS), torch.nn.Tanh(), torch.nn.Linear(UNITS, CLASSES))
    with torch.no_grad():
        for name, parameter in zip(NAMES, net.parameters(), strict=True):
            parameter.copy_(torch.from_numpy(model.read_variable(name)))
    model.compile(train.custom_optimizer(rule, rate, state=state, **options))
    model.fit(hr.from_arrays({"x": x, "label": label}).batch(16), epochs=EPOCHS, verbose=0)
    optimizer = theirs(net.parameters(), rate)
    for first in list(range(0, ROWS, 16)) * EPOCHS:
        optimizer.zero_grad()
        batch = torch.from_numpy(x[first:first + 16]), torch.from_numpy(label[first:first + 16])
        torch.nn.functional.cross_entropy(net(batch[0]), batch[1]).backward()
        optimizer.step()
    for name, parameter in zip(NAMES, net.parameters(), strict=True):
        difference = np.max(np.abs(model.read_variable(name) - parameter.detach().numpy()))
        checks.expect(rule.__name__, difference < 2e-5, f"{name} differs by {difference}")


compare(rmsprop, ["squares", "buffer"], torch.optim.RMSprop, 1e-3)
compare(rmsprop, ["squares", "buffer"], lambda p, rate: torch.optim.RMSprop(p, rate, momentum=0.9), 1e-3, momentum=0.9)
compare(adagrad, ["sum"], torch.optim.Adagrad, 0.05)
compare(adamax, ["mean", "largest"], torch.optim.Adamax, 0.01)
checks.finish()
