"""Layers that the user writes in Python."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ._errors import config_error
from ._lent import forget_locals, numpy_of, refuse_kept, snake, store
from ._native import train as _native
from ._native.train import Graph, Node

Shape: TypeAlias = tuple[int, ...]


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
    """A custom layer, computed on CPUs.

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
        return _native.call_layer(self, nodes, name or self.name, snake(type(self).__name__))

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
                store(returned, output, f"forward() of {type(self).__name__}")
        except BaseException as raised:
            inputs = output = variables = saved = call = returned = given = None
            forget_locals(raised)
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
            forget_locals(raised)
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


def _store_gradients(returned, views, targets, what):
    if returned is None:
        return
    several = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    if len(several) != len(targets):
        raise ValueError(f"{what} returned {len(several)} gradients; the layer has {len(targets)} inputs")
    for value, view, target in zip(several, views, targets):
        if value is not None and value is not view:
            store(value, target, what)
