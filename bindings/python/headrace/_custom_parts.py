"""What saved models name but cannot hold: custom_objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ._errors import config_error
from ._layers import Layer
from ._native.train import Loss, Metric, Optimizer
from ._objectives import CustomMetric, custom_loss, custom_metric, is_metric


def custom_parts(custom_objects: Mapping[str, Any] | None) -> dict[str, Any]:
    """The losses, metrics, makers of layers and optimizers in custom_objects, by name."""
    losses, metrics, layers, optimizers = [], [], {}, {}
    for name, part in (custom_objects or {}).items():
        if isinstance(part, type) and issubclass(part, Layer):
            layers[name] = _factory(name, part)
        elif isinstance(part, Loss):
            losses.append(part)
        elif isinstance(part, Optimizer):
            optimizers[name] = part
        elif isinstance(part, Metric):
            metrics.append(part)
        elif isinstance(part, type) and issubclass(part, CustomMetric):
            metrics.append(custom_metric(part(), name=name))
        elif is_metric(part):
            metrics.append(custom_metric(part, name=name))
        elif callable(part) and not isinstance(part, type):
            losses.append(custom_loss(part, name=name))
            metrics.append(custom_metric(part, name=name))
        else:
            kind = part if isinstance(part, type) else type(part)
            raise config_error(f"custom_objects['{name}'] is a {kind.__name__}",
                               "give a class derived from train.Layer, a loss, a metric, a custom_optimizer(), or a function "
                               "of (y_true, y_pred)")
    return {"losses": losses, "metrics": metrics, "layers": layers, "optimizers": optimizers}


def layer_factories(custom_objects: Mapping[str, Any] | None) -> dict[str, Any]:
    factories: dict[str, Any] = custom_parts(custom_objects)["layers"]
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
