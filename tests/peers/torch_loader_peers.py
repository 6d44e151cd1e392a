# peers: torch numpy
# package: headrace
"""600 random DataLoaders with samplers, batch samplers, subsets and a collate_fn, each beside PyTorch's own over the same
records: the batches of two epochs, and of one that is resumed. Half of them are over a Headrace dataset, half over a torch
Dataset whose items have random forms and types."""

import collections
import random
import sys

import numpy as np
import torch
from torch.utils import data as torch_data

import headrace as hr
from headrace.torch import DataLoader

LOADERS = 600


Point = collections.namedtuple("Point", "x y")
TYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.float16,
         torch.bfloat16, torch.float32, torch.float64, torch.complex64]
LEAVES = [
    *(lambda draw, i, dtype=dtype: (torch.arange(draw.randint(0, 3)) + i).to(dtype) for dtype in TYPES),
    *(lambda draw, i, dtype=dtype: torch.tensor(i % 2).to(dtype) for dtype in TYPES),
    *(lambda draw, i, dtype=dtype: np.full((draw.randint(0, 2), 2), i, dtype) for dtype in ("bool", "int8", "uint16", "float64")),
    lambda draw, i: np.float32(i), lambda draw, i: np.int16(i), lambda draw, i: np.bool_(i % 2),
    lambda draw, i: i, lambda draw, i: i / 7, lambda draw, i: i % 2 == 0, lambda draw, i: f"record {i}",
    lambda draw, i: str(i).encode(), lambda draw, i: None,
]


def item_of(draw, i, depth):
    """An item of record i whose form is what `draw` says."""
    kind = draw.choice(["leaf", "leaf", "tuple", "list", "dict", "ordered", "point"]) if depth > 0 else "leaf"
    if kind == "leaf":
        return draw.choice(LEAVES[:-1] if draw.random() < 0.95 else LEAVES)(draw, i)
    if kind == "point":
        return Point(item_of(draw, i, depth - 1), item_of(draw, i, depth - 1))
    parts = [item_of(draw, i, depth - 1) for _ in range(draw.randint(1, 3))]
    if kind in ("tuple", "list"):
        return tuple(parts) if kind == "tuple" else parts
    return (dict if kind == "dict" else collections.OrderedDict)((f"key {place}", part) for place, part in enumerate(parts))


class Items(torch_data.Dataset):
    """`uneven`: each item has shapes of its own, as batches of one may."""

    def __init__(self, number, count, uneven):
        self.number, self.count, self.uneven = number, count, uneven

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return item_of(random.Random(f"{self.number} {i if self.uneven else ''}"), int(i), 2)


