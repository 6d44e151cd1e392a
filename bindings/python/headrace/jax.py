"""Headrace in front of a JAX program. One device needs nothing of this: batch.jax() gives arrays without a copy.

    from headrace.jax import batches

    for batch in batches(loader, sharding=NamedSharding(mesh, PartitionSpec("data"))):
        state, loss = train_step(state, batch["image"], batch["label"])
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from headrace import Loader
from headrace._calls import speak
from headrace._errors import config_error

__all__ = ["batches"]


def batches(loader: Loader, sharding: jax.sharding.Sharding | None = None) -> Iterator[dict[str, jax.Array]]:
    """The batches of an epoch as dicts of global JAX arrays; of a Loader(epochs=None) those of all epochs, without an end.

    sharding: how the first axis is laid over the devices of all processes; None: on the default device, as
        batch.jax(). In a program of several processes the loader's world is (jax.process_count(),
        jax.process_index()): each process's share becomes its part of the global array.

    A step that jax.jit compiled is compiled again for another shape: say batch(..., drop_remainder=True), or mask the
    smaller last batch yourself. With a sharding a batch that the devices do not divide is a ConfigError;
    Loader(even_shares=) makes the processes' shares equal.
    """
    given = loader.all_epochs() if loader._endless else iter(loader)
    if sharding is None:
        for batch in given:
            yield batch.jax()
        return
    local = max(1, len(sharding.addressable_devices))
    for batch in given:
        if batch.ragged:
            raise config_error(f"the ragged field '{batch.ragged[0]}' with a sharding, which divides arrays evenly",
                               "use padded_batch(), or leave the sharding out and place the arrays yourself")
        if batch.examples % local:
            raise config_error(f"a batch of {batch.examples} examples for the {local} devices of this process",
                               "say batch(..., drop_remainder=True), or a batch that they divide")
        yield {name: _global_array(sharding, tensor) for name, tensor in batch.items()}


def _global_array(sharding: jax.sharding.Sharding, tensor: Any) -> jax.Array:
    # A copy: where an array lies on the host anyway, JAX would go on using the engine's memory.
    return jax.make_array_from_process_local_data(sharding, np.array(tensor))


speak(globals(), __all__)
