"""headrace.torch.DataLoader over torch Datasets, whose items may be of any form, and what it shares with PyTorch's own."""

import collections
import itertools
import json
import random
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.utils import data as torch_data  # noqa: E402

import headrace as hr  # noqa: E402
from headrace.torch import DataLoader  # noqa: E402
from test_torch import Items, numbered  # noqa: E402, F401

COUNT = 100


class Sentences(torch_data.Dataset):
    """Items of several lengths, with a text and an object: no rows."""

    def __init__(self):
        self.made = []
        self.lock = threading.Lock()

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        with self.lock:
            self.made.append(index)
        return torch.full((index % 7 + 1,), index), f"sentence {index}", {"boxes": [index] * (index % 3)}


def padded(samples):
    tokens, texts, more = zip(*samples, strict=True)
    return torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True), texts, [sample["boxes"] for sample in more]


def same(mine, theirs):
    return torch.equal(mine[0], theirs[0]) and tuple(mine[1:]) == tuple(theirs[1:])


def numbers(batches):
    return [int(text.split()[1]) for _, texts, _ in batches for text in texts]


@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_gives_what_pytorch_gives(workers, drop_last):
    arguments = {"batch_size": 16, "collate_fn": padded, "drop_last": drop_last}
    mine, theirs = DataLoader(Sentences(), num_workers=workers, **arguments), torch_data.DataLoader(Sentences(), **arguments)
    assert len(mine) == len(theirs)
    for _ in range(2):
        assert all(same(a, b) for a, b in zip(mine, theirs, strict=True))


def test_by_a_sampler_and_by_a_batch_sampler():
    order = random.Random(3).choices(range(COUNT), k=70)
    batches = [order[i:i + 8] for i in range(0, 70, 8)]
    for chosen in ({"sampler": order, "batch_size": 8}, {"batch_sampler": batches}):
        mine, theirs = (kind(Sentences(), collate_fn=padded, **chosen) for kind in (DataLoader, torch_data.DataLoader))
        assert all(same(a, b) for a, b in zip(mine, theirs, strict=True))


def test_shuffled_each_epoch_has_each_item_once():
    loader = DataLoader(Sentences(), 9, shuffle=True, seed=5, collate_fn=padded, num_workers=2)
    first, second = numbers(loader), numbers(loader)
    assert sorted(first) == sorted(second) == list(range(COUNT))
    assert first != second
    assert numbers(DataLoader(Sentences(), 9, shuffle=True, seed=5, collate_fn=padded)) == first


def test_processes_share_the_items():
    shares = [numbers(DataLoader(Sentences(), 5, shuffle=True, seed=5, collate_fn=padded, rank=rank, world_size=2))
              for rank in range(2)]
    assert sorted(shares[0] + shares[1]) == list(range(COUNT))


def test_goes_on_within_an_epoch():
    def loader(workers):
        return DataLoader(Sentences(), 9, shuffle=True, seed=5, collate_fn=padded, num_workers=workers)

    expected = numbers(loader(0))
    for given in (0, 1, 5, 11):
        running = loader(2)
        batches = iter(running)
        before = numbers(next(batches) for _ in range(given))
        resumed = loader(1)
        resumed.load_state_dict(running.state_dict())
        assert before + numbers(resumed) == expected


def test_epochs_that_are_left_leave_no_item_behind():
    dataset = Sentences()
    loader = DataLoader(dataset, 4, collate_fn=padded, num_workers=2, persistent_workers=False)
    for _ in range(5):
        next(iter(loader))
    assert numbers(loader) == list(range(COUNT))
    assert not loader._plan.parked._waiting


def test_an_item_that_fails_is_named():
    class Failing(Sentences):
        def __getitem__(self, index):
            if index == 42:
                raise ValueError("the file of item 42 is gone")
            return super().__getitem__(index)

    with pytest.raises(Exception, match="the file of item 42 is gone"):
        list(DataLoader(Failing(), 4, collate_fn=padded))
    skipping = DataLoader(Failing(), 4, collate_fn=padded, on_error="skip")
    assert numbers(skipping) == [number for number in range(COUNT) if number != 42]


