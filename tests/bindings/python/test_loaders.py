"""Loaders: the stream, its state, its identity."""

import json
import subprocess

import numpy as np
import pytest

import headrace as hr


def take(loader, count):
    return [{name: array.copy() for name, array in loader.next().numpy().items()} for _ in range(count)]


def equal(first, second):
    return len(first) == len(second) and all(
        (a["image"] == b["image"]).all() and (a["label"] == b["label"]).all() for a, b in zip(first, second))


def test_epochs_follow_one_another(augmented):
    loader = hr.Loader(augmented, epochs=3)
    counts = [sum(batch.examples for batch in loader) for _ in range(4)]
    assert counts == [100, 100, 100, 0] and len(loader) == 7


def test_a_break_is_gone_on_from(augmented):
    loader = hr.Loader(augmented, epochs=2)
    for batch in loader:
        if batch.step == 2:
            break
    assert [batch.step for batch in loader] == [3, 4, 5, 6]
    assert [batch.epoch for batch in loader] == [1] * 7


def test_without_a_number_of_epochs_it_goes_on(augmented):
    loader = hr.Loader(augmented, epochs=None)
    for epoch in range(5):
        assert {batch.epoch for batch in loader} == {epoch}
    assert loader.epoch == 5


@pytest.mark.parametrize("options", [{"threads": 1}, {"threads": 3}, {"devices": "cpu:4"}, {"prefetch": 7},
                                     {"prefetch": 0}])
def test_the_stream_depends_on_the_plan_alone(augmented, options):
    assert hr.Loader(augmented, epochs=2, seed=5, **options).digest() == hr.Loader(augmented, epochs=2, seed=5).digest()


def test_the_seed_makes_another_stream(augmented):
    assert hr.Loader(augmented, seed=5).digest() != hr.Loader(augmented, seed=6).digest()


@pytest.mark.parametrize("taken", [0, 3, 7, 9])
def test_restored_with_other_threads(augmented, taken):
    loader = hr.Loader(augmented, epochs=2, threads=1)
    take(loader, taken)
    state = json.loads(json.dumps(loader.state_dict()))
    expected = take(loader, 4)
    again = hr.Loader(augmented, epochs=2, threads=3)
    again.next()
    again.load_state_dict(state)
    assert equal(take(again, 4), expected)
    assert equal(take(hr.Loader(augmented, epochs=2, threads=2, start=state), 4), expected)


def test_a_restored_epoch_is_its_rest(augmented):
    loader = hr.Loader(augmented, epochs=2)
    take(loader, 5)
    again = hr.Loader(augmented, epochs=2, start=loader.state_dict())
    assert [batch.step for batch in again] == [5, 6] and len(list(again)) == 7


def test_in_any_order_each_batch_comes_once_as_it_is(augmented):
    ordered = {batch.sequence: batch["image"].numpy().copy() for batch in hr.Loader(augmented, epochs=2).all_epochs()}
    loader = hr.Loader(augmented, epochs=2, threads=2, prefetch=4, in_order=False)
    taken = {}
    for _ in range(2):
        assert loader.epoch == len(taken) // 7
        taken.update((batch.sequence, batch["image"].numpy().copy()) for batch in loader)
    assert len(taken) == 14 and loader.next() is None
    assert all((taken[sequence] == images).all() for sequence, images in ordered.items())


@pytest.mark.parametrize("in_order", [True, False])
def test_in_any_order_it_goes_on_from_a_state(augmented, in_order):
    state = hr.Loader(augmented).state_dict()
    state["headrace"] += " 5"  # batches 1 and 3
    loader = hr.Loader(augmented, in_order=in_order, start=json.loads(json.dumps(state)))
    assert loader.epoch == 0 and loader.state_dict() == state
    assert sorted(batch.sequence for batch in loader) == [0, 2, 4, 5, 6]
    assert loader.epoch == 1 and len(loader.state_dict()["headrace"].split()) == 5


def test_any_order_is_refused_where_it_is_not_one(augmented):
    with pytest.raises(hr.ConfigError, match=r"in_order=False: the loader serves 1 of 2 replicas"):
        hr.Loader(augmented, world=(2, 0), in_order=False)
    with pytest.raises(hr.ConfigError, match="no digest as a stream"):
        hr.Loader(augmented, in_order=False).digest()


def test_a_state_of_another_stream_is_refused(augmented, data):
    state = hr.Loader(data.batch(3)).state_dict()
    with pytest.raises(hr.ConfigError):
        hr.Loader(augmented, start=state)
    with pytest.raises(hr.ConfigError, match="no entry 'headrace'"):
        hr.Loader(augmented).load_state_dict({"epoch": 1})


