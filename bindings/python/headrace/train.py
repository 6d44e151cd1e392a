"""The mirrored trainer, thin: what train/ of the C++ library has, for notebooks.

    from headrace import train

    strategy = train.Strategy("cpu:2")
    model = strategy.build(lambda g: g.dense(g.flatten(g.input("image")), 10), data=data)
    model.compile(optimizer=train.adam(1e-3))
    history = model.fit(data, epochs=3, validation=test)
    plt.plot(history["loss"])

Nets are functions that call the methods of a Graph, or a Sequential. A training runs without the GIL; Ctrl-C ends it after
the present step. Strategy.run() and Trainer are for custom training loops.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headrace import Dataset, Workers
from headrace._calls import speak
from headrace._errors import HeadraceError, config_error
from headrace._layers import Layer, LayerCall, Variable, variable
from headrace._objectives import CustomMetric, LossFunction, custom_loss, custom_metric, loss_of, metric_of
from headrace._custom_parts import custom_parts
from headrace._plans import plan_of
from headrace._record import RecordFile, TrainingRecord, create_training_record, evaluate_record, predict_record
from headrace._results import (Classification, ClassifiedExample, History, Predictions, name_predictions,
                               predictions_of)
from headrace._sequential import Sequential, layer
from headrace._show import counted
from headrace._steps import DistributedDataset, Evaluator, Trainer, compute_average_loss, position_of
from headrace._update_rules import Update, custom_optimizer
from headrace._weights import Rename, renaming
from headrace._native import train as _native
from headrace._native.train import (  # what is the same in Python
    DeviceTensor,
    EpochReport,
    FitControl,
    ForwardPass,
    GlobalBatch,
    Graph,
    Loss,
    Metric,
    Node,
    Optimizer,
    ReadyCallback,
    Replica,
    Schedule,
    StepReport,
    StepTimes,
    VariableRule,
    accuracy,
    adam,
    adamw,
    auc,
    binary_accuracy,
    binary_crossentropy,
    categorical_crossentropy,
    chained,
    confusion_matrix,
    cosine_decay,
    cosine_similarity,
    csv_logger,
    early_stopping,
    exponential_decay,
    f1_score,
    hinge,
    huber,
    kl_divergence,
    learning_rate_scheduler,
    linear_decay,
    mean_absolute_error,
    mean_squared_error,
    muon,
    named,
    net_names,
    newest_checkpoint,
    of_kind,
    of_rank,
    on_chief,
    one_cycle,
    piecewise,
    precision,
    recall,
    reduce_lr_on_plateau,
    sgd,
    sparse_categorical_crossentropy,
    tensorboard,
    top_k,
    warm_up,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from headrace._native import LoaderOptions
    from headrace._native.train import FitOptions

__all__ = [
    "Checkpoints", "Classification", "ClassifiedExample", "CustomMetric", "DeviceTensor", "DistributedDataset",
    "EpochReport", "Evaluator", "FitControl", "ForwardPass", "GlobalBatch", "Graph", "History", "Layer", "LayerCall",
    "Loss", "Metric", "Model", "Node", "Optimizer", "Predictions", "ReadyCallback", "Replica", "Schedule",
    "Sequential", "StepReport", "StepTimes", "Strategy", "Trainer", "TrainingRecord", "Update", "Variable",
    "VariableRule", "accuracy", "adam", "adamw", "auc", "binary_accuracy", "binary_crossentropy",
    "categorical_crossentropy", "chained",
    "compute_average_loss", "confusion_matrix", "cosine_decay", "cosine_similarity", "create_training_record",
    "csv_logger", "custom_loss", "custom_metric", "custom_optimizer", "early_stopping", "evaluate_record",
    "exponential_decay", "f1_score", "hinge", "huber", "kl_divergence", "layer", "learning_rate_scheduler",
    "linear_decay", "mean_absolute_error", "mean_squared_error", "muon", "named", "net_from_json", "net_names",
    "newest_checkpoint", "of_kind", "of_rank", "on_chief", "one_cycle", "piecewise", "precision", "predict_record",
    "recall", "reduce_lr_on_plateau", "restore_model", "restore_or_create", "sgd", "sparse_categorical_crossentropy",
    "tensorboard", "top_k", "variable", "warm_up",
]

_Path = str | os.PathLike[str]
_Result = TypeVar("_Result")
_AnyMetric: TypeAlias = Metric | Loss | CustomMetric | Callable[..., Any] | str


def _schedule_repr(schedule: Schedule) -> str:
    return f"Schedule({json.dumps(json.loads(sgd(schedule).to_json())['learning_rate'])})"


setattr(Schedule, "__repr__", _schedule_repr)


class Checkpoints(NamedTuple):
    """Where a training is kept while it runs; fit(resume=True) goes on from the newest one with the same bits.

    A folder has one training: without resume, one that holds another model's checkpoints is refused. Of several workers
    the chief alone writes and reads it. input: the dataset whose operations `headrace evaluate` does
    to its data; None: the validation's, or else the training's without what is random in it.

    """

    folder: _Path
    name: str = "checkpoint-{step}"
    every_steps: int = 0
    keep: int = 3
    best: str = ""
    best_mode: Literal["auto", "min", "max"] = "auto"
    asynchronous: bool = True
    input: Dataset | None = None


Checkpoints.__doc__ = f"{Checkpoints.__doc__}{_native.checkpoint_options_doc}"


class Strategy:
    """Synchronous training with one mirrored copy of every variable on each device: "cpu", "cpu:4", "cuda:0,1", "auto".

    workers: the processes to train with, as headrace.open_world() gives them; None: this one alone. One program is then
        one worker or one of many: all make the same calls, and the chief prints and writes files. "auto" and "cuda"
        divide a host's GPUs among its workers.
    standalone: a process that a launcher started as one of several is refused without workers; True says that this is
        meant.
    """

    def __init__(self, devices: str = "auto", *, workers: Workers | None = None, standalone: bool = False,
                 announce: bool = True) -> None:
        self._native = _native.Strategy(devices, workers=workers, standalone=standalone)
        if announce and self.is_chief:
            print(self, flush=True)

    def build(self, net: Callable[[Graph], Node | Sequence[Node]] | str, *, seed: int = 0,
              data: Dataset | None = None) -> Model:
        """The model of a net: a function of a Graph that returns its results, or a name of net_names(). `data` tells
        the shapes of inputs that have none."""
        return Model(self._native.build(net, seed=seed, data=plan_of(data)), self)

    def distribute(self, data: Dataset, *, epochs: int = 1, start: Mapping[str, str] | None = None,
                   **input: Unpack[LoaderOptions]) -> DistributedDataset:
        """The dataset's batches, each divided among the replicas, for a custom training loop. start: what
        state_dict() gave. input: options of headrace.Loader."""
        options = {**input, "epochs": epochs} | ({} if start is None else {"start": position_of(start)})
        return DistributedDataset(_native.distribute(self._native, plan_of(data), options), data)

    def run(self, function: Callable[[Replica], Any], batches: GlobalBatch | None = None) -> list[Any]:
        """Calls function(replica) for each local replica, one after another; the work that was submitted runs concurrently.
        Gives the results in the order of the replicas. With batches, replica["image"] is a copy of its share's field."""
        return self._native.run(function, batches)

    def on(self, device: str | int, function: Callable[[Replica], _Result]) -> _Result:
        """Calls function(replica) for one device, "cuda:1", or the replica of this number; gives its result."""
        result: Any = self._native.on(device, function)
        return result

    def reduce(self, op: str, values: Sequence[ArrayLike]) -> Any:
        """Combines one number, or one array, a replica, as run() gives them, over all replicas of the world. op: "sum",
        "max", or "mean", in which every replica counts alike. Of several workers all call it."""
        if any(value is None for value in values):
            raise config_error("the replicas gave None to reduce", "return a number, or an array, from the function of run()")
        arrays = [np.asarray(value, np.float64) for value in values]
        if len({array.shape for array in arrays}) > 1:
            raise config_error(f"arrays to reduce have the shapes {', '.join(str(array.shape) for array in arrays)}",
                               "give one of the same shape a replica")
        reduced = self._native.reduce(op.lower(), [array.ravel().tolist() for array in arrays])
        return reduced[0] if arrays[0].ndim == 0 else np.reshape(reduced, arrays[0].shape)

    def all_reduce(self, tensors: Sequence[DeviceTensor]) -> None:
        """Replaces each of these float32 tensors in device memory, one a replica, by their sum."""
        self._native.all_reduce(list(tensors))

    def synchronize(self) -> None:
        """Waits for all submitted work; raises its errors."""
        self._native.synchronize()

    @property
    def devices(self) -> str:
        """Their names, "cpu:0, cpu:1"."""
        return self._native.devices

    @property
    def local_replicas(self) -> int:
        """Of this process, one a device."""
        return self._native.local_replicas

    @property
    def world_replicas(self) -> int:
        """In sync, of all processes that train together; they share a global batch."""
        return self._native.world_replicas

    @property
    def first_replica(self) -> int:
        """Replicas of the world before this process's."""
        return self._native.first_replica

    @property
    def workers(self) -> Workers | None:
        """The processes that train together; None for one alone."""
        return self._native.workers

    @property
    def is_chief(self) -> bool:
        """Whether this process writes checkpoints, logs and reports: worker 0, or the only one."""
        return self._native.is_chief

    def __str__(self) -> str:
        return str(self._native)

    def __repr__(self) -> str:
        return f"<headrace.train.Strategy: {str(self).splitlines()[0]}>"


