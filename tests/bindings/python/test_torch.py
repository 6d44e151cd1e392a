"""headrace.torch.DataLoader, where PyTorch is installed."""

import gc
import json
import pickle

import numpy as np
import pytest

import headrace as hr

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch.utils import data as torch_data  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

from headrace.torch import DataLoader  # noqa: E402

FIELDS = ("image", "number")


@pytest.fixture
def numbered(images):
    """Each record's label is its number."""
    return hr.from_arrays({"image": images, "number": np.arange(len(images))})


class Items(torch_data.Dataset):
    """A map-style dataset of tuples."""

    def __init__(self, records=50):
        self.records = records

    def __len__(self):
        return self.records

    def __getitem__(self, index):
        return torch.full((3, 2), float(index)), index


def numbers(loader, field="number"):
    batches = [batch[field] for batch in loader]
    return torch.cat(batches).tolist() if batches else []


def labels_of(loader):
    return torch.cat([labels for _, labels in loader]).tolist()


# ------------------------------------------------------------------------------------------- what PyTorch does, too


def test_gives_the_batches_of_pytorch_in_order(numbered, images):
    ours = DataLoader(numbered, batch_size=16, fields=FIELDS, num_workers=2)
    theirs = torch_data.DataLoader(torch_data.TensorDataset(torch.from_numpy(images), torch.arange(100)), batch_size=16)
    assert len(ours) == len(theirs) == 7
    for mine, other in zip(ours, theirs, strict=True):
        assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(mine, other, strict=True))


def test_gives_the_batches_of_an_epoch_in_any_order(numbered):
    loader = DataLoader(numbered, batch_size=16, shuffle=True, seed=1, num_workers=2, in_order=False)
    ordered = DataLoader(numbered, batch_size=16, shuffle=True, seed=1)
    for _ in range(3):
        batches, expected = ([batch["number"].tolist() for batch in each] for each in (loader, ordered))
        assert sorted(batches) == sorted(expected) and sorted(sum(batches, [])) == list(range(100))


def test_goes_on_in_any_order(numbered):
    stopped = DataLoader(numbered, batch_size=16, shuffle=True, seed=1, num_workers=2, in_order=False)
    iterator = iter(stopped)
    taken = sum((next(iterator)["number"].tolist() for _ in range(3)), [])
    resumed = DataLoader(numbered, batch_size=16, shuffle=True, seed=1, in_order=False)
    resumed.load_state_dict(json.loads(json.dumps(stopped.state_dict())))
    assert sorted(taken + numbers(resumed)) == list(range(100))


def test_gives_what_default_collate_gives_of_a_torch_dataset():
    for mine, other in zip(DataLoader(Items(), batch_size=8), torch_data.DataLoader(Items(), batch_size=8), strict=True):
        assert type(mine) is type(other) is list
        assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(mine, other, strict=True))


def test_shuffles_reshuffle_each_epoch_and_completely(numbered):
    loader = DataLoader(numbered, batch_size=16, shuffle=True, seed=1)
    first, second = numbers(loader), numbers(loader)
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second != list(range(100))


def test_manual_seed_decides_the_order(numbered):
    def order():
        torch.manual_seed(5)
        return numbers(DataLoader(numbered, batch_size=16, shuffle=True))

    assert order() == order()
    generator = torch.Generator().manual_seed(6)
    assert numbers(DataLoader(numbered, batch_size=16, shuffle=True, generator=generator)) != order()


@pytest.mark.parametrize("num_workers", [0, 1, 3])
@pytest.mark.parametrize("prefetch_factor", [None, 4])
def test_threads_and_prefetch_change_no_batch(augmented, num_workers, prefetch_factor):
    plan = augmented
    expected = [batch["image"].clone() for batch in DataLoader(plan, seed=3)]
    given = DataLoader(plan, seed=3, num_workers=num_workers, prefetch_factor=prefetch_factor, copy=True)
    assert all(torch.equal(a["image"], b) for a, b in zip(given, expected, strict=True))


def test_drop_last(numbered):
    assert [len(batch["number"]) for batch in DataLoader(numbered, batch_size=30, drop_last=True)] == [30, 30, 30]
    assert [len(batch["number"]) for batch in DataLoader(numbered, batch_size=30)] == [30, 30, 30, 10]


def test_batch_size_is_one_unless_said(numbered):
    loader = DataLoader(numbered.take(3))
    assert loader.batch_size == 1 and [batch["number"].shape for batch in loader] == [(1,)] * 3


