# peers: torch numpy
# package: headrace
"""600 random DataLoaders over a Headrace dataset, with samplers, batch samplers, subsets and a collate_fn, each beside
PyTorch's own over the same records: the batches of two epochs, and of one that is resumed."""

import random
import sys

import numpy as np
import torch
from torch.utils import data as torch_data

import headrace as hr
from headrace.torch import DataLoader

LOADERS = 600


class Pair:
    """A pair of loaders, drawn from its number."""

    def __init__(self, number):
        self.random = random.Random(number)
        values = torch.arange(self.random.randint(2, 60))
        self.ours = hr.from_arrays({"x": values.numpy(), "y": -values.numpy()})
        self.theirs = torch_data.TensorDataset(values, -values)
        self.text = f"{len(values)} records"
        for _ in range(self.random.randint(0, 2)):
            self.choose()
        self.arguments, self.make_order = self.order()
        if self.random.random() < 0.3:
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
        return DataLoader(self.ours, fields=("x", "y"), num_workers=workers, seed=1, **self.arguments, **self.make_order())

    def is_equal(self):
        other = torch_data.DataLoader(self.theirs, **self.arguments, **self.make_order())
        mine = self.our_loader(workers=self.random.randint(0, 2))
        expected = [batches(other) for _ in range(2)]
        if len(mine) != len(other) or [batches(mine) for _ in range(2)] != expected:
            return False
        return self.resumed(self.random.randint(0, len(other))) == expected[0]

    def resumed(self, taken):
        stopped, resumed = self.our_loader(), self.our_loader(workers=1)
        iterator = iter(stopped)
        first = [[field.tolist() for field in next(iterator)] for _ in range(taken)]
        resumed.load_state_dict(stopped.state_dict())
        return first + (batches(resumed) if taken < len(stopped) else [])


def batches(loader):
    return [[field.tolist() for field in batch] for batch in loader]


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