class Model:
    """A net with its variables mirrored on every replica. Made by Strategy.build(). One thread at a time."""

    def __init__(self, native: Any, strategy: Strategy) -> None:
        self._native, self.strategy = native, strategy

    def __repr__(self) -> str:
        try:
            about = f"{counted(self.parameter_count, 'parameter')}, global step {self.global_step}"
        except HeadraceError as error:  # another thread trains it
            about = error.message
        return f"<headrace.train.Model: {about}; {str(self.strategy).splitlines()[0]}>"

    def compile(self, optimizer: Optimizer | None = None, loss: Loss | LossFunction | None = None,
                metrics: Iterable[_AnyMetric] = ("accuracy",), *, precision: str = "float32",
                sample_weight: str | None = None, weighted_metrics: Iterable[_AnyMetric] = ()) -> None:
        """Sets what to train for and resets the optimizer: adam() and sparse_categorical_crossentropy() unless said
        otherwise. Metrics may be words: "accuracy", "top_5", "confusion_matrix", "precision", "recall", "f1_score",
        "auc", "pr_auc", "binary_accuracy". What they count depends on the results, see `tasks`, which the loss and the
        last layer say; one that does not fit is refused. precision: "float32", or "bfloat16" for products in it. A custom loss is a function, see
        custom_loss(); a custom metric a CustomMetric, or a function of (y_true, y_pred) that returns one value an
        example, whose mean is reported.

        sample_weight: the float32 field of the data that weighs the examples in the loss, in training and in
            evaluations: as in Keras the loss is the sum of weight * loss, divided by the number of examples.
        weighted_metrics: metrics in which examples count by these weights, and in training by those of their classes:
            "weighted_accuracy".
        """
        used = sparse_categorical_crossentropy() if loss is None else loss_of(loss)
        self._native.compile(
            optimizer=adam() if optimizer is None else optimizer,
            loss=used if sample_weight is None else used.weighted_by(sample_weight),
            metrics=[metric_of(each) for each in metrics] + [metric_of(each).weighted() for each in weighted_metrics],
            precision=precision)

    def fit(self, train: Dataset, *, validation: Dataset | None = None, callbacks: Iterable[Any] = (),
            checkpoints: Checkpoints | RecordFile | _Path | None = None,
            class_weight: Mapping[int, float] | Sequence[float] | None = None, **options: Unpack[FitOptions]) -> History:
        """Trains on a batched dataset.

        callbacks: functions of (report, control) that are called after each epoch, objects with some of
            on_train_begin(control), on_epoch_begin(epoch, control), on_step(report, control), on_epoch_end(report,
            control) and on_train_end(control), and early_stopping() and the like. What one raises ends the fit. Every
            worker calls them, and on_chief(callback) the chief alone.
        class_weight: {0: 1.0, 1: 5.0}, or a list.
        options: those below, and the options of headrace.Loader: seed, threads, prefetch, on_error, max_bad_share, ...

        """
        given = {**options, "class_weight": _class_weights(class_weight)}
        return History(self._native.fit(plan_of(train), validation=plan_of(validation), callbacks=list(callbacks),
                                        checkpoints=_checkpoints(checkpoints), options=given, owner=self))

    fit.__doc__ = f"{fit.__doc__}{_native.fit_options_doc}"

    def evaluate(self, data: Dataset, *, steps: int = 0, views: str | None = None, virtual_shards: int = 0,
                 averaged_weights: bool = False, **input: Unpack[LoaderOptions]) -> dict[str, Any]:
        """Loss and metrics by name, and how many examples they are of. views: "mirrored" or "mirrored_and_shifted" for
        test-time augmentation."""
        return self._native.evaluate(plan_of(data), steps=steps, input=input, views=views,
                                     virtual_shards=virtual_shards, averaged_weights=averaged_weights)

    def predict(self, data: Dataset, *, names: bool = False, steps: int = 0, averaged_weights: bool = False,
                **input: Unpack[LoaderOptions]) -> Predictions:
        """The net's results. Needs no compile(), which says what they are. names: also the name, the label and the class
        names of the examples, which are columns of pyarrow.table(predictions)."""
        found = predictions_of(self._native.predict(plan_of(data), steps=steps, input=input, averaged_weights=averaged_weights))
        return name_predictions(found, plan_of(data), []) if names else found

    def classify(self, data: Dataset, *, worst: int = 20, steps: int = 0, averaged_weights: bool = False,
                 **input: Unpack[LoaderOptions]) -> Classification:
        """Predictions compared with the labels of the dataset's source, for a net whose result is one value a class."""
        matrix, examples = self._native.classify(plan_of(data), worst=worst, steps=steps, input=input,
                                                          averaged_weights=averaged_weights)
        return Classification(matrix, [ClassifiedExample(*one) for one in examples])

    def to_json(self) -> str:
        """The net as text, without its weights: what net_from_json() and Graph.call_net() take."""
        return self._native.to_json()

    def summary(self) -> str:
        """A table of layers, shapes and parameters; of a compiled model also `tasks` and the loss."""
        return self._native.summary()

    @property
    def tasks(self) -> dict[str, str | None]:
        """By output what its results are, by the loss and the last layer: "regression", "binary, from logits",
        "multi_label, from probabilities", "categorical, from logits". None: nothing says it."""
        return self._native.tasks

    @property
    def parameter_count(self) -> int:
        return self._native.parameter_count

    @property
    def global_step(self) -> int:
        """Optimizer steps since compile()."""
        return self._native.global_step

    @property
    def variable_names(self) -> list[str]:
        return self._native.variable_names

    @property
    def optimizer_variable_names(self) -> list[str]:
        return self._native.optimizer_variable_names

    @property
    def frozen_variables(self) -> list[str]:
        return self._native.frozen_variables

    @property
    def parameter_groups(self) -> dict[str, list[str]]:
        """By rule, the variables that the compiled optimizer updates with it."""
        return self._native.parameter_groups

    def variable_shape(self, name: str) -> tuple[int, ...]:
        return self._native.variable_shape(name)

    def read_variable(self, name: str, *, replica: int = 0) -> NDArray[np.float32]:
        """One replica's copy of a variable, or of the optimizer's."""
        return self._native.read_variable(name, replica=replica)

    def write_variable(self, name: str, values: ArrayLike) -> None:
        """Sets every replica's copy."""
        array = np.ascontiguousarray(values, np.float32)
        if array.shape != self.variable_shape(name):
            raise config_error(f"{name} has the shape {self.variable_shape(name)}, not {array.shape}")
        self._native.write_variable(name, array)

    def copy_variables(self, source: Model, pattern: str = "*") -> list[str]:
        """Of all variables that both models have and whose name fits the pattern; gives their names."""
        return self._native.copy_variables(source._native, pattern)

    def freeze(self, pattern: str) -> list[str]:
        """From the next compile() on, which fit() then asks for, these variables stay as they are; gives their names."""
        return self._native.freeze(pattern)

    def unfreeze(self, pattern: str) -> list[str]:
        return self._native.unfreeze(pattern)

    def weights_sha256(self) -> str:
        """Of all variables in layer order."""
        return self._native.weights_sha256()

    def check_mirrored(self) -> None:
        """DeviceError naming the first variable of which the replicas' copies differ."""
        self._native.check_mirrored()

    def save(self, file: _Path, *, input: Dataset | None = None) -> None:
        """The model as it is now; it must be compiled. restore_model() and `headrace evaluate` read it. input: as that of
        Checkpoints; None: what the last fit() was given. Of several workers the chief is to call it."""
        self._native.save(os.fspath(file), plan_of(input))

    def load_weights(self, file: _Path, rename: Rename = None, *, strict: bool = True) -> dict[str, list[str]]:
        """A .safetensors file's tensors become this model's variables, by the names of these or of PyTorch's modules.

        rename: the name in the model by the name in the file, or a function of it; None leaves the tensor out.
        strict: a variable without a tensor, or a tensor without a variable, is an error that lists them all. Otherwise
            they are given back: "loaded" and "left_out" variables, and the file's "unused" tensors.
        """
        return self._native.load_weights(os.fspath(file), renaming(rename), strict)

    def load_pretrained(self, file: _Path) -> dict[str, list[str]]:
        """Weights from another program's .safetensors file, such as those of torchvision's resnet18 for
        "resnet18_imagenet": by the names of the variables or of PyTorch's modules. The last layers keep their values if
        they are missing there or have another shape. The names: "loaded", "left_out", and the file's "unused" ones."""
        return self._native.load_pretrained(os.fspath(file))