class Pair:
    """A pair of loaders, drawn from its number."""

    def __init__(self, number):
        self.random = random.Random(number)
        values = torch.arange(self.random.randint(2, 60))
        self.is_torch, self.uneven = number % 2 == 1, False
        self.ours = hr.from_arrays({"x": values.numpy(), "y": -values.numpy()})
        self.theirs = torch_data.TensorDataset(values, -values)
        self.text = f"{len(values)} records"
        if self.is_torch:
            count, uneven = self.random.choice([0, 1, *range(2, 60)]), self.random.random() < 0.2
            self.ours = self.theirs = Items(number, count, uneven)
            self.uneven = uneven
            self.text = f"{count} {'uneven ' if uneven else ''}items"
        for _ in range(self.random.randint(0, 2) if len(self.theirs) > 1 else 0):
            self.choose()
        self.arguments, self.make_order = self.order() if len(self.theirs) > 0 else ({}, dict)
        if self.is_torch and (self.uneven or self.random.random() < 0.1):
            self.arguments, self.make_order = {"batch_size": self.random.choice([1, None])}, dict
            self.text += f", batch_size={self.arguments['batch_size']}"
        if self.is_torch:
            self.arguments["collate_fn"] = self.random.choice([None, torch_data.default_collate, list])
            if self.arguments.get("batch_size", 1) is None:
                self.arguments["collate_fn"] = None
        elif self.random.random() < 0.3:
            self.arguments["collate_fn"] = lambda samples: [torch.stack(field) for field in zip(*samples)]
            self.text += ", collate_fn"

    def choose(self):
        """A subset, or a part of a random split."""
        if self.random.random() < 0.5 or len(self.theirs) < 4:
            chosen = self.random.choices(range(len(self.theirs)), k=self.random.randint(2, 40))
            self.ours, self.theirs = (torch_data.Subset(data, np.array(chosen)) for data in (self.ours, self.theirs))
            self.text += f", Subset({chosen})"
            return
        part, seed = self.random.randint(0, 1), self.random.randint(0, 99)
        self.ours, self.theirs = (
            torch_data.random_split(data, [0.5, 0.5], generator=torch.Generator().manual_seed(seed))[part]
            for data in (self.ours, self.theirs))
        self.text += f", part {part} of random_split({seed})"

    def order(self):
        records, size = len(self.theirs), self.random.randint(1, 9)
        drop = self.random.random() < 0.3
        kind = self.random.choice(["none", "weighted", "subset", "replacement", "list", "batch_sampler"])
        seed, count = self.random.randint(0, 99), self.random.randint(size, 50)
        self.text += f", {kind}({seed}, {count}), batch_size={size}, drop_last={drop}"
        numbers = self.random.choices(range(records), k=count)

        def make():
            """A sampler with a generator of its own, as if it were the only one."""
            generator = torch.Generator().manual_seed(seed)
            if kind == "weighted":
                return torch_data.WeightedRandomSampler([1.0 + i % 3 for i in range(records)], count, generator=generator)
            if kind == "replacement":
                return torch_data.RandomSampler(range(records), replacement=True, num_samples=count, generator=generator)
            return numbers if kind == "list" else torch_data.SubsetRandomSampler(numbers, generator=generator)

        if kind == "none":
            return {"batch_size": size, "drop_last": drop and records >= size}, dict
        if kind == "batch_sampler":
            return {}, lambda: {"batch_sampler": torch_data.BatchSampler(make(), size, drop)}
        return {"batch_size": size, "drop_last": drop}, lambda: {"sampler": make()}

    def our_loader(self, workers=0):
        fields = None if self.is_torch else ("x", "y")
        return DataLoader(self.ours, fields=fields, num_workers=workers, seed=1, **self.arguments, **self.make_order())

    def is_equal(self):
        other = torch_data.DataLoader(self.theirs, **self.arguments, **self.make_order())
        mine = self.our_loader(workers=self.random.randint(0, 2))
        try:
            expected = [batches(other) for _ in range(2)]
        except (TypeError, RuntimeError) as error:  # of what default_collate makes no batch, neither do we
            try:
                batches(mine)
            except (TypeError, RuntimeError) as ours:
                return str(ours) == str(error)
            return False
        if len(mine) != len(other) or [batches(mine) for _ in range(2)] != expected:
            return False
        return self.resumed(self.random.randint(0, len(other))) == expected[0]

    def resumed(self, taken):
        stopped, resumed = self.our_loader(), self.our_loader(workers=1)
        iterator = iter(stopped)
        first = batches(next(iterator) for _ in range(taken))
        resumed.load_state_dict(stopped.state_dict())
        return first + (batches(resumed) if taken < len(stopped) else [])


def shown(value):
    """With the types of all that it is made of."""
    if isinstance(value, torch.Tensor):
        return value.dtype, tuple(value.shape), value.tolist()
    if isinstance(value, dict):
        return type(value), {key: shown(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value), [shown(part) for part in value]
    return type(value), repr(value)


def batches(loader):
    """A tuple of fields and a list are one: a Headrace dataset gives the former."""
    return [shown(list(batch) if type(batch) is tuple else batch) for batch in loader]


def main():
    wrong = 0
    for number in range(LOADERS):
        pair = Pair(number)
        try:
            equal = pair.is_equal()
        except hr.ConfigError as error:
            equal, pair.text = False, f"{pair.text}: {error}"
        if not equal:
            wrong += 1
            print(f"{number}: differs: {pair.text}")
    print(f"{LOADERS} loaders: {LOADERS - wrong} equal, 0 refused, {wrong} other")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
