"""headrace.torch.DataLoader with custom samplers, subsets and a custom collate_fn, beside PyTorch's DataLoader."""

import json

import numpy as np
import pytest

import headrace as hr

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch.utils import data as torch_data  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

from headrace.torch import DataLoader  # noqa: E402

RECORDS = 100


@pytest.fixture
def numbered(images):
    """Each record's label is its number."""
    return hr.from_arrays({"image": images, "number": np.arange(RECORDS)})


@pytest.fixture
def theirs(images):
    return torch_data.TensorDataset(torch.from_numpy(images), torch.arange(RECORDS))


def batches(loader):
    return [batch["number"].tolist() for batch in loader]


def batches_of_torch(loader):
    return [number.tolist() for _, number in loader]


def seeded(seed=5):
    return torch.Generator().manual_seed(seed)


class HalfOf(DistributedSampler):
    """A sampler with set_epoch() that is none of those the engine knows."""


SAMPLERS = {
    "list": lambda: [7, 0, 7, 99, 3],
    "array": lambda: np.array([7, 0, 99]),
    "weighted": lambda: torch_data.WeightedRandomSampler([1.0] * 10 + [0.0] * 90, 33, generator=seeded()),
    "subset": lambda: torch_data.SubsetRandomSampler([5, 6, 7, 50, 51], generator=seeded()),
    "replacement": lambda: torch_data.RandomSampler(range(RECORDS), replacement=True, num_samples=40, generator=seeded()),
    "some": lambda: torch_data.RandomSampler(range(RECORDS), num_samples=30, generator=seeded()),
    "half": lambda: HalfOf(range(RECORDS), 2, 1, seed=3),
}


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("num_workers", [0, 3])
def test_a_sampler_gives_the_batches_of_pytorch(numbered, theirs, name, drop_last, num_workers):
    arguments = {"batch_size": 2, "drop_last": drop_last}
    mine = DataLoader(numbered, sampler=SAMPLERS[name](), num_workers=num_workers, **arguments)
    other = torch_data.DataLoader(theirs, sampler=SAMPLERS[name](), **arguments)
    assert len(mine) == len(other)
    for epoch in range(3):
        for loader in (mine, other):
            if hasattr(loader.sampler, "set_epoch"):
                loader.sampler.set_epoch(epoch)
        assert batches(mine) == batches_of_torch(other)


def test_a_sampler_of_a_fields_tuple_gives_images_too(numbered, images):
    order = [4, 4, 80, 1]
    [(given, number)] = DataLoader(numbered, batch_size=4, sampler=order, fields=("image", "number"))
    assert torch.equal(given, torch.from_numpy(images[order])) and number.tolist() == order


def test_known_samplers_of_a_part_give_that_part(numbered):
    assert sum(batches(DataLoader(numbered, sampler=torch_data.SequentialSampler(range(7)))), []) == list(range(7))
    part = DataLoader(numbered, sampler=torch_data.RandomSampler(range(20)))
    assert sorted(sum(batches(part), [])) == list(range(20)) and len(part) == 20
    with pytest.raises(hr.ConfigError, match="a SequentialSampler of 7 records in 2 processes"):
        DataLoader(numbered, sampler=torch_data.SequentialSampler(range(7)), rank=0, world_size=2)


@pytest.mark.parametrize("make", [
    lambda: torch_data.BatchSampler(torch_data.SubsetRandomSampler(range(0, 50, 2), generator=seeded()), 4, False),
    lambda: torch_data.BatchSampler(range(30), 4, True),
    lambda: [[3, 1], [3, 3], [9]],
    lambda: [[5, 6, 7]],
])
def test_a_batch_sampler_gives_the_batches_of_pytorch(numbered, theirs, make):
    mine, other = DataLoader(numbered, batch_sampler=make()), torch_data.DataLoader(theirs, batch_sampler=make())
    assert len(mine) == len(other) and mine.batch_size is None
    for _ in range(2):
        assert batches(mine) == batches_of_torch(other)


