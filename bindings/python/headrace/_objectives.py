"""Losses and metrics that the user writes in Python."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._calls import require_function
from ._errors import config_error
from ._lent import forget_locals, numpy_of, snake, store
from ._native import train as _native
from ._native.train import Loss, Metric

LossFunction: TypeAlias = Callable[[NDArray[Any], NDArray[np.float32]], tuple[ArrayLike, ArrayLike]]


def custom_loss(function: LossFunction, *, name: str | None = None, reduction: str = "mean") -> Loss:
    """A loss that Python computes: function(y_true, y_pred) of a replica's examples returns the loss of each one and the
    gradient of each one's loss by its predictions, (values, gradient).

        def log_cosh(y_true, y_pred):
            error = y_pred - y_true
            return np.log(np.cosh(error)).mean(axis=1), np.tanh(error) / error.shape[1]

        model.compile(loss=log_cosh)             # or custom_loss(log_cosh), to add it to others or of("left")

    The arrays are lent: copy what is to stay. It works on GPUs, too, through copies in the host's memory. name: in files
    and messages; None: the function's. What the predictions are, metrics such as accuracy() must be told:
    custom_loss(f).for_task("binary", from_logits=True).
    """
    require_function(function, "loss")
    called = _name_of(function) if name is None else name

    def run(*given):
        try:
            y_true, y_pred, losses, gradient = given
            returned = function(y_true, y_pred)
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise TypeError(f"loss '{called}' returned a {type(returned).__name__}: return (values, gradient), the loss "
                                "of each example and its gradient by the predictions")
            values, slopes = map(numpy_of, returned)
            if values.shape != losses.shape:
                raise ValueError(f"loss '{called}' returned values of the shape {values.shape} for {len(losses)} examples: "
                                 "return one loss an example, not their mean")
            np.copyto(losses, values, casting="same_kind")
            if gradient is not None:
                store(slopes, gradient, f"the gradient of loss '{called}'")
        except BaseException as raised:
            y_true = y_pred = losses = gradient = returned = values = slopes = given = None
            forget_locals(raised)
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


class CustomMetric:
    """A custom metric, from sums over all examples and replicas.

        class RSquared(train.CustomMetric):
            sums = 4

            def update(self, y_true, y_pred):
                return [y_true.size, y_true.sum(), (y_true ** 2).sum(), ((y_pred - y_true) ** 2).sum()]

            def result(self, sums):
                return 1 - sums[3] / (sums[2] - sums[1] ** 2 / sums[0])

        model.compile(metrics=[RSquared()])

    Sums of whole numbers are exact whatever the replicas. Values are known when an epoch or an evaluation ends. An update
    that takes sample_weight can also be one of compile()'s weighted_metrics. What chooses the best epoch by a metric,
    such as early_stopping(), asks whether it is better for its values to be higher, "max", or lower, "min".
    """

    name: str = ""  # "": the class's name, "r_squared"
    sums: int = 1  # how many there are
    better: str = "auto"  # "max" or "min"; "auto": unknown, whoever chooses by it must be told

    def update(self, y_true: NDArray[Any], y_pred: NDArray[np.float32]) -> ArrayLike:
        """What a replica's examples add to the sums. The arrays are lent: copy what is to stay."""
        raise NotImplementedError(f"{type(self).__name__} has no update(self, y_true, y_pred)")

    def result(self, sums: NDArray[np.float64]) -> ArrayLike:
        """The value, a number or an array of them, from the sums; they are 0 without examples."""
        raise NotImplementedError(f"{type(self).__name__} has no result(self, sums)")


class _MeanOfFunction(CustomMetric):
    sums = 2

    def __init__(self, function, name, better):
        self.function, self.name, self.better = function, name, better

    def update(self, y_true, y_pred, sample_weight=None):
        values = numpy_of(self.function(y_true, y_pred))
        if values.shape != (len(y_pred),):
            raise ValueError(f"metric '{self.name}' returned the shape {values.shape} for {len(y_pred)} examples: return one "
                             "value an example, not their mean")
        weights = np.ones(len(values)) if sample_weight is None else sample_weight
        return [np.dot(values.astype(np.float64), weights), np.sum(weights, dtype=np.float64)]

    def result(self, sums):
        return sums[0] / sums[1] if sums[1] else 0.0


def custom_metric(metric: Any, *, name: str | None = None, better: str | None = None) -> Metric:
    """A metric that Python computes, as compile() makes it of a CustomMetric, or any object with its sums, update() and
    result(); or of a function(y_true, y_pred) that returns one value an example, whose mean is reported. better: "max" or
    "min"; None: the metric's own word, if it has one."""
    if not is_metric(metric):
        require_function(metric, "metric")
        metric = _MeanOfFunction(metric, _name_of(metric) if name is None else name, "auto")
    called = name or getattr(metric, "name", "") or snake(type(metric).__name__)
    weighs = "sample_weight" in inspect.signature(metric.update).parameters
    return _native.python_metric(called, int(metric.sums), _updater(metric, called), _resulter(metric), weighs,
                                 str(better or getattr(metric, "better", "auto")))


def _updater(metric, called):
    def run(*given):
        try:
            y_true, y_pred, weights, sums = given
            added = numpy_of(metric.update(y_true, y_pred) if weights is None else
                              metric.update(y_true, y_pred, sample_weight=weights))
            if added.ravel().shape != sums.shape:
                raise ValueError(f"update() of metric '{called}' returned {added.size} numbers for {len(sums)} sums")
            sums += added.ravel()
        except BaseException as raised:
            y_true = y_pred = weights = sums = added = given = None
            forget_locals(raised)
            raise

    return run


def _resulter(metric):
    def run(sums):
        value = np.asarray(metric.result(np.asarray(sums, np.float64)), np.float64)
        return value.ravel().tolist(), list(value.shape)

    return run


def is_metric(value):
    return all(callable(getattr(value, method, None)) for method in ("update", "result")) and not isinstance(value, type)


def metric_of(metric: Any) -> Metric:
    """The metric that compile() was given: a word, a Metric, a Loss, a CustomMetric or a function."""
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, Loss):
        return Metric(metric)
    if is_metric(metric) or (callable(metric) and not isinstance(metric, type)):
        return custom_metric(metric)
    if not isinstance(metric, str):
        raise config_error(f"{metric!r} is no metric", "give a word, a Metric, a Loss, a CustomMetric or a function")
    words: dict[str, Callable[[], Metric]] = {
        "pr_auc": lambda: _native.auc(curve="pr"),
        **{word: getattr(_native, word) for word in ("accuracy", "auc", "binary_accuracy", "confusion_matrix", "f1_score",
                                                     "precision", "recall")}}
    if metric in words:
        return words[metric]()
    if found := re.fullmatch(r"top_([1-9]\d*)", metric):
        return _native.top_k(int(found[1]))
    raise config_error(f"metric '{metric}' is not known",
                       f"choose 'top_5' or one of {', '.join(sorted(words))}, or give a Metric or a Loss")