def test_replicas_share_each_global_batch(augmented):
    loader = hr.Loader(augmented, devices="cpu:2")
    whole = hr.Loader(augmented)
    for _ in range(7):
        shares = [loader.next(0), loader.next(1)]
        together = np.concatenate([share["image"].numpy() for share in shares])
        np.testing.assert_array_equal(together, whole.next()["image"].numpy())
        assert [share.replica for share in shares] == [0, 1]
    assert loader.next(0) is None and loader.next(1) is None
    with pytest.raises(hr.ConfigError, match="2 replicas"):
        iter(loader)


def test_a_world_is_divided(augmented):
    parts = [hr.Loader(augmented, world=(2, rank)) for rank in range(2)]
    whole = hr.Loader(augmented)
    for _ in range(7):
        together = np.concatenate([part.next()["label"].numpy() for part in parts])
        np.testing.assert_array_equal(together, whole.next()["label"].numpy())
    assert parts[0].state_dict() == parts[1].state_dict() == whole.state_dict()


def test_the_digest_is_the_commands(command, tmp_path):
    images = np.random.default_rng(1).integers(0, 256, (200, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "data.npz", x_train=images, y_train=np.arange(200) % 10)
    printed = subprocess.run(
        [command, "digest", "--pipeline", "cifar-train", "--data", tmp_path / "data.npz", "--seed", "3", "--epochs", "2",
         "--global-batch", "64", "--replicas", "3"], check=True, text=True, stdout=subprocess.PIPE).stdout
    mean, std = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
    plan = (hr.open(tmp_path / "data.npz").shuffle(3)
            .map(hr.pad_crop(32, 4), hr.flip(), hr.normalize(mean, std), hr.to_layout("channels_first"))
            .batch(64).prefetch(2))
    assert hr.Loader(plan, epochs=2, seed=3).digest() == printed.split()[-1]


def test_stats(augmented):
    loader = hr.Loader(augmented)
    list(loader)
    stats = loader.stats()
    assert stats["batches"] == 7 and stats["examples"] == 100
    assert {stage["kind"] for stage in stats["stages"]} >= {"operate", "consume"}
    assert any(what == "threads" for what, _, _ in loader.choices())


def test_trace(augmented):
    loader = hr.Loader(augmented, trace_spans=1000)
    list(loader)
    assert json.loads(loader.trace)["traceEvents"]
    with pytest.raises(hr.ConfigError, match="trace"):
        hr.Loader(augmented).trace


def test_bad_records_are_dealt_with(tmp_path):
    def make(index):
        if index == 5:
            raise ValueError("no record 5")
        return {"x": np.float32(index)}

    plan = hr.from_function(make, 20).batch(10)
    with pytest.raises(hr.DataError):
        list(hr.Loader(plan))
    loader = hr.Loader(plan, on_error="skip", max_bad_share=0.1, quarantine=tmp_path / "bad.jsonl")
    first = loader.next()
    assert first.examples == 9 and first.bad_records[0].record == 5
    assert "no record 5" in json.loads((tmp_path / "bad.jsonl").read_text())["cause"]


def test_the_end_is_the_end(augmented):
    with hr.Loader(augmented) as loader:
        assert len(list(loader.all_epochs())) == 7 and loader.next() is None
    with pytest.raises(hr.HeadraceError, match="closed"):
        loader.next()
    loader.close()


# -------------------------------------------------------------------------------------- batches without an example


def batches_of_epochs(loader, epochs):
    """Of each epoch the numbers of each batch, over all replicas: no batch is without an example, all replicas see the same end."""
    found = []
    for epoch in range(epochs):
        found.append([])
        while (shares := [loader.next(replica, epoch=epoch) for replica in range(loader.replicas)])[0] is not None:
            assert shares[0].global_examples > 0 and {share.epoch for share in shares} == {epoch}
            assert len({share.last_of_epoch for share in shares}) == 1
            found[-1].append(sum((share["x"].numpy().tolist() for share in shares), []))
    assert loader.next() is None
    return found


@pytest.mark.parametrize("bad", [{0}, {9}, {4, 5}, {7, 8, 9}, {0, 1, 8, 9}, {2, 3, 6, 9}, set(range(1, 10))], ids=str)
@pytest.mark.parametrize("options", [
    {}, {"prefetch": 0}, {"prefetch": 1, "threads": 3}, {"prefetch": 9}, {"devices": "cpu:2"}, {"in_order": False},
    {"devices": "cpu:2", "in_order": False}], ids=str)
@pytest.mark.parametrize("size", [1, 2])
def test_a_batch_of_which_nothing_is_left_is_not_handed_out(bad, options, size):
    def keep_good(sample):
        if int(sample["x"]) in bad:
            raise ValueError("bad")
        return sample

    data = hr.from_arrays({"x": np.arange(10)}).map(hr.function(keep_good, outputs={"x": "int64"})).batch(size)
    batches = [[i for i in range(first, first + size) if i not in bad] for first in range(0, 10, size)]
    expected = [batch for batch in batches if batch]
    epochs = batches_of_epochs(hr.Loader(data, epochs=3, on_error="skip", max_bad_share=1, **options), 3)
    assert (epochs if options.get("in_order", True) else [sorted(epoch) for epoch in epochs]) == [expected] * 3
    loader = hr.Loader(data, epochs=3, on_error="skip", max_bad_share=1, **options)
    if loader.replicas == 1:
        epochs = [[batch["x"].numpy().tolist() for batch in loader] for _ in range(3)]
        assert [sorted(epoch) for epoch in epochs] == [expected] * 3 and loader.next() is None


def test_a_state_before_batches_that_are_left_out_goes_on_with_the_next_epoch():
    def keep_good(sample):
        if int(sample["x"]) >= 8:
            raise ValueError("bad")
        return sample

    data = hr.from_arrays({"x": np.arange(10)}).map(hr.function(keep_good, outputs={"x": "int64"})).batch(1)
    stopped = hr.Loader(data, epochs=2, on_error="skip", max_bad_share=1)
    list(stopped)
    resumed = hr.Loader(data, epochs=2, on_error="skip", max_bad_share=1, start=stopped.state_dict())
    assert [int(batch["x"].numpy()[0]) for batch in resumed] == list(range(8))


# --------------------------------------------------------------------------------------------------- the world


def test_the_world_may_be_said_by_its_numbers(data):
    part = hr.Loader(data.batch(10), world_replicas=4, world_first=1)
    assert part.world == hr.Loader(data.batch(10), world=(4, 1)).world == (4, 1)
    with pytest.raises(hr.ConfigError, match="world beside world_first"):
        hr.Loader(data.batch(10), world=(4, 1), world_first=1)
    with pytest.raises(hr.ConfigError, match="not within a world of 4"):
        hr.Loader(data.batch(10), world_replicas=4, world_first=4)


@pytest.mark.parametrize(("even_shares", "sizes", "repeats"), [("off", [0, 1, 0, 1], 0), ("repeat", [1] * 4, 2), ("drop", None, 0)])
def test_shares_of_the_last_batch(even_shares, sizes, repeats):
    data = hr.from_arrays({"x": np.arange(10)}).batch(8)
    parts = [list(hr.Loader(data, world=(4, first), even_shares=even_shares)) for first in range(4)]
    assert {len(part) for part in parts} == {1 if sizes is None else 2}
    if sizes is not None:
        assert [part[-1].examples for part in parts] == sizes and sum(part[-1].repeats for part in parts) == repeats
    if even_shares == "repeat":
        assert [part[-1]["x"].numpy().tolist() for part in parts] == [[8], [9], [8], [9]]


def test_a_stream_repeats_no_example():
    data = hr.from_generator(lambda: ({"x": np.int64(i)} for i in range(10))).batch(8)
    with pytest.raises(hr.ConfigError, match="is a stream, whose records come once"):
        hr.Loader(data, world=(4, 0), even_shares="repeat")
    parts = [[batch["x"].numpy().tolist() for batch in hr.Loader(data, world=(3, first), even_shares="drop")] for first in range(3)]
    assert parts == [[[0, 1]], [[2, 3]], [[4, 5]]]


def test_shards_without_an_index_continue_where_they_stood(shards):
    plan = hr.open(shards, indexed=False).shuffle_shards(window=16, shards=2, seed=5).decode(height=8, width=8).batch(8)
    assert plan.streamed and not plan.one_pass
    whole = hr.Loader(plan, epochs=2)
    with pytest.raises(TypeError, match="before an epoch has ended"):
        len(whole)
    states, digests = [], []
    with hr.Loader(plan, epochs=2) as loader:
        for batch in loader.all_epochs():
            states.append(json.loads(json.dumps(loader.state_dict())))
            digests.append((batch.epoch, batch["label"].numpy().tolist()))
        assert len(loader) == 8 and loader.epoch == 2
    labels = [label for epoch, some in digests if epoch == 0 for label in some]
    assert sorted(labels) == list(range(60)) and labels != sorted(labels)
    for step, state in enumerate(states):
        with hr.Loader(plan, epochs=2, start=state) as rest:
            assert [(batch.epoch, batch["label"].numpy().tolist()) for batch in rest.all_epochs()] == digests[step + 1:]
    assert [sum(batch.examples for batch in whole) for _ in range(2)] == [60, 60]
