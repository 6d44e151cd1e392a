"""Batches as JAX's arrays, where JAX is installed."""

import numpy as np
import pytest

import headrace as hr

jax = pytest.importorskip("jax", reason="JAX is not installed")
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

from headrace.jax import batches  # noqa: E402


def over(devices):
    return NamedSharding(Mesh(np.array(devices), "data"), PartitionSpec("data"))


def test_arrays_are_the_batches(data, images):
    made = [np.array(batch["image"]) for batch in batches(hr.Loader(data.batch(16)))]
    assert np.array_equal(np.concatenate(made), images)


def test_arrays_stay_as_they_are_when_kept(data, images):
    sharding = over(jax.local_devices())
    kept = list(batches(hr.Loader(data.batch(20)), sharding))
    assert all(batch["image"].sharding == sharding for batch in kept)
    assert np.array_equal(np.concatenate([np.array(batch["image"]) for batch in kept]), images)


def test_a_batch_that_devices_do_not_divide_is_refused(data):
    class Three(jax.sharding.Sharding):
        addressable_devices = (1, 2, 3)

    with pytest.raises(hr.ConfigError, match="16 examples for the 3 devices"):
        next(batches(hr.Loader(data.batch(16)), Three()))


@pytest.mark.parametrize("sharding", [None, over(jax.local_devices()[:1])], ids=["plain", "sharded"])
def test_a_loader_without_an_end_gives_batches_without_an_end(data, sharding):
    endless = batches(hr.Loader(data.batch(50), epochs=None), sharding)
    assert len([batch for batch, _ in zip(endless, range(7), strict=False)]) == 7
    ending = hr.Loader(data.batch(50), epochs=2)
    assert [len(list(batches(ending, sharding))) for _ in range(3)] == [2, 2, 0]