def net_from_json(text: str, custom_objects: Mapping[str, Any] | None = None) -> Callable[[Graph], Node | Sequence[Node]]:
    """The net that Model.to_json() wrote, to be given to Strategy.build(). custom_objects: as those of restore_model()."""
    if not isinstance(text, str):
        raise config_error(f"net_from_json(): a {type(text).__name__} is not a str", "give what Model.to_json() returned")
    return lambda g: g.call_net(text, custom_objects=custom_objects)


def restore_model(strategy: Strategy, file: _Path, *, custom_objects: Mapping[str, Any] | None = None) -> Model:
    """The model as it was saved: its net, variables, compile options and optimizer.

    custom_objects: what the file names but cannot hold, {"Swish": Swish, "log_cosh": log_cosh}: classes of layers,
        custom losses, metrics and optimizers, by name.
    """
    return Model(_native.restore_model(strategy._native, os.fspath(file), custom_parts(custom_objects)), strategy)


def restore_or_create(strategy: Strategy, folder: _Path, create: Callable[[], Model], *,
                      custom_objects: Mapping[str, Any] | None = None) -> Model:
    """The model of the newest checkpoint in the folder, or create()'s; fit(checkpoints=folder, resume=True) goes on.

    Says which. Every worker reads the folder: where they share none, give fit() the folder and resume, which reads the
    chief's. A damaged checkpoint is passed over with a warning; a DataError says so where none can be read.
    """
    newest = newest_checkpoint(os.fspath(folder))
    if strategy.is_chief:
        print("Creating a new model" if newest is None else f"Restoring from {newest}", flush=True)
    return create() if newest is None else restore_model(strategy, newest, custom_objects=custom_objects)


def _class_weights(weights: Mapping[int, float] | Sequence[float] | None) -> list[float]:
    if weights is None:
        return []
    if not isinstance(weights, Mapping):
        return [float(weight) for weight in weights]
    if sorted(weights) != list(range(len(weights))):
        raise config_error(f"class_weight has the classes {sorted(weights)}, not 0 to {len(weights) - 1}",
                           "give each class a weight, 1 if nothing is to change")
    return [float(weights[number]) for number in range(len(weights))]


def _checkpoints(checkpoints: Checkpoints | RecordFile | _Path | None) -> Mapping[str, Any]:
    if checkpoints is None:
        return {}
    if isinstance(checkpoints, RecordFile):
        return {"record": os.fspath(checkpoints.file), "input": plan_of(checkpoints.input), "views": checkpoints.views}
    if not isinstance(checkpoints, Checkpoints):
        checkpoints = Checkpoints(checkpoints)
    return {**checkpoints._asdict(), "folder": os.fspath(checkpoints.folder), "input": plan_of(checkpoints.input)}


speak(globals(), __all__)