@pytest.mark.parametrize(("wrong", "message"), [
    ([[1, 2], [3], [4, 5]], "batch 1 of the list has 1 records, and batch 0 has 2"),
    ([[1], [2, 3]], "batch 1 of the list has 2 records"),
    ([[1, 2], []], "batch 1 of the list has 0 records"),
    ([1, 2], "no record number"),
])
def test_a_batch_sampler_has_batches_of_one_size(numbered, wrong, message):
    with pytest.raises(hr.ConfigError, match=message):
        iter(DataLoader(numbered, batch_sampler=wrong))


@pytest.mark.parametrize(("wrong", "message"), [
    ([0, 100], "number 100, at place 1 of the list, is out of range: there are 100"),
    ([0, -1], "number -1, at place 1 of the list, is negative"),
    ([0.5], "no record number"),
    (["a"], "no record number"),
])
def test_a_sampler_gives_numbers_of_records(numbered, wrong, message):
    with pytest.raises(hr.ConfigError, match=message):
        iter(DataLoader(numbered, sampler=wrong))


def test_a_sampler_is_refused_where_records_have_no_numbers(numbered):
    def stream():
        yield from ({"number": np.int64(i)} for i in range(10))

    with pytest.raises(hr.ConfigError, match="a list over a stream"):
        DataLoader(hr.from_generator(stream, fields={"number": ("int64", ())}), sampler=[1])
    for arguments in ({"sampler": [1]}, {"batch_sampler": [[1]]}):
        with pytest.raises(hr.ConfigError, match="batched already"):
            DataLoader(numbered.batch(4), **arguments)


def test_random_operations_draw_anew_each_epoch_and_for_each_repetition(numbered):
    noisy = numbered.map(hr.color_jitter(brightness=0.9))
    order = [3, 3, 3, 60, 61]

    def images_of(loader):
        return [image.clone() for batch in loader for image in batch["image"]]

    with DataLoader(noisy, batch_size=2, sampler=order, seed=1) as loader:
        epochs = [images_of(loader) for _ in range(2)]
    shown = [image for epoch in epochs for image in epoch[:3]]
    assert all(not torch.equal(a, b) for i, a in enumerate(shown) for b in shown[:i])
    with DataLoader(noisy, batch_size=2, sampler=order, seed=1, num_workers=2) as again:
        assert all(torch.equal(a, b) for epoch in epochs for a, b in zip(epoch, images_of(again), strict=True))


@pytest.mark.parametrize("given", ["sampler", "batch_sampler"])
@pytest.mark.parametrize("taken", range(5))
def test_goes_on_within_an_epoch_of_a_samplers_order(numbered, given, taken):
    noisy = numbered.map(hr.flip())

    def loader(seed):
        sampler = torch_data.SubsetRandomSampler(range(20, 38), generator=seeded(seed))
        if given == "sampler":
            return DataLoader(noisy, batch_size=4, sampler=sampler, seed=2)
        return DataLoader(noisy, batch_sampler=torch_data.BatchSampler(sampler, 4, False), seed=2)

    stopped = loader(1)
    batches(stopped)
    iterator = iter(stopped)
    for _ in range(taken):
        next(iterator)
    state = json.loads(json.dumps(stopped.state_dict()))
    rest = [(batch["number"].tolist(), batch["image"].clone()) for batch in iterator]
    resumed = loader(7)
    resumed.load_state_dict(state)
    for batch, (number, image) in zip(resumed, rest, strict=True):
        assert batch["number"].tolist() == number and torch.equal(batch["image"], image)
    assert sorted(sum(batches(resumed), [])) == list(range(20, 38))
    assert resumed.state_dict()["complete"] and "order" not in resumed.state_dict()


def test_a_state_without_an_order_is_refused(numbered):
    plain = DataLoader(numbered, batch_size=4)
    next(iter(plain))
    ordered = DataLoader(numbered, batch_size=4, sampler=[1, 2])
    ordered.load_state_dict(plain.state_dict())
    with pytest.raises(hr.ConfigError, match="without a sampler of its own"):
        iter(ordered)


