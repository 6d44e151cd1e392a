"""Layers, losses and metrics that the user writes in Python."""

from __future__ import annotations

import inspect
import json
import math
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._errors import config_error
from ._native import train as _native
from ._native.train import Graph, Loss, Metric, Node

Shape = tuple[int, ...]
LossFunction = Callable[[NDArray[Any], NDArray[np.float32]], tuple[ArrayLike, ArrayLike]]


# ---------------------------------------------------------------------------------------------------------- layers


class Variable(NamedTuple):
    """A variable of a custom layer. Made by variable()."""

    shape: Shape
    initializer: str
    constant: float
    trainable: bool
    fan_in: int
    fan_out: int


def variable(shape: Sequence[int], initializer: str | float = "zeros", *, trainable: bool = True, fan_in: int | None = None,
             fan_out: int | None = None) -> Variable:
    """A variable of a custom layer.

    initializer: "zeros", "ones", "glorot_uniform", "he_uniform", "fan_in_uniform", "unit_deviation", or a number.
    trainable: False: forward() changes it in training, as running statistics, and it is averaged over the replicas.
    fan_in, fan_out: for the initializers that need them; None: of weights of the shape (outputs, inputs, ...).
    """
    extents = _shape(shape, "variable()")
    word, constant = ("constant", 1.0) if initializer == "ones" else (initializer, 0.0)
    if not isinstance(word, str):
        word, constant = "constant", float(word)
    inputs, outputs = (math.prod(extents[1:]), extents[0]) if len(extents) > 1 else (math.prod(extents),) * 2
    return Variable(extents, word, constant, trainable, fan_in or max(1, inputs), fan_out or max(1, outputs))


class LayerCall:
    """What a call of a custom layer works on: arrays that are the replica's memory, with one row an example.

    They are lent for the call: copy what is to stay. A method writes its results into them, or returns them.
    """

    __slots__ = ("inputs", "output", "variables", "saved", "training", "input_gradients", "variable_gradients", "_key")

    inputs: tuple[Any, ...]  # read-only
    output: Any  # written by forward(), 0 before
    variables: dict[str, Any]  # by name; in training forward() may write those that are not trainable
    saved: dict[str, Any]  # written by forward(), read by backward()
    training: bool
    input_gradients: tuple[Any, ...]  # written by backward(), 0 before
    variable_gradients: dict[str, Any]  # written by backward(), 0 before: sums over the rows

    def __init__(self, view: Callable[[Any], Any], inputs: list[Any], output: Any, variables: dict[str, Any],
                 saved: dict[str, Any], numbers: tuple[bool, int, int, int, int]) -> None:
        self.inputs, self.output = tuple(map(view, inputs)), view(output)
        self.variables = {name: view(array) for name, array in variables.items()}
        self.saved = {name: view(array) for name, array in saved.items()}
        self.training, *self._key = numbers
        self.input_gradients, self.variable_gradients = (), {}

    @property
    def rng(self) -> np.random.Generator:
        """Random numbers of this layer, training step and replica's share: forward() and backward() get the same ones, and
        so does a resumed training."""
        seed, number, step, first_row = self._key
        return np.random.Generator(np.random.Philox(key=np.array([seed, number], np.uint64),
                                                    counter=np.array([0, 0, step, first_row], np.uint64)))


