# peers: tensorflow-cpu numpy
# package: headrace
"""1,000 random chains of stages, among them combinations of batched datasets, each as a headrace.Dataset and as a
tf.data.Dataset, and 300 that end with bucket_by_length(). The orders of two libraries' shuffles differ: without a shuffle the batches are compared, with one
the sizes of the batches and all values."""

import os
import random
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

import headrace as hr

CHAINS = 1000
BUCKET_CHAINS = 300


def function(change):
    """Of a sample, to its value; said what it returns, since a chain may have no record to try it on."""
    return hr.function(lambda sample: {"x": change(sample)}, outputs={"x": ("int64", ())})


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
        return ours.map(function(lambda sample: sample["x"] + term)), theirs.map(lambda x: x + term)

    def grow(self):
        stages = [self.take, self.skip, self.shard, self.repeat, self.map, self.cache, self.shuffle, self.concatenate,
                  self.number, self.window_apart, self.unbatch if self.batched else self.batch]
        if self.batched:
            stages += [self.concatenate, self.interleave, self.mix, self.zip]
        self.random.choice(stages)()

    def set(self, name, ours, theirs):
        self.text += "." + name
        self.ours, self.theirs = ours, theirs

    def choose(self, name, count, *also):
        if self.shuffled:
            return  # which are chosen depends on the order
        self.set(f"{name}{(count, *also)}", getattr(self.ours, name)(count, *also), getattr(self.theirs, name)(count, *also))

    def take(self):
        self.choose("take", self.random.randint(-1, 4 if self.batched else 30))

    def skip(self):
        self.choose("skip", self.random.randint(-1, 3))

    def shard(self):
        count = self.random.randint(2, 3)
        self.choose("shard", count, self.random.randrange(count))

    def repeat(self):
        times = self.random.randint(1, 3)
        self.set(f"repeat({times})", self.ours.repeat(times), self.theirs.repeat(times))

    def map(self):
        term = self.random.randint(1, 9)
        self.set(f"map(+{term})", *self.mapped(self.ours, self.theirs, term))

    def number(self):
        if self.batched or self.shuffled:
            return
        field = f"n{self.text.count('enumerate')}"
        ours = self.ours.enumerate(field).map(function(lambda sample: sample["x"] + 100 * sample[field]))
        self.set("enumerate().map()", ours, self.theirs.enumerate().map(self.with_number))

    @staticmethod
    def with_number(number, x):
        return x + 100 * number

    def cache(self):
        if "enumerate" in self.text and ("repeat" in self.text or "shuffle" in self.text):
            return  # numbers that change are not kept
        self.set("cache()", self.ours.cache(), self.theirs.cache())

    def shuffle(self):
        self.set("shuffle()", self.ours.shuffle(3), self.theirs.shuffle(1000, 3))
        self.shuffled = True

    def other(self):
        """Another dataset to combine with this one: of batches where this one has them."""
        self.text += " & "
        ours, theirs = self.part()
        if self.batched:
            ours, theirs = self.cut(ours, theirs)
            if self.random.random() < 0.5:
                count = self.random.randint(0, 2)
                self.text += f".skip({count})"
                ours, theirs = ours.skip(count), theirs.skip(count)
        return ours, theirs

    def has_other_fields(self):
        return "enumerate" in self.text or "zip" in self.text

    def concatenate(self):
        if self.has_other_fields():
            return
        ours, theirs = self.other()
        self.set("concatenate()", hr.concatenate(self.ours, ours), self.theirs.concatenate(theirs))

    def interleave(self):
        if self.has_other_fields():
            return
        ours, theirs = self.other()
        block = self.random.randint(1, 3)
        rest, turns = [list(self.theirs), list(theirs)], []
        while any(rest):
            for part in rest:
                turns += part[:block]
                del part[:block]
        # Not choose_from_datasets(): its iterators refuse some of these datasets ("Incompatible shapes").
        in_turn = tf.data.Dataset.from_generator(lambda: iter(turns), output_signature=tf.TensorSpec([None], tf.int64))
        self.set(f"interleave({block})", hr.interleave(self.ours, ours, block=block), in_turn)

    def mix(self):
        if self.has_other_fields():
            return
        ours, theirs = self.other()
        self.set("mix()", hr.mix(self.ours, ours), self.theirs.concatenate(theirs))
        self.shuffled = True

    def zip(self):
        if self.shuffled or self.has_other_fields():
            return
        ours, theirs = self.other()
        pairs = [(len(a), len(b)) for a, b in zip(self.theirs.as_numpy_iterator(), theirs.as_numpy_iterator())]
        if any(a != b for a, b in pairs) or any(a != pairs[0][0] for a, _ in pairs[:-1]) or (
                pairs and pairs[-1][0] > pairs[0][0]):
            return  # one batch has one number of rows
        both = hr.zip(self.ours, ours, suffixes=("", "_2"))
        self.set("zip()", both.map(function(lambda sample: sample["x"] + 1000 * sample["x_2"])),
                 tf.data.Dataset.zip((self.theirs, theirs)).map(lambda x, y: x + 1000 * y))

    def window_apart(self):
        if "cache" in self.text or "map" in self.text or self.batched or self.shuffled:
            return
        size, shift = self.random.randint(1, 4), self.random.randint(1, 4)
        theirs = self.theirs.window(size, shift, drop_remainder=True).flat_map(lambda one: one.batch(size)).unbatch()
        self.set(f"window({size}, {shift})", self.ours.window(size, shift=shift).unbatch(), theirs)

    def cut(self, ours, theirs):
        size, drop = self.random.randint(1, 7), self.random.random() < 0.3
        self.text += f".batch({size}, drop={drop})"
        return ours.batch(size, drop_remainder=drop), theirs.batch(size, drop_remainder=drop)

    def batch(self):
        self.ours, self.theirs = self.cut(self.ours, self.theirs)
        self.batched = True

    def unbatch(self):
        self.set("unbatch()", self.ours.unbatch(), self.theirs.unbatch())
        self.batched = False


