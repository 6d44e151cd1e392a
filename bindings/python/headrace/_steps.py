"""A custom training loop: batches for all replicas, the step in pieces, and a pass over other data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ._errors import config_error
from ._loader import _open_loaders
from ._native import train as _native
from ._native.train import DeviceTensor, ForwardPass, GlobalBatch

if TYPE_CHECKING:
    from .train import Model

_STATE = "headrace"


class DistributedDataset:
    """A dataset whose batches are divided among a strategy's replicas. Made by Strategy.distribute().

    Iterating gives the batches of one epoch; the next `for` goes on with the next epoch, until `epochs` are over.
    """

    def __init__(self, native: Any, dataset: Any) -> None:
        self._native, self._dataset = native, dataset
        _open_loaders.add(self)

    def __iter__(self) -> Iterator[GlobalBatch]:
        epoch = None  # that of the first batch
        while (batches := self._native.next(epoch)) is not None:
            epoch, last = batches.epoch, batches.last_of_epoch
            yield batches
            if last:
                return

    def __len__(self) -> int:
        """Batches of an epoch."""
        return self._native.steps_per_epoch()

    def __bool__(self) -> bool:
        return True

    def state_dict(self) -> dict[str, str]:
        """Where it stands: what distribute(start=) goes on from."""
        return {_STATE: self._native.state()}

    def close(self) -> None:
        """Stops its threads."""
        self._native.close()

    def __del__(self) -> None:
        if hasattr(self, "_native"):
            self.close()


def position_of(start: Mapping[str, str]) -> str:
    """The position that state_dict() gave."""
    if not isinstance(start, Mapping) or _STATE not in start:
        raise config_error(f"start has no entry '{_STATE}'", "give what state_dict() returned")
    return start[_STATE]


def _feed(data: DistributedDataset) -> Any:
    if not isinstance(data, DistributedDataset):
        raise config_error(f"a {type(data).__name__} is not divided among replicas", "give strategy.distribute(data)")
    return data._native


class Trainer:
    """The synchronous step over all replicas: what fit() runs, and its parts for a custom training loop.

        for batches in data:                    # of strategy.distribute()
            trainer.train_step(batches)         # or, the same in pieces:
            trainer.gradients(batches)          # forward, loss, backward on every replica
            trainer.all_reduce()                # merge
            trainer.apply_gradients()           # update

    gradients() in pieces is forward() and backward(): between them a custom loss writes its gradient. Calls submit
    work and return; its errors are raised by a later call. The pieces in an order that would lose gradients are refused.

    accumulate: batches whose gradients are summed before an update. seed: for dropout. nan: as that of fit().
    """

    def __init__(self, model: Model, data: DistributedDataset, *, seed: int = 0, accumulate: int = 1, nan: str = "stop",
                 gradient_norms: bool = False) -> None:
        self.model, self.data = model, data
        step = {"accumulate": accumulate, "nan": nan, "gradient_norms": gradient_norms}
        self._native = _native.trainer(model._native, _feed(data), seed=seed, step=step)

    def step(self) -> bool:
        """Makes one update from the next batch, or the next `accumulate`; False if none is left."""
        return self._native.step()

    def train_step(self, batches: GlobalBatch) -> None:
        """Makes one update from these batches."""
        self.gradients(batches)
        self.all_reduce()
        self.apply_gradients()

    def take(self) -> GlobalBatch | None:
        """The next batch, across epochs; None if none is left."""
        return self._native.take()

    def gradients(self, batches: GlobalBatch) -> None:
        """forward() and backward()."""
        self._native.gradients(batches)

    def forward(self, batches: GlobalBatch) -> ForwardPass:
        return self._native.forward(batches)

    def backward(self) -> None:
        self._native.backward()

    def all_reduce(self) -> None:
        """Sums the gradients over the replicas."""
        self._native.all_reduce()

    def apply_gradients(self) -> None:
        """Updates every copy of the variables alike."""
        self._native.apply_gradients()

    def discard_gradients(self) -> None:
        """In place of an update."""
        self._native.discard_gradients()

    def gradient(self, variable: str, replica: int) -> DeviceTensor:
        """After backward() the replica's own part, after all_reduce() the step's. What is written there before
        apply_gradients() must be the same on all replicas."""
        return self._native.gradient(variable, replica)

    def progress(self) -> dict[str, Any]:
        """Loss and metrics since the last reset, as far as they are known without waiting."""
        return self._native.progress()

    def finish(self) -> dict[str, Any]:
        """Waits for all submitted work; loss, metrics and examples since the last reset. Of several workers all call it."""
        return self._native.finish()

    def reset_metrics(self) -> None:
        self._native.reset_metrics()

    def gradient_norm(self) -> float | None:
        """Of the last step, with gradient_norms or an optimizer that limits it."""
        return self._native.gradient_norm()

    def warm_up(self) -> None:
        """Runs the step once without examples: a GPU loads a kernel on its first use. Changes no result."""
        self._native.warm_up()


class Evaluator:
    """Counts loss and metrics of a compiled model with its present weights, a batch at a time.

        for batches in test:
            evaluator.evaluate_step(batches)
        print(evaluator.finish()["accuracy"])
        evaluator.reset_metrics()
    """

    def __init__(self, model: Model, data: DistributedDataset, *, averaged_weights: bool = False) -> None:
        self.model, self.data = model, data
        self._native = _native.evaluator(model._native, _feed(data), averaged_weights=averaged_weights)

    def step(self) -> bool:
        """Counts the next batch; False at the end of the data."""
        return self._native.step()

    def take(self) -> GlobalBatch | None:
        return self._native.take()

    def forward(self, batches: GlobalBatch) -> ForwardPass:
        """Counts these batches; the results can be read until the next."""
        return self._native.forward(batches)

    def evaluate_step(self, batches: GlobalBatch) -> None:
        """Counts these batches."""
        self._native.forward(batches)

    def finish(self) -> dict[str, Any]:
        """Waits; loss, metrics and examples since the last reset. Of several workers all call it."""
        return self._native.finish()

    def reset_metrics(self) -> None:
        self._native.reset_metrics()


def compute_average_loss(losses: ArrayLike, global_examples: int) -> float:
    """The sum of one replica's losses, one an example, divided by the examples of the global batch. A single number is
    refused: a mean over part of the batch would weigh its examples by the size of that part."""
    return _native.compute_average_loss(np.asarray(losses, np.float32, order="C"), global_examples)