# --------------------------------------------------------------------------------------------------- subsets


def test_subsets_of_a_headrace_dataset(numbered, theirs):
    def subset(data):
        return torch_data.Subset(torch_data.Subset(data, np.arange(99, 39, -1)), [5, 0, 5, 59])

    assert batches(DataLoader(subset(numbered), batch_size=3)) == batches_of_torch(
        torch_data.DataLoader(subset(theirs), batch_size=3))
    assert sum(batches(DataLoader(subset(numbered), batch_size=3)), []) == [94, 99, 94, 40]


def test_random_split_of_a_headrace_dataset(numbered, theirs):
    parts = torch_data.random_split(numbered, [0.75, 0.25], generator=seeded())
    for mine, other in zip(parts, torch_data.random_split(theirs, [0.75, 0.25], generator=seeded()), strict=True):
        assert batches(DataLoader(mine, batch_size=8)) == batches_of_torch(torch_data.DataLoader(other, batch_size=8))
    training = [sum(batches(DataLoader(parts[0], batch_size=8, shuffle=True)), []) for _ in range(2)]
    assert training[0] != training[1] and sorted(training[0]) == sorted(parts[0].indices)
    order = torch_data.SubsetRandomSampler([0, 3])
    assert set(sum(batches(DataLoader(parts[1], sampler=order)), [])) == {parts[1].indices[0], parts[1].indices[3]}


def test_subsets_of_other_datasets_stay_as_they_are(theirs):
    [(_, number)] = DataLoader(torch_data.Subset(theirs, [4, 2]), batch_size=2)
    assert number.tolist() == [4, 2]


# --------------------------------------------------------------------------------------------------- collate_fn


def test_collate_fn_sees_samples_as_pytorch_gives_them(numbered, theirs):
    def collate(samples):
        assert type(samples) is list
        images, numbers = zip(*samples)
        return torch.stack(images).flatten(1), {"number": torch.stack(numbers)}

    mine = DataLoader(numbered, batch_size=16, fields=("image", "number"), collate_fn=collate)
    for (a, b), (c, d) in zip(mine, torch_data.DataLoader(theirs, batch_size=16, collate_fn=collate), strict=True):
        assert torch.equal(a, c) and torch.equal(b["number"], d["number"])


def test_collate_fn_sees_dicts_without_fields(numbered):
    loader = DataLoader(numbered, batch_size=3, sampler=[1, 5, 9, 2], collate_fn=lambda samples: samples)
    first, last = loader
    assert [len(first), len(last)] == [3, 1] and set(first[0]) == {"image", "number"}
    assert [sample["number"].item() for sample in first + last] == [1, 5, 9, 2] and first[0]["image"].dim() == 3


def test_the_default_collate_changes_nothing(numbered):
    loader = DataLoader(numbered, batch_size=50, fields=("image", "number"), collate_fn=torch_data.default_collate)
    plain = DataLoader(numbered, batch_size=50, fields=("image", "number"))
    assert all(torch.equal(a, b) for mine, other in zip(loader, plain, strict=True) for a, b in zip(mine, other, strict=True))


def test_what_collate_fn_keeps_stays_as_it_is(numbered, images):
    kept = list(DataLoader(numbered, batch_size=4, collate_fn=lambda samples: samples[0]["image"]))
    assert torch.equal(torch.stack(kept), torch.from_numpy(images[::4]))


def test_collate_fn_is_refused_where_there_are_no_rows():
    rows = hr.from_function(lambda i: {"x": np.arange(i, dtype=np.int32)}, 5, fields={"x": ("int32", (None,))})
    ragged = rows.ragged_batch(2)
    with pytest.raises(hr.ConfigError, match="collate_fn after ragged_batch"):
        DataLoader(ragged, collate_fn=list)