def test_a_batched_plan_has_its_batch(numbered):
    for loader in (DataLoader(numbered.batch(40)), DataLoader(numbered.batch(40), batch_size=None)):
        assert loader.batch_size == 40 and [len(batch["number"]) for batch in loader] == [40, 40, 20]


@pytest.mark.parametrize("persistent_workers", [None, True, False])
def test_each_iteration_is_the_next_epoch(numbered, persistent_workers):
    def epochs(loader):
        return [numbers(loader) for _ in range(3)]

    expected = epochs(DataLoader(numbered, batch_size=16, shuffle=True, seed=1))
    assert epochs(DataLoader(numbered, batch_size=16, shuffle=True, seed=1, persistent_workers=persistent_workers)) == expected
    assert len({tuple(epoch) for epoch in expected}) == 3


def test_a_broken_off_epoch_is_given_up(numbered):
    whole = DataLoader(numbered, batch_size=16, shuffle=True, seed=1)
    epochs = [numbers(whole) for _ in range(2)]
    loader = DataLoader(numbered, batch_size=16, shuffle=True, seed=1)
    for _ in loader:
        break
    assert numbers(loader) == epochs[1]


def test_an_older_iterator_says_that_it_has_ended(numbered):
    loader = DataLoader(numbered, batch_size=16)
    old = iter(loader)
    next(old)
    next(iter(loader))
    with pytest.raises(hr.ConfigError, match="another one has begun"):
        next(old)


def test_set_epoch_chooses_the_epoch(numbered):
    loader = DataLoader(numbered, batch_size=16, shuffle=True, seed=1)
    epochs = [numbers(loader) for _ in range(4)]
    for epoch in (2, 0, 3, 3):
        loader.set_epoch(epoch)
        assert numbers(loader) == epochs[epoch]
    fresh = DataLoader(numbered, batch_size=16, shuffle=True, seed=1)
    fresh.set_epoch(3)
    assert numbers(fresh) == epochs[3]


# --------------------------------------------------------------------------------------------------- samplers


def test_known_samplers_are_the_engines(numbered):
    sequential = DataLoader(numbered, batch_size=16, sampler=torch_data.SequentialSampler(range(100)))
    assert numbers(sequential) == list(range(100))
    shuffled = DataLoader(numbered, batch_size=16, sampler=torch_data.RandomSampler(range(100)))
    assert sorted(numbers(shuffled)) == list(range(100)) != numbers(shuffled)


def test_other_samplers_over_a_torch_dataset_are_asked_each_epoch():
    order = [4, 4, 9, 0, 31, 7, 2]
    loader = DataLoader(Items(), batch_size=3, sampler=order)
    assert labels_of(loader) == labels_of(loader) == order and len(loader) == 3
    weighted = torch_data.WeightedRandomSampler([1.0] * 10 + [0.0] * 40, 30, generator=torch.Generator().manual_seed(0))
    loader = DataLoader(Items(), batch_size=8, sampler=weighted, drop_last=True)
    first, second = labels_of(loader), labels_of(loader)
    assert len(first) == 24 and set(first) | set(second) <= set(range(10)) and first != second


def test_it_says_what_it_gives_and_where_it_stands(numbered):
    loader = DataLoader(numbered, batch_size=12, rank=1, world_size=2)
    assert repr(loader) == f"<headrace.torch.DataLoader of {numbered!r}; batch_size 12, rank 1 of 2 on cpu; epoch 0, step 0>"
    epoch = iter(loader)
    next(epoch)
    assert repr(loader).endswith("; epoch 0, step 1>")
    assert repr(epoch) == f"<an epoch of {len(loader)} batches, 1 given, of {loader!r}>"


# --------------------------------------------------------------------------------------------------- processes


@pytest.mark.parametrize("world", [2, 3, 4])
def test_processes_share_each_global_batch(numbered, world):
    alone = DataLoader(numbered, batch_size=12 * world, shuffle=True, seed=2)
    loaders = [DataLoader(numbered, batch_size=12, shuffle=True, seed=2, rank=r, world_size=world) for r in range(world)]
    assert {len(loader) for loader in loaders} == {len(alone)}
    for whole, *parts in zip(alone, *loaders, strict=True):
        assert torch.equal(torch.cat([part["number"] for part in parts]), whole["number"])