class BucketChain(Chain):
    """A chain over lists of different lengths that ends with bucket_by_length() and stages on its batches."""

    LONGEST = 12

    def part(self):
        count = self.random.randint(1, 60)
        rows = [np.full(self.random.randint(0, self.LONGEST), i, np.int32) for i in range(count)]
        values = np.arange(count, dtype=np.int64)
        self.text += f"lists({count})"
        ours = hr.from_function(lambda i: {"x": values[i], "list": rows[i]}, count,
                                fields={"x": ("int64", ()), "list": ("int32", (None,))})
        lists = tf.ragged.constant([row.tolist() for row in rows], dtype=tf.int32, ragged_rank=1)
        theirs = tf.data.Dataset.from_tensor_slices({"x": values, "list": lists})
        return ours, theirs.map(lambda one: {**one, "list": tf.convert_to_tensor(one["list"])})

    @staticmethod
    def mapped(ours, theirs, term):
        return (ours.map(function(lambda sample: sample["x"] + term)),
                theirs.map(lambda one: {**one, "x": one["x"] + term}))

    @staticmethod
    def with_number(number, one):
        return {**one, "x": one["x"] + 100 * number}

    def grow(self):
        stages = [self.take, self.skip, self.shard, self.repeat, self.shuffle]
        self.random.choice(stages + ([] if self.batched else [self.map, self.number, self.batch]))()

    def batch(self):
        ends = sorted(self.random.sample(range(1, self.LONGEST), self.random.randint(1, 3)))
        sizes, drop = [self.random.randint(1, 6) for _ in range(len(ends) + 1)], self.random.random() < 0.3
        ours = self.ours.bucket_by_length("list", ends, sizes, max_length=self.LONGEST, drop_remainder=drop)
        theirs = self.theirs.bucket_by_sequence_length(
            lambda one: tf.shape(one["list"])[0], [end + 1 for end in [*ends, self.LONGEST]], [*sizes, 1],
            pad_to_bucket_boundary=True, drop_remainder=drop)
        self.set(f"bucket_by_length({ends}, {sizes}, drop={drop})", ours, theirs)
        self.batched = True


def compare_buckets(chain):
    ours = [(batch["x"].numpy().tolist(), batch["list"].numpy().tolist()) for batch in hr.Loader(chain.ours, threads=1)]
    theirs = [(batch["x"].tolist(), batch["list"].tolist()) for batch in chain.theirs.as_numpy_iterator()]
    if not chain.shuffled:
        return ours == theirs

    def shapes(batches):
        return sorted((len(values), len(lists[0])) for values, lists in batches)

    def examples(batches):
        return sorted((value, row) for values, lists in batches for value, row in zip(values, lists))

    return shapes(ours) == shapes(theirs) and ("drop=True" in chain.text or examples(ours) == examples(theirs))


def compare(chain):
    ours = [batch["x"].numpy().copy().tolist() for batch in hr.Loader(chain.ours, threads=1)]
    theirs = [batch.tolist() for batch in chain.theirs.as_numpy_iterator()]
    if not chain.shuffled:
        return ours == theirs
    # A dropped remainder after a shuffle, and a shuffle of batches before repeat() and batch(), may drop others.
    return sorted(map(len, ours)) == sorted(map(len, theirs)) and (
        "drop=True" in chain.text or sorted(sum(ours, [])) == sorted(sum(theirs, [])))


def run(kind, chains, same):
    wrong = refused = 0
    for number in range(chains):
        chain = kind(number)
        try:
            equal = same(chain)
        except hr.ConfigError as error:
            refused += 1
            print(f"{number}: refused: {chain.text}: {error}")
            continue
        if not equal:
            wrong += 1
            print(f"{number}: differs: {chain.text}")
    print(f"{chains} chains: {wrong} differ, {refused} refused")
    return wrong > 0 or refused > chains // 20


def main():
    chains = run(Chain, CHAINS, compare)
    return run(BucketChain, BUCKET_CHAINS, compare_buckets) or chains


if __name__ == "__main__":
    sys.exit(main())