class Layer:
    """A layer of one's own, computed on CPUs.

        class Swish(train.Layer):
            def forward(self, x, call):
                return x / (1 + np.exp(-x))

            def backward(self, gradient, call):
                [x] = call.inputs
                s = 1 / (1 + np.exp(-x))
                return gradient * s * (1 + x * (1 - s))

        train.Sequential([train.layer("dense", 64), Swish(), train.layer("dense", 10)])
        lambda g: g.dense(Swish()(g.dense(g.input("image"), 64)), 10)

    One object serves all replicas, whose threads call it in turn: its results depend on what a call is given, and it keeps
    nothing between calls but in call.saved. An object that is called again shares its variables. Saved models hold its
    class's name and config(); who loads them gives custom_objects={"Swish": Swish}.
    """

    name: str = ""  # "": the class's name, "swish", "swish_1"
    arrays: str = "numpy"  # what calls are given: "numpy", or "torch" for tensors that share the memory
    _arguments: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Layer:
        made = super().__new__(cls)
        made._arguments = _arguments_of(cls, made, args, kwargs)
        return made

    def output_shape(self, *inputs: Shape) -> Sequence[int]:
        """The shape of one example's result from those of its inputs; the first input's unless overridden."""
        return inputs[0]

    def variables(self, *inputs: Shape) -> Mapping[str, Variable]:
        """The variables by name, as variable() makes them; none unless overridden."""
        return {}

    def saved(self, *inputs: Shape) -> Mapping[str, Sequence[int]]:
        """What forward() keeps for backward() in call.saved besides inputs and output: the shapes of one example's float32
        values by name."""
        return {}

    def config(self) -> Mapping[str, Any]:
        """The arguments from which the layer is made again, as JSON can hold them; those that it was made with unless
        overridden."""
        return self._arguments

    def forward(self, *inputs_and_call: Any) -> Any:
        """forward(x, call), of several inputs forward(a, b, call): returns the result or writes call.output."""
        raise NotImplementedError(f"{type(self).__name__} has no forward(self, x, call)")

    def backward(self, gradient: Any, call: LayerCall) -> Any:
        """From the gradient of the result those of the inputs, returned (of several inputs as a list) or written into
        call.input_gradients, and of the variables, written into call.variable_gradients."""
        raise NotImplementedError(f"{type(self).__name__} has no backward(self, gradient, call), which training needs")

    def __call__(self, *inputs: Any, name: str = "") -> Node:
        """Adds the layer to the net of these nodes; gives its result. A graph before them is passed over."""
        nodes = list(inputs[1:] if inputs and isinstance(inputs[0], Graph) else inputs)
        if not nodes or not all(isinstance(node, Node) for node in nodes):
            raise config_error(f"{type(self).__name__} was not called on nodes of a net",
                               "call it on what a layer of the graph gave, within the function given to build()")
        return _native.call_layer(self, nodes, name or self.name, _snake(type(self).__name__))

    # ------------------------------------------------------------------------------------- called by the extension

    def _describe(self, shapes):
        kind = type(self).__name__
        if kind in dir(Graph) or not kind.isidentifier():
            raise config_error(f"a custom layer's class cannot be called '{kind}'", "that is a layer of the graph: rename it")
        variables = [(name, *_variable(spec, f"{kind}.variables()")) for name, spec in self.variables(*shapes).items()]
        saved = [(name, _shape(shape, f"{kind}.saved()")) for name, shape in self.saved(*shapes).items()]
        return kind, self._config_text(), _shape(self.output_shape(*shapes), f"{kind}.output_shape()"), variables, saved

    def _config_text(self):
        try:
            return json.dumps(dict(self.config()))
        except (TypeError, ValueError) as error:
            raise config_error(f"{type(self).__name__} cannot be saved: {error}",
                               "let its config() return the arguments to make it with, as JSON has them") from error

    def _run_forward(self, *given):
        try:
            inputs, output, variables, saved, numbers = given
            call = LayerCall(_view_of(self), inputs, output, variables, saved, numbers)
            returned = self.forward(*call.inputs, call)
            if returned is not None and returned is not call.output:
                _store(returned, output, f"forward() of {type(self).__name__}")
        except BaseException as raised:
            inputs = output = variables = saved = call = returned = given = None
            _forget_locals(raised)
            raise

    def _run_backward(self, *given):
        try:
            inputs, output, gradient, input_gradients, variables, variable_gradients, saved, numbers = given
            view = _view_of(self)
            call = LayerCall(view, inputs, output, variables, saved, numbers)
            targets = [np.zeros_like(x) if target is None else target for target, x in zip(input_gradients, inputs)]
            call.input_gradients = tuple(map(view, targets))
            call.variable_gradients = {
                name: view(np.zeros_like(variables[name]) if target is None else target)
                for name, target in variable_gradients.items()}
            returned = self.backward(view(gradient), call)
            _store_gradients(returned, call.input_gradients, targets, f"backward() of {type(self).__name__}")
        except BaseException as raised:
            inputs = output = gradient = input_gradients = variables = variable_gradients = saved = None
            call = targets = returned = given = None
            _forget_locals(raised)
            raise

    def _refuse_kept(self, method):
        refuse_kept(f"{method} of {type(self).__name__}")


def _arguments_of(cls, made, args, kwargs):
    if cls.__init__ is object.__init__:
        if args or kwargs:
            raise TypeError(f"{cls.__name__}() takes no arguments")
        return {}
    signature = inspect.signature(cls.__init__)
    try:
        bound = signature.bind(made, *args, **kwargs).arguments
    except TypeError:  # __init__ raises it
        return {}
    arguments = {}
    for name, value in list(bound.items())[1:]:
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            arguments.update(value)
        else:
            arguments[name] = list(value) if isinstance(value, tuple) else value
    return arguments


def _variable(spec, where):
    if isinstance(spec, Variable):
        return spec
    raise config_error(f"{where} gave a {type(spec).__name__} in place of a variable", "make it with train.variable(shape)")