def test_the_world_is_found_in_the_environment(numbered, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    loader = DataLoader(numbered, batch_size=5)
    assert (loader.rank, loader.world_size, len(loader)) == (1, 4, 5)
    assert numbers(loader)[:5] == [5, 6, 7, 8, 9]
    assert DataLoader(numbered, batch_size=5, world_size=1).world_size == 1
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(hr.ConfigError, match="RANK is 'first'"):
        DataLoader(numbered, batch_size=5)


@pytest.mark.parametrize("variables", [
    {"SLURM_PROCID": "1", "SLURM_NPROCS": "4"},
    {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"},
    {"JOB_COMPLETION_INDEX": "1", "JOB_COMPLETIONS": "4"},
    {"TF_CONFIG": '{"cluster": {"worker": ["a:1", "b:1", "c:1", "d:1"]}, "task": {"type": "worker", "index": 1}}'},
], ids=lambda variables: next(iter(variables)))
def test_the_world_is_that_of_any_launcher(numbered, monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    loader = DataLoader(numbered, batch_size=5)
    assert (loader.rank, loader.world_size) == (1, 4)


def test_a_world_of_unknown_size_is_asked_for(numbered, monkeypatch):
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "1")
    with pytest.raises(hr.ConfigError, match="rank 1 of an unknown number of workers .*give rank and world_size"):
        DataLoader(numbered, batch_size=5)
    assert DataLoader(numbered, batch_size=5, rank=1, world_size=2).world_size == 2


def test_a_distributed_sampler_gives_rank_seed_and_epoch(numbered):
    samplers = [DistributedSampler(range(100), 2, r, shuffle=True, seed=4) for r in range(2)]
    loaders = [DataLoader(numbered, batch_size=10, sampler=sampler) for sampler in samplers]
    epochs = []
    for epoch in range(2):
        for sampler in samplers:
            sampler.set_epoch(epoch)
        epochs.append([numbers(loader) for loader in loaders])
    assert [sorted(sum(parts, [])) for parts in epochs] == [list(range(100))] * 2
    assert epochs[0] != epochs[1]
    assert [numbers(loader) for loader in loaders] == epochs[1]  # it still says epoch 1


def test_a_process_without_an_example_is_refused(numbered):
    with pytest.raises(hr.ConfigError, match="2 examples for 3 processes"):
        DataLoader(numbered.take(32), batch_size=10, rank=0, world_size=3)
    assert len(DataLoader(numbered.take(32), batch_size=10, rank=0, world_size=3, drop_last=True)) == 1


# --------------------------------------------------------------------------------------------------- state


@pytest.mark.parametrize("taken", [0, 1, 4, 7, 9])
def test_goes_on_from_a_state_with_other_threads(numbered, taken):
    def loader(**more):
        return DataLoader(numbered, batch_size=16, shuffle=True, seed=1, copy=True, **more)

    whole = loader()
    stream = [batch["number"] for _ in range(3) for batch in whole]
    stopped, given = loader(num_workers=1), 0
    while given < taken:
        for _ in stopped:
            given += 1
            if given == taken:
                break
    state = stopped.state_dict()
    for state in (json.loads(json.dumps(state)), pickle.loads(pickle.dumps(state))):
        resumed = loader(num_workers=3)
        resumed.load_state_dict(state)
        rest = [batch["number"] for _ in range(2) for batch in resumed]
        assert all(torch.equal(a, b) for a, b in zip(rest, stream[taken:], strict=False))
        assert len(rest) == 14 - (taken % 7 if taken % 7 else 0)


def test_set_epoch_of_the_same_epoch_keeps_a_restored_place(numbered):
    loader = DataLoader(numbered, batch_size=16, shuffle=True, seed=1)
    epoch = numbers(loader)
    stopped = DataLoader(numbered, batch_size=16, shuffle=True, seed=1)
    next(iter(stopped))
    loader.load_state_dict(stopped.state_dict())
    loader.set_epoch(0)
    iterator = iter(loader)
    assert len(iterator) == 6 and numbers(iterator) == epoch[16:]


def test_a_state_goes_on_with_the_order_of_a_sampler_of_its_own():
    order = list(np.random.default_rng(0).permutation(50))
    stopped = DataLoader(Items(), batch_size=8, sampler=order)
    iterator = iter(stopped)
    next(iterator), next(iterator)
    state = json.loads(json.dumps(stopped.state_dict()))
    resumed = DataLoader(Items(), batch_size=8, sampler=list(reversed(order)))
    resumed.load_state_dict(state)
    assert labels_of(resumed) == order[16:]
    assert labels_of(resumed) == order[::-1]


def test_a_state_brings_its_seed(numbered):
    stopped = DataLoader(numbered, batch_size=16, shuffle=True)
    iterator = iter(stopped)
    next(iterator)
    resumed = DataLoader(numbered, batch_size=16, shuffle=True)
    resumed.load_state_dict(stopped.state_dict())
    assert numbers(resumed) == numbers(iterator) and numbers(resumed) == numbers(stopped)


def test_a_state_of_another_stream_is_refused(numbered):
    loader = DataLoader(numbered, batch_size=16, shuffle=True, seed=1)
    next(iter(loader))
    other = DataLoader(numbered, batch_size=16, shuffle=True, seed=2)
    with pytest.raises(hr.ConfigError, match="the state is of seed 1"):
        other.load_state_dict(loader.state_dict())
    longer = DataLoader(numbered, batch_size=20, shuffle=True)
    longer.load_state_dict(loader.state_dict())
    with pytest.raises(hr.ConfigError, match="another stream"):
        iter(longer)
    with pytest.raises(hr.ConfigError, match="no state of headrace.torch.DataLoader"):
        other.load_state_dict({"_snapshot": 1})


# --------------------------------------------------------------------------------------------------- memory


def test_tensors_are_views_while_the_loop_gives_them_back(numbered):
    loader = DataLoader(numbered, batch_size=4)
    places = {batch["image"].data_ptr() for batch in loader}
    assert len(places) <= 2 * loader.stats()["slots"] < 25, "a batch takes its rows, and its slot goes on with spare ones"
    assert not loader._engine.copies


def test_kept_batches_stay_as_they_are(numbered, images):
    loader = DataLoader(numbered, batch_size=4)
    kept = list(loader)
    assert loader._engine.copies
    assert torch.equal(torch.cat([batch["image"] for batch in kept]), torch.from_numpy(images))


def test_one_batch_may_be_kept_for_ever(numbered, images):
    loader = DataLoader(numbered, batch_size=4, timeout=20)
    fixed = next(iter(loader))["image"][1:3]
    for _ in range(3):
        assert sorted(numbers(loader)) == list(range(100))
    assert torch.equal(fixed, torch.from_numpy(images[1:3]))


def test_tensors_outlive_the_loader(numbered, images):
    loader = DataLoader(numbered, batch_size=10)
    batch = next(iter(loader))
    loader.close()
    del loader
    gc.collect()
    assert torch.equal(batch["image"], torch.from_numpy(images[:10]))


def test_copies_are_the_callers_own(numbered):
    loader = DataLoader(numbered, batch_size=4, copy=True)
    assert len({batch["image"].data_ptr() for batch in list(loader)}) == 25


def test_a_closed_loader_begins_again(numbered):
    with DataLoader(numbered, batch_size=16, shuffle=True, seed=1) as loader:
        first = numbers(loader)
    loader.set_epoch(0)
    assert numbers(loader) == first


# --------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(("arguments", "message"), [
    ({"batch_sampler": [[0, 1]], "batch_size": 2}, "batch_sampler beside batch_size"),
    ({"batch_sampler": [[0, 1]], "drop_last": True}, "batch_sampler beside batch_size"),
    ({"sampler": [0, 1], "shuffle": True}, "shuffle=True beside a sampler"),
    ({"sampler": [0, 1], "batch_size": None}, "batch_size=None beside a list"),
    ({"sampler": [0, 1], "rank": 0, "world_size": 2}, "rank and world_size beside a list"),
    ({"worker_init_fn": print}, "worker_init_fn is not supported"),
    ({"multiprocessing_context": "fork"}, "multiprocessing_context is not supported"),
    ({"in_order": False, "rank": 0, "world_size": 2}, "in_order=False: the loader serves 1 of 2 replicas"),
    ({"pin_memory_device": "cuda"}, "pin_memory_device 'cuda' is not supported"),
    ({"num_workers": -1}, "num_workers = -1"),
    ({"prefetch_factor": 0}, "prefetch_factor = 0"),
    ({"timeout": -1}, "timeout = -1"),
    ({"batch_size": 0}, "batch_size = 0"),
    ({"batch_size": None}, "not batched"),
    ({"rank": 1}, "go together"),
    ({"rank": 2, "world_size": 2}, "rank 2 of world_size 2"),
    ({"seed": 1, "generator": torch.Generator()}, "seed beside generator"),
    ({"fields": ("image", "label")}, "no field 'label'"),
    ({"batch_size": 200, "drop_last": True}, "make no batch of 200"),
    ({"shuffle": True, "sampler": torch_data.SequentialSampler(range(100))}, "shuffle=True beside a sampler"),
    ({"devices": "cpu"}, "devices is not an option"),
    ({"world_first": 1}, "world_first is not an option"),
    ({"num_workers": "4"}, "num_workers = '4'"),
    ({"batch_size": 2.5}, "batch_size = 2.5"),
    ({"shuffle": "yes"}, "shuffle = 'yes'"),
    ({"timeout": "1"}, "timeout = '1'"),
    ({"generator": 1}, "generator is a torch.Generator"),
    ({"collate_fn": "default"}, "collate_fn is a function"),
    ({"fields": "image"}, "fields is a list of names"),
    ({"even_shares": "pad"}, "even_shares is 'off', 'repeat' or 'drop'"),
    ({"persistent_workers": "no"}, "persistent_workers = 'no'"),
    ({"sampler": 5}, "a int as sampler"),
    ({"on_error": "skipp"}, "skipp"),
    ({"maxbadshare": 1}, "maxbadshare"),
    ({"num_workers": 5000}, "threads"),
])
def test_refuses_what_it_cannot_honour_when_it_is_made(numbered, arguments, message):
    with pytest.raises(hr.ConfigError, match=message):
        DataLoader(numbered, **arguments)


