"""headrace.torch.DataLoader with a collate_fn over torch Datasets, whose items may be of any form."""

import random
import threading

import pytest

torch = pytest.importorskip("torch")
from torch.utils import data as torch_data  # noqa: E402

import headrace as hr  # noqa: E402
from headrace.torch import DataLoader  # noqa: E402

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
