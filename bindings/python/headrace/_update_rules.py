"""Optimizers whose update rule the user writes in Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import config_error
from ._lent import forget_locals, store
from ._native import train as _native
from ._native.train import Optimizer, Schedule


@dataclass(slots=True)
class Update:
    """What a custom update rule is given, float32. The arrays are lent: copy what is to stay.

    parameters: to be changed in place, or replaced. gradients: of the mean loss over all replicas, clipped if requested; read-only.
    state: what the rule keeps for each parameter, by name, 0 at first; to be changed or replaced, too.
    learning_rate: that of this step. step: how many updates precede this one.
    """

    parameters: NDArray[np.float32]
    gradients: NDArray[np.float32]
    state: dict[str, NDArray[np.float32]]
    learning_rate: float
    step: int


def custom_optimizer(rule: Callable[..., Any], learning_rate: Schedule | float = 1e-3, *, state: Sequence[str] = (),
                     name: str | None = None, whole_variables: bool = False, clip_norm: float = 0.0,
                     clip_value: float = 0.0, **options: Any) -> Optimizer:
    """An optimizer whose update rule is a function, rule(update, **options), that changes arrays.

        def lion(update, beta1=0.9, beta2=0.99):
            m, g = update.state["momentum"], update.gradients
            update.parameters -= update.learning_rate * np.sign(beta1 * m + (1 - beta1) * g)
            m *= beta2
            m += (1 - beta2) * g

        model.compile(optimizer=train.custom_optimizer(lion, 1e-4, state=["momentum"]))

    Schedules, groups, clipping, lookahead, averages and checkpoints work as with other optimizers: the state is saved, and a
    training that is resumed goes on with the same bits. Replicas call the function in turn, each with its own copy; a learning
    rate of 0 is to change nothing. On GPUs, too, it is computed on the host, through copies.

    state: names of what the rule keeps for each parameter. whole_variables: False: the arrays are flat runs of parameters, of
    any length, for a rule that treats each element by itself; True: each call has one whole variable in its shape.
    options: passed to the function, and saved; as JSON has them. A saved model names the rule: who loads it gives
    custom_objects={"lion": the optimizer}. name: None: the function's.
    """
    if not callable(rule):
        raise config_error(f"a {type(rule).__name__} is no update rule", "give a function of an update, rule(update)")
    called = getattr(rule, "__name__", type(rule).__name__).strip("<>") if name is None else name
    names = _state_names(state, called)

    def run(*given):  # type: ignore[no-untyped-def]
        try:
            parameters, gradients, arrays, rate, step = given
            update = Update(parameters, gradients, dict(zip(names, arrays)), rate, step)
            if rule(update, **options) is not None:
                raise TypeError(f"update rule '{called}' returned something: change update.parameters and update.state")
            _store_replaced(update.parameters, parameters, f"update.parameters of rule '{called}'")
            if list(update.state) != names:
                raise ValueError(f"update rule '{called}' left the state {list(update.state)}; it has {names}")
            for each, array in zip(names, arrays):
                _store_replaced(update.state[each], array, f"update.state['{each}'] of rule '{called}'")
        except BaseException as raised:
            parameters = gradients = arrays = array = update = given = None
            forget_locals(raised)
            raise

    return _native.python_optimizer(called, names, run, _text_of(options, called), whole_variables, learning_rate, clip_norm,
                                    clip_value)


def _store_replaced(value, target, what):
    if value is not target:
        store(value, target, what)


def _state_names(state, called):
    names = [state] if isinstance(state, str) else list(state)
    if len(set(names)) != len(names) or not all(isinstance(each, str) and each.isidentifier() for each in names):
        raise config_error(f"update rule '{called}' has the state {names!r}", "give it different names, as of variables")
    return names


def _text_of(options, called):
    try:
        return json.dumps(options)
    except (TypeError, ValueError) as error:
        raise config_error(f"the options of update rule '{called}' cannot be saved: {error}",
                           "give numbers, texts and lists; what else it needs may be a default of its function") from error