def test_refuses_datasets_without_numbers(numbered):
    class Stream(torch_data.IterableDataset):
        def __iter__(self):
            yield from range(3)

    with pytest.raises(hr.ConfigError, match="has no numbered items"):
        DataLoader(Stream())
    with pytest.raises(hr.ConfigError, match="ends in batch\\(10\\) already"):
        DataLoader(numbered.batch(10), batch_size=5)
    with pytest.raises(hr.ConfigError, match="batched already"):
        DataLoader(numbered.batch(10), shuffle=True)


def test_a_stream_has_one_epoch_an_iteration():
    def stream():
        yield from ({"number": np.int64(i)} for i in range(10))

    loader = DataLoader(hr.from_generator(stream), batch_size=4)
    assert numbers(loader) == numbers(loader) == list(range(10))
    with pytest.raises(TypeError):
        len(loader)
    with pytest.raises(hr.ConfigError, match="shuffle_window"):
        DataLoader(hr.from_generator(stream), shuffle=True)


def test_shards_without_an_index_have_epochs(shards):
    data = hr.open(shards, indexed=False).shuffle_shards(window=16, shards=2).decode(height=8, width=8)
    loader = DataLoader(data, batch_size=8, fields=("image", "label"), seed=3)
    first, second = labels_of(loader), labels_of(loader)
    assert sorted(first) == sorted(second) == list(range(60))
    assert first != second
    again = DataLoader(data, batch_size=8, fields=("image", "label"), seed=3)
    begun = iter(again)
    taken = [next(begun)[1] for _ in range(3)]
    state = pickle.loads(pickle.dumps(again.state_dict()))
    restored = DataLoader(data, batch_size=8, fields=("image", "label"), seed=3)
    restored.load_state_dict(state)
    assert torch.cat(taken).tolist() + labels_of(restored) == first
    assert labels_of(restored) == second
    assert labels_of(again) == second, "an epoch that was left is over"
    again.set_epoch(0)
    assert labels_of(again) == first
    with pytest.raises(hr.ConfigError, match="shuffle_shards"):
        DataLoader(hr.open(shards, indexed=False).decode(height=8, width=8), shuffle=True)


def test_iterations_are_left_and_begun_again(numbered):
    loader = DataLoader(numbered, batch_size=16, shuffle=True, fields=FIELDS, seed=3)
    epochs = [labels_of(loader) for _ in range(3)]
    again = DataLoader(numbered, batch_size=16, shuffle=True, fields=FIELDS, seed=3)
    for _ in again:
        break
    assert labels_of(again) == epochs[1]
    again.set_epoch(0)
    assert labels_of(again) == epochs[0]
    again.set_epoch(2)
    assert labels_of(again) == epochs[2]


def test_an_error_of_an_item_names_it():
    class Broken(Items):
        def __getitem__(self, index):
            if index == 11:
                raise ValueError("no such thing")
            return super().__getitem__(index)

    with pytest.raises(hr.HeadraceError, match="no such thing"):
        list(DataLoader(Broken(), batch_size=4))
    assert sum(len(y) for _, y in DataLoader(Broken(), batch_size=4, on_error="skip", max_bad_share=1)) == 49