def test_what_makes_no_sense_beside_it_is_refused():
    with pytest.raises(hr.ConfigError, match="fields beside collate_fn"):
        DataLoader(Sentences(), collate_fn=padded, fields=("image",))
    with pytest.raises(hr.ConfigError, match="headspace over a torch Dataset"):
        list(DataLoader(Sentences(), 4, collate_fn=padded, headspace=2))


class Forms(torch_data.Dataset):
    """Items of a form that `make` says of their numbers."""

    def __init__(self, make, records=6):
        self.make, self.records = make, records

    def __len__(self):
        return self.records

    def __getitem__(self, index):
        return self.make(index)


def shown(value):
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape, value.tolist()
    if isinstance(value, dict):
        return type(value), {key: shown(part) for key, part in value.items()}
    return (type(value), [shown(part) for part in value]) if isinstance(value, tuple | list) else (type(value), value)


Pair = collections.namedtuple("Pair", "first second")


@pytest.mark.parametrize("make", [
    lambda i: {"x": torch.arange(3) + i, "valid": torch.tensor([True, False, i > 2])}, lambda i: (torch.zeros(1), (i, 100 + i)),
    *(lambda i, dtype=dtype: torch.full((2,), i).to(dtype) for dtype in (torch.int8, torch.int16, torch.uint16, torch.bfloat16)),
    lambda i: (np.float64(i), np.int16(i), i / 3, f"text {i}", b"x", i % 2 == 0), lambda i: Pair({"a": [i, (i,)]}, np.ones(2, bool)),
    lambda i: torch.zeros(i + 1),
], ids=range(9))
@pytest.mark.parametrize("arguments", [{}, {"batch_size": 1}, {"batch_size": None}, {"collate_fn": torch_data.default_collate}], ids=str)
def test_gives_any_form_as_default_collate_does(make, arguments):
    arguments = {"batch_size": 1 if make(1).__class__ is torch.Tensor and len(make(1)) != len(make(0)) else 2, **arguments}
    mine, theirs = (loader(Forms(make), **arguments) for loader in (DataLoader, torch_data.DataLoader))
    assert [shown(batch) for batch in mine] == [shown(batch) for batch in theirs] and len(mine) == len(theirs)


def test_none_has_no_batch_as_there():
    with pytest.raises(TypeError, match="NoneType"):
        list(DataLoader(Forms(lambda i: (i, None)), batch_size=2))


@pytest.mark.parametrize("arguments", [{}, {"shuffle": True}, {"sampler": []}, {"batch_sampler": []}], ids=str)
def test_an_empty_data_set_gives_no_batches(arguments):
    for data in (Forms(int, 0), torch_data.Subset(hr.from_arrays({"x": np.arange(3)}), [])):
        loader = DataLoader(data, **arguments)
        assert list(loader) == list(loader) == [] and len(loader) == 0


@pytest.mark.parametrize("make", [
    lambda: itertools.cycle(range(50)), lambda: Forever(range(50)), lambda: Forever([[i, i + 1] for i in range(0, 50, 2)])], ids=range(3))
def test_a_sampler_may_have_no_end(make, monkeypatch):
    monkeypatch.setattr("headrace.torch._order._PIECE", 70)
    sampler = make()
    given = {"batch_sampler": sampler} if isinstance(next(iter(sampler)), list) else {"sampler": Forever(range(50)), "batch_size": 2}
    loader = DataLoader(Items(), **given)
    with pytest.raises(TypeError):
        len(loader)
    iterator = iter(loader)
    first = [next(iterator)[1].tolist() for _ in range(90)]
    assert first == [[i % 50, i % 50 + 1] for i in range(0, 180, 2)]
    resumed = DataLoader(Items(), **given)
    resumed.load_state_dict(json.loads(json.dumps(loader.state_dict())))
    rest = iter(resumed)
    assert [next(rest)[1].tolist() for _ in range(60)] == [[i % 50, i % 50 + 1] for i in range(180, 300, 2)]


