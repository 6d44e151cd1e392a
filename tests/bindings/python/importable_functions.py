"""Functions that the tests' plans name in JSON: as a program would have them in a module of its own."""

import numpy as np


def halved(sample):
    return {"x": sample["x"] / 2}


def jittered(sample, rng):
    return {"x": sample["x"] + rng.normal(size=sample["x"].shape).astype(np.float32)}


def summed(sample):
    return {"sum": sample["x"].sum(dtype=np.float32)}


def is_even(sample):
    return sample["label"] % 2 == 0


def record(index):
    return {"x": np.full(4, index, np.float32), "label": np.int64(index)}


def records(first=0):
    for index in range(first, 20):
        yield record(index)


def mean_of_batch(batch):
    return {"mean": batch["x"].mean(axis=1)}


def ones_of_batch(batch):
    return {"x": np.ones_like(batch["x"]), "count": batch.get("count", np.zeros(len(batch["x"]), np.int64)) + 1}