def _shape(shape, where):
    try:
        return tuple(int(extent) for extent in shape)
    except (TypeError, ValueError):
        raise config_error(f"{where} has the shape {shape!r}", "give a tuple of numbers, of one example") from None


def _view_of(layer):
    """Makes what a call is given of an array."""
    if layer.arrays == "numpy":
        return lambda array: array
    if layer.arrays == "torch":
        return _tensor
    raise config_error(f"{type(layer).__name__}.arrays is {layer.arrays!r}", "one of \"numpy\", \"torch\"")


def _tensor(array):
    import torch

    return torch.from_dlpack(array if array.flags.writeable else np.asarray(_Memory(array)))


class _Memory:
    """A read-only array's memory, to be written to: PyTorch has no read-only tensors."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def _numpy_of(value):
    detach = getattr(value, "detach", None)  # of a torch.Tensor
    return np.asarray(value if detach is None else detach())


def _store(value, target, what):
    value = _numpy_of(value)
    if value.shape != target.shape:
        raise ValueError(f"{what} returned the shape {value.shape}; it is to be {target.shape}")
    np.copyto(target, value, casting="same_kind")


def _store_gradients(returned, views, targets, what):
    if returned is None:
        return
    several = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    if len(several) != len(targets):
        raise ValueError(f"{what} returned {len(several)} gradients; the layer has {len(targets)} inputs")
    for value, view, target in zip(several, views, targets):
        if value is not None and value is not view:
            _store(value, target, what)


def _snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _forget_locals(raised):
    """Drops the locals of the frames that raised: they may hold lent arrays, whose memory the trainer uses again."""
    chain, seen = [raised], set()
    while chain:
        error = chain.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        chain += [error.__cause__, error.__context__]


def refuse_kept(what):
    raise config_error(f"{what} kept an array that it was given", "keep a copy: the memory is used for something else")


# ---------------------------------------------------------------------------------------------------------- losses


def custom_loss(function: LossFunction, *, name: str | None = None, reduction: str = "mean") -> Loss:
    """A loss that Python computes: function(y_true, y_pred) of a replica's examples returns the loss of each one and the
    gradient of each one's loss by its predictions, (values, gradient).

        def log_cosh(y_true, y_pred):
            error = y_pred - y_true
            return np.log(np.cosh(error)).mean(axis=1), np.tanh(error) / error.shape[1]

        model.compile(loss=log_cosh)             # or custom_loss(log_cosh), to add it to others or of("left")

    The arrays are lent: copy what is to stay. It works on GPUs, too, through copies in the host's memory. name: in files
    and messages; None: the function's.
    """
    called = _name_of(function) if name is None else name

    def run(*given):
        try:
            y_true, y_pred, losses, gradient = given
            returned = function(y_true, y_pred)
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise TypeError(f"loss '{called}' returned a {type(returned).__name__}: return (values, gradient), the loss "
                                "of each example and its gradient by the predictions")
            values, slopes = map(_numpy_of, returned)
            if values.shape != losses.shape:
                raise ValueError(f"loss '{called}' returned values of the shape {values.shape} for {len(losses)} examples: "
                                 "return one loss an example, not their mean")
            np.copyto(losses, values, casting="same_kind")
            if gradient is not None:
                _store(slopes, gradient, f"the gradient of loss '{called}'")
        except BaseException as raised:
            y_true = y_pred = losses = gradient = returned = values = slopes = given = None
            _forget_locals(raised)
            raise

    return _native.python_loss(called, run, reduction)


def loss_of(loss: Loss | LossFunction) -> Loss:
    """The loss that compile() was given."""
    if isinstance(loss, Loss):
        return loss
    if callable(loss) and not isinstance(loss, type):
        return custom_loss(loss)
    raise config_error(f"a {type(loss).__name__} is no loss",
                       "give one of headrace.train's, or a function of (y_true, y_pred) that returns (values, gradient)")


def _name_of(function):
    return getattr(function, "__name__", type(function).__name__).strip("<>")


# --------------------------------------------------------------------------------------------------------- metrics


class CustomMetric:
    """A metric of one's own, from sums over all examples and replicas.

        class RSquared(train.CustomMetric):
            sums = 4

            def update(self, y_true, y_pred):
                return [y_true.size, y_true.sum(), (y_true ** 2).sum(), ((y_pred - y_true) ** 2).sum()]

            def result(self, sums):
                return 1 - sums[3] / (sums[2] - sums[1] ** 2 / sums[0])

        model.compile(metrics=[RSquared()])

    Sums of whole numbers are exact whatever the replicas. Values are known when an epoch or an evaluation ends. An update
    that takes sample_weight can also be one of compile()'s weighted_metrics.
    """

    name: str = ""  # "": the class's name, "r_squared"
    sums: int = 1  # how many there are

    def update(self, y_true: NDArray[Any], y_pred: NDArray[np.float32]) -> ArrayLike:
        """What a replica's examples add to the sums. The arrays are lent: copy what is to stay."""
        raise NotImplementedError(f"{type(self).__name__} has no update(self, y_true, y_pred)")

    def result(self, sums: NDArray[np.float64]) -> ArrayLike:
        """The value, a number or an array of them, from the sums; they are 0 without examples."""
        raise NotImplementedError(f"{type(self).__name__} has no result(self, sums)")


