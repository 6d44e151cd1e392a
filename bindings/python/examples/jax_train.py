#!/usr/bin/env python3
"""A JAX training step fed by Headrace: arrays of JAX in the engine's memory, without a copy where JAX can take them.

Takes Fashion-MNIST of Debian's package dataset-fashion-mnist, or --data.
"""
# needs: jax[cpu]
import argparse

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import headrace as hr
from headrace.jax import batches


def loss_of(parameters, image, label):
    hidden = jax.nn.relu(image.reshape(len(image), -1) @ parameters["w1"] + parameters["b1"])
    logits = hidden @ parameters["w2"] + parameters["b2"]
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(label)), label])


@jax.jit
def train_step(parameters, image, label):
    loss, gradients = jax.value_and_grad(loss_of)(parameters, image, label)
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients), loss


def first_parameters():
    keys = jax.random.split(jax.random.key(0))
    return {"w1": 0.05 * jax.random.normal(keys[0], (784, 64)), "b1": jnp.zeros(64),
            "w2": 0.1 * jax.random.normal(keys[1], (64, 10)), "b2": jnp.zeros(10)}


def train(loader, epochs, sharding=None):
    parameters, means = first_parameters(), []
    for _ in range(epochs):
        losses = []
        for batch in batches(loader, sharding):
            parameters, loss = train_step(parameters, batch["image"], batch["label"].astype(jnp.int32))
            losses.append(loss)
        means.append(float(jnp.mean(jnp.stack(losses))))
    return means


def main():
    arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    arg.add_argument("--records", type=int, default=12800)
    arg.add_argument("--epochs", type=int, default=3)
    opt = arg.parse_args()
    data = (hr.open(opt.data).take(opt.records).shuffle(7).map(hr.normalize([0.2860], [0.3530]))
            .batch(128, drop_remainder=True))
    with hr.Loader(data, epochs=None, seed=1) as loader:
        means = train(loader, opt.epochs)
    sharding = NamedSharding(Mesh(np.array(jax.local_devices()), "data"), PartitionSpec("data"))
    with hr.Loader(data, epochs=None, seed=1) as loader:
        sharded = train(loader, opt.epochs, sharding)
    print("losses " + ", ".join(f"{loss:.3f}" for loss in means) + f" on {jax.devices()[0]}; "
          f"over {jax.local_device_count()} devices {sharded[-1]:.3f}")
    if not means[-1] < 0.7 * means[0]:
        raise SystemExit("the net does not learn")
    if not np.allclose(means, sharded, atol=1e-3):
        raise SystemExit("another stream with a sharding")


if __name__ == "__main__":
    try:
        main()
    except hr.HeadraceError as error:
        raise SystemExit(str(error)) from None
