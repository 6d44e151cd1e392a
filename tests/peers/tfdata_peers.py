# peers: tensorflow-cpu numpy
# package: headrace
"""1,000 random chains of stages, each as a headrace.Dataset and as a tf.data.Dataset. The orders of two libraries'
shuffles differ: without a shuffle the batches are compared, with one the sizes of the batches and all values."""

import os
import random
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

import headrace as hr

CHAINS = 1000


def source(records):
    values = np.arange(records, dtype=np.int64)
    return hr.from_arrays({"x": values}), tf.data.Dataset.from_tensor_slices(values)


class Chain:
    """A chain drawn from its number, which grows on both sides."""

    def __init__(self, number):
        self.random = random.Random(number)
        self.text = ""
        self.batched = self.shuffled = self.chosen = False
        self.ours, self.theirs = self.part()
        for _ in range(self.random.randint(1, 9)):
            self.grow()
        if not self.batched:
            self.batch()

    def part(self):
        ours, theirs = source(self.random.randint(1, 40))
        self.text += f"source({len(theirs)})"
        if self.random.random() < 0.3:
            term = self.random.randint(1, 5)
            self.text += f".map(+{term})"
            ours, theirs = self.mapped(ours, theirs, term)
        return ours, theirs

    @staticmethod
    def mapped(ours, theirs, term):
        return ours.map(lambda sample: {"x": sample["x"] + term}), theirs.map(lambda x: x + term)

    def grow(self):
        stages = [self.take, self.skip, self.shard, self.repeat, self.map, self.cache, self.shuffle, self.concatenate,
                  self.window_apart, self.unbatch if self.batched else self.batch]
        self.random.choice(stages)()

    def set(self, name, ours, theirs):
        self.text += "." + name
        self.ours, self.theirs = ours, theirs

    def choose(self, name, count, *also):
        if self.shuffled:
            return  # which are chosen depends on the order
        self.set(f"{name}{(count, *also)}", getattr(self.ours, name)(count, *also), getattr(self.theirs, name)(count, *also))

    def take(self):
        self.choose("take", self.random.randint(0, 4 if self.batched else 30))

    def skip(self):
        self.choose("skip", self.random.randint(0, 3))

    def shard(self):
        count = self.random.randint(2, 3)
        self.choose("shard", count, self.random.randrange(count))

    def repeat(self):
        times = self.random.randint(1, 3)
        self.set(f"repeat({times})", self.ours.repeat(times), self.theirs.repeat(times))

    def map(self):
        term = self.random.randint(1, 9)
        self.set(f"map(+{term})", *self.mapped(self.ours, self.theirs, term))

    def cache(self):
        self.set("cache()", self.ours.cache(), self.theirs.cache())

    def shuffle(self):
        self.set("shuffle()", self.ours.shuffle(3), self.theirs.shuffle(1000, 3))
        self.shuffled = True

    def concatenate(self):
        if not self.batched:
            ours, theirs = self.part()
            self.set("concatenate()", hr.concatenate(self.ours, ours), self.theirs.concatenate(theirs))

    def window_apart(self):
        if "cache" in self.text or "map" in self.text or self.batched or self.shuffled:
            return
        size, shift = self.random.randint(1, 4), self.random.randint(1, 4)
        theirs = self.theirs.window(size, shift, drop_remainder=True).flat_map(lambda one: one.batch(size)).unbatch()
        self.set(f"window({size}, {shift})", self.ours.window(size, shift=shift).unbatch(), theirs)

    def batch(self):
        size, drop = self.random.randint(1, 7), self.random.random() < 0.3
        self.set(f"batch({size}, drop={drop})", self.ours.batch(size, drop_remainder=drop),
                 self.theirs.batch(size, drop_remainder=drop))
        self.batched = True

    def unbatch(self):
        self.set("unbatch()", self.ours.unbatch(), self.theirs.unbatch())
        self.batched = False


def compare(chain):
    ours = [batch["x"].numpy().copy().tolist() for batch in hr.Loader(chain.ours, threads=1)]
    theirs = [batch.tolist() for batch in chain.theirs.as_numpy_iterator()]
    if not chain.shuffled:
        return ours == theirs
    # A dropped remainder after a shuffle, and a shuffle of batches before repeat() and batch(), may drop others.
    return sorted(map(len, ours)) == sorted(map(len, theirs)) and (
        "drop=True" in chain.text or sorted(sum(ours, [])) == sorted(sum(theirs, [])))


def main():
    wrong = refused = 0
    for number in range(CHAINS):
        chain = Chain(number)
        try:
            same = compare(chain)
        except hr.ConfigError as error:
            refused += 1
            print(f"{number}: refused: {chain.text}: {error}")
            continue
        if not same:
            wrong += 1
            print(f"{number}: differs: {chain.text}")
    print(f"{CHAINS} chains: {wrong} differ, {refused} refused")
    return wrong > 0 or refused > CHAINS // 20


if __name__ == "__main__":
    sys.exit(main())
