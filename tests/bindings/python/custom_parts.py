"""Layers, losses and metrics as a user writes them in Python, and small models of them, for the tests of custom parts."""

import numpy as np
import pytest

import headrace as hr
from headrace import train

FEATURES, CLASSES = 6, 3


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Swish(train.Layer):
    """Without variables; returns its results."""

    def forward(self, x, call):
        return x * sigmoid(x)

    def backward(self, gradient, call):
        [x] = call.inputs
        s = sigmoid(x)
        return gradient * s * (1 + x * (1 - s))


class Affine(train.Layer):
    """With variables and another output shape; writes into the arrays."""

    def __init__(self, units, bias=True):
        self.units, self.bias = units, bias

    def output_shape(self, x):
        return (*x[:-1], self.units)

    def variables(self, x):
        made = {"weights": train.variable((self.units, x[-1]), "glorot_uniform")}
        return made | {"bias": train.variable([self.units])} if self.bias else made

    def forward(self, x, call):
        np.matmul(x, call.variables["weights"].T, out=call.output)
        if self.bias:
            call.output[...] += call.variables["bias"]

    def backward(self, gradient, call):
        [x] = call.inputs
        np.matmul(gradient.T, x, out=call.variable_gradients["weights"])
        if self.bias:
            np.sum(gradient, axis=0, out=call.variable_gradients["bias"])
        np.matmul(gradient, call.variables["weights"], out=call.input_gradients[0])


class GatedSum(train.Layer):
    """Of two inputs: a * gate + b, with a gate that is saved."""

    def saved(self, a, b):
        return {"gate": a}

    def forward(self, a, b, call):
        call.saved["gate"][...] = sigmoid(b)
        return a * call.saved["gate"] + b

    def backward(self, gradient, call):
        a, _ = call.inputs
        gate = call.saved["gate"]
        return [gradient * gate, gradient * (1 + a * gate * (1 - gate))]


class Dropper(train.Layer):
    """Random: half of the elements are 0 in training."""

    def forward(self, x, call):
        return x * self._mask(x, call) if call.training else x

    def backward(self, gradient, call):
        return gradient * self._mask(gradient, call)

    def _mask(self, x, call):
        return 2 * call.rng.integers(0, 2, x.shape).astype(np.float32)


class MeanFollower(train.Layer):
    """With a variable that the forward pass changes."""

    def variables(self, x):
        return {"mean": train.variable(x, trainable=False)}

    def forward(self, x, call):
        if call.training:
            call.variables["mean"] += 0.5 * (x.mean(axis=0) - call.variables["mean"])
        return x - call.variables["mean"]

    def backward(self, gradient, call):
        return gradient


def log_cosh(y_true, y_pred):
    error = y_pred - y_true
    return np.log(np.cosh(error)).mean(axis=1), np.tanh(error) / error.shape[1]


class RSquared(train.CustomMetric):
    sums = 4

    def update(self, y_true, y_pred):
        return [y_true.size, y_true.sum(), (y_true.astype(float) ** 2).sum(), ((y_pred - y_true).astype(float) ** 2).sum()]

    def result(self, sums):
        return 1 - sums[3] / (sums[2] - sums[1] ** 2 / sums[0])


def hits(y_true, y_pred):
    return y_pred.argmax(axis=1) == y_true


def arrays(records=58, seed=0):
    rng = np.random.default_rng(seed)
    return {"x": rng.normal(size=(records, FEATURES)).astype(np.float32), "label": np.arange(records) % CLASSES,
            "target": rng.normal(size=(records, CLASSES)).astype(np.float32)}


@pytest.fixture
def batches():
    return hr.from_arrays(arrays()).shuffle(seed=3).batch(16)  # uneven: the last has ten


def built(net, replicas=1, seed=1):
    return train.Strategy(f"cpu:{replicas}", announce=False).build(net, seed=seed)


def of_x(*layers):
    return train.Sequential(layers, input="x", shape=(FEATURES,))


def fitted(net, data, replicas=1, epochs=3, optimizer=None, loss=None, metrics=("accuracy",), **options):
    model = built(net, replicas)
    model.compile(optimizer or train.sgd(0.1), loss, metrics)
    return model, model.fit(data, epochs=epochs, verbose=0, **options)


def variables_of(model):
    return {name: model.read_variable(name) for name in model.variable_names}


def note_of(error, otherwise):
    """The note on an exception; `otherwise` before Python 3.11, which has none."""
    return error.__notes__[0] if hasattr(error, "__notes__") else otherwise