class Forever(torch_data.Sampler):
    def __init__(self, given):
        self.given = given

    def __iter__(self):
        return itertools.cycle(self.given)


def test_attributes_that_have_no_effect_are_refused(numbered):
    loader = DataLoader(numbered, batch_size=4, num_workers=3)
    for name in ("batch_size", "sampler", "dataset", "drop_last", "num_workers", "collate_fn", "seed", "batchsize", "epoch"):
        with pytest.raises(hr.ConfigError, match=f"setting {name} of a DataLoader has no effect"):
            setattr(loader, name, 1)

    class Mine(DataLoader):
        pass

    mine = Mine(numbered)
    mine.note = 1
    with pytest.raises(hr.ConfigError, match="setting batch_size"):
        mine.batch_size = 2


@pytest.mark.parametrize("arguments", [
    {}, {"shuffle": True}, {"shuffle": True, "num_workers": 2, "prefetch_factor": 2, "persistent_workers": True, "timeout": 9},
    {"sampler": [3, 1, 2, 44, 9, 8]}, {"batch_sampler": [[1, 2], [4, 5], [3]]}, {"shuffle": True, "rank": 1, "world_size": 2},
], ids=str)
def test_another_library_makes_a_loader_of_the_rest_of_an_epoch(numbered, arguments):
    accelerate = pytest.importorskip("accelerate")
    size = {} if "batch_sampler" in arguments else {"batch_size": 4}
    for data, number in ((numbered, lambda batch: batch["number"]), (Items(), lambda batch: batch[1])):
        def numbers_of(loader):
            return [number(batch).tolist() for batch in loader]

        whole = DataLoader(data, seed=3, **size, **arguments)
        first, second = numbers_of(whole), numbers_of(whole)
        loader = DataLoader(data, seed=3, **size, **arguments)
        rest = accelerate.skip_first_batches(loader, 2)
        assert numbers_of(rest) == first[2:] and numbers_of(loader) == second
        loader.set_epoch(1)
        assert numbers_of(accelerate.skip_first_batches(loader, 1)) == second[1:]


def test_pytorchs_own_loader_is_told_which_to_use(numbered):
    with pytest.raises(hr.ConfigError, match="use headrace.torch.DataLoader"):
        next(iter(torch_data.DataLoader(numbered)))


@pytest.mark.parametrize("data", ["headrace", "torch"])
@pytest.mark.parametrize("records", [33, 38, 40])
def test_processes_have_equally_many_examples(numbered, data, records):
    def parts(even_shares):
        whole = numbered.take(records).map(hr.function(lambda s: s, name="same")) if data == "headrace" else Items(records)
        field = (lambda batch: batch["number"]) if data == "headrace" else (lambda batch: batch[1])
        loaders = [DataLoader(whole, batch_size=5, rank=r, world_size=4, even_shares=even_shares) for r in range(4)]
        given = [[(field(batch).tolist(), loader.repeats) for batch in loader] for loader in loaders]
        assert all(len(given[r]) == len(loaders[r]) for r in range(4))
        return given

    repeat, drop = parts("repeat"), parts("drop")
    for given in (repeat, drop):
        assert all(len({len(share[0]) for share in batch}) == 1 for batch in zip(*given, strict=True))
    last = sum((part[-1][0] for part in repeat), [])
    once = list(range(20, records))
    assert last == once + once[:len(last) - len(once)] and sum(part[-1][1] for part in repeat) == len(last) - len(once)
    assert sum((share[0] for part in drop for share in part), []) != [] and all(share[1] == 0 for part in drop for share in part)