class _MeanOfFunction(CustomMetric):
    sums = 2

    def __init__(self, function, name):
        self.function, self.name = function, name

    def update(self, y_true, y_pred, sample_weight=None):
        values = _numpy_of(self.function(y_true, y_pred))
        if values.shape != (len(y_pred),):
            raise ValueError(f"metric '{self.name}' returned the shape {values.shape} for {len(y_pred)} examples: return one "
                             "value an example, not their mean")
        weights = np.ones(len(values)) if sample_weight is None else sample_weight
        return [np.dot(values.astype(np.float64), weights), np.sum(weights, dtype=np.float64)]

    def result(self, sums):
        return sums[0] / sums[1] if sums[1] else 0.0


def custom_metric(metric: Any, *, name: str | None = None) -> Metric:
    """A metric that Python computes, as compile() makes it of a CustomMetric, or any object with its sums, update() and
    result(); or of a function(y_true, y_pred) that returns one value an example, whose mean is reported."""
    if not _is_metric(metric):
        metric = _MeanOfFunction(metric, _name_of(metric) if name is None else name)
    called = name or getattr(metric, "name", "") or _snake(type(metric).__name__)
    weighs = "sample_weight" in inspect.signature(metric.update).parameters
    return _native.python_metric(called, int(metric.sums), _updater(metric, called), _resulter(metric), weighs)


def _updater(metric, called):
    def run(*given):
        try:
            y_true, y_pred, weights, sums = given
            added = _numpy_of(metric.update(y_true, y_pred) if weights is None else
                              metric.update(y_true, y_pred, sample_weight=weights))
            if added.ravel().shape != sums.shape:
                raise ValueError(f"update() of metric '{called}' returned {added.size} numbers for {len(sums)} sums")
            sums += added.ravel()
        except BaseException as raised:
            y_true = y_pred = weights = sums = added = given = None
            _forget_locals(raised)
            raise

    return run


def _resulter(metric):
    def run(sums):
        value = np.asarray(metric.result(np.asarray(sums, np.float64)), np.float64)
        return value.ravel().tolist(), list(value.shape)

    return run


def _is_metric(value):
    return all(callable(getattr(value, method, None)) for method in ("update", "result")) and not isinstance(value, type)


def metric_of(metric: Any) -> Metric | None:
    """The metric of a Python object; None if it is none."""
    return custom_metric(metric) if _is_metric(metric) or (callable(metric) and not isinstance(metric, type)) else None


# --------------------------------------------------------------------------------------------- parts of saved models


def own_parts(custom_objects: Mapping[str, Any] | None) -> dict[str, Any]:
    """The losses, metrics and makers of layers in custom_objects, by name."""
    losses, metrics, layers = [], [], {}
    for name, part in (custom_objects or {}).items():
        if isinstance(part, type) and issubclass(part, Layer):
            layers[name] = _factory(name, part)
        elif isinstance(part, Loss):
            losses.append(part)
        elif isinstance(part, Metric):
            metrics.append(part)
        elif isinstance(part, type) and issubclass(part, CustomMetric):
            metrics.append(custom_metric(part(), name=name))
        elif _is_metric(part):
            metrics.append(custom_metric(part, name=name))
        elif callable(part) and not isinstance(part, type):
            losses.append(custom_loss(part, name=name))
            metrics.append(custom_metric(part, name=name))
        else:
            raise config_error(f"custom_objects['{name}'] is a {part.__name__ if isinstance(part, type) else type(part).__name__}",
                               "give a class derived from train.Layer, a loss, a metric, or a function of (y_true, y_pred)")
    return {"losses": losses, "metrics": metrics, "layers": layers}


def layer_factories(custom_objects: Mapping[str, Any] | None) -> dict[str, Any]:
    factories: dict[str, Any] = own_parts(custom_objects)["layers"]
    return factories


def _factory(name, kind):
    def make(text):
        config = json.loads(text)
        try:
            return kind(**config)
        except TypeError as error:
            raise config_error(f"{name} cannot be made with the arguments that the file has for it, {config}: {error}",
                               "let config() return the arguments that __init__ takes") from error

    return make
