# peers: grain numpy pillow
# package: headrace
"""Grain's rows of bindings/python/MIGRATION.md: what they say of order, run on both sides."""

import grain
import numpy as np

import headrace as hr
import peers
from migration import numbers, values

Map = grain.MapDataset
checks = peers.Checks()


def all_of(data):
    return [int(data[i]) for i in range(len(data))]


def sources():
    class Source:
        def __len__(self):
            return 10

        def __getitem__(self, index):
            return {"x": np.int64(index * index)}

    theirs = [int(one["x"]) for one in (Map.source(Source())[i] for i in range(10))]
    checks.expect("source()", values(hr.from_torch_dataset(Source())) == theirs)
    made = hr.from_function(lambda index: {"x": np.int64(3 * index)}, 10)
    checks.expect("range().map()", values(made) == all_of(Map.range(10).map(lambda x: 3 * x)))
    pairs = Map.range(5, 10).map_with_index(lambda index, x: 100 * index + x)
    again = hr.from_function(lambda index: {"x": np.int64(100 * index + index + 5)}, 5)
    checks.expect("map_with_index()", values(again) == all_of(pairs))


def orders():
    theirs = all_of(Map.range(50).shuffle(seed=1).repeat(2))
    ours = values(numbers(50).shuffle(1).repeat(2))
    for name, order in (("shuffle(): theirs", theirs), ("shuffle(): ours", ours)):
        halves = order[:50], order[50:]
        checks.expect(f"{name} permutes all records, each pass anew",
                      all(sorted(half) == list(range(50)) for half in halves) and halves[0] != halves[1], order)
    checks.expect("shuffle(): not by the same function", theirs != ours)
    windows = grain.experimental.WindowShuffleMapDataset(Map.range(20), window_size=5, seed=1)
    stream = grain.experimental.WindowShuffleIterDataset(Map.range(20).to_iter_dataset(), window_size=5, seed=1)
    for name, order in (("theirs, a map", all_of(windows)), ("theirs, a stream", [int(x) for x in stream]),
                        ("ours", values(numbers(20).shuffle_window(5, seed=1)))):
        blocks = [sorted(order[i:i + 5]) for i in range(0, 20, 5)]
        checks.expect(f"shuffle within windows: {name}", blocks == [list(range(i, i + 5)) for i in range(0, 20, 5)], order)


def selections():
    checks.expect("filter()", values(numbers(10).filter(lambda s: s["x"] % 2 == 0))
                  == [int(x) for x in Map.range(10).filter(lambda x: x % 2 == 0).to_iter_dataset()])
    even = Map.range(10).filter(lambda x: x % 2 == 0)
    checks.expect("filter(): theirs leaves gaps, ours has a length",
                  (len(even), even[1], len(numbers(10).filter(lambda s: s["x"] % 2 == 0))) == (10, None, 5))
    checks.expect("[a:b]", values(numbers(20).skip(3).take(8)) == all_of(Map.range(20)[3:11]))
    checks.expect("[i::n]", values(numbers(20).shard(4, 3)) == all_of(Map.range(20)[3::4]))
    for drop in (False, True):
        theirs = [list(map(int, one)) for one in (lambda d: [d[i] for i in range(len(d))])(
            Map.range(10).batch(4, drop_remainder=drop))]
        ours = [batch["x"].numpy().tolist() for batch in hr.Loader(numbers(10).batch(4, drop_remainder=drop))]
        checks.expect(f"batch(drop_remainder={drop})", ours == theirs)


def mix_of(parts, order):
    """Which part each record is of."""
    return [part for x in order for part, bounds in enumerate(parts) if x in range(*bounds)]


def combinations():
    parts = [(0, 100), (100, 200)]
    theirs = all_of(Map.mix([Map.range(*p) for p in parts], weights=[0.25, 0.75]))
    ours = values(hr.mix(*[numbers(*p) for p in parts], weights=[0.25, 0.75]))
    checks.expect("mix(): as many records", len(ours) == len(theirs), (len(ours), len(theirs)))
    turns = mix_of(parts, theirs)
    checks.expect("mix(): theirs is one rhythm", turns[:100] == turns[:4] * 25, turns)
    checks.expect("mix(): ours is a random merge", mix_of(parts, ours) != turns)
    for name, order in (("theirs", theirs), ("ours", ours)):
        for part in parts:
            own = [x for x in order if x in range(*part)]
            checks.expect(f"mix(): {name} keeps the order of a part", own == sorted(own))
    small, large = (0, 10), (100, 130)
    checks.expect("mix() without weights: theirs takes as many of each",
                  len(all_of(Map.mix([Map.range(*small), Map.range(*large)]))) == 20)
    checks.expect("mix() without weights: ours takes all", sorted(values(hr.mix(numbers(*small), numbers(*large))))
                  == [*range(*small), *range(*large)])
    checks.expect("concatenate()", values(hr.concatenate(numbers(3), numbers(10, 15)))
                  == all_of(Map.concatenate([Map.range(3), Map.range(10, 15)])))
    zipped = grain.experimental.ZipMapDataset([Map.range(5), Map.range(10, 15)])
    both = hr.zip(numbers(5), hr.from_arrays({"y": np.arange(10, 15)})).batch(5)
    batch = hr.Loader(both).next()
    checks.expect("ZipMapDataset", [*zip(batch["x"].numpy().tolist(), batch["y"].numpy().tolist())]
                  == [tuple(map(int, zipped[i])) for i in range(5)])
    try:
        grain.experimental.ZipMapDataset([Map.range(3), Map.range(5)])
        refused = False
    except ValueError:
        refused = True
    short = hr.zip(numbers(3), hr.from_arrays({"y": np.arange(5)}))
    checks.expect("ZipMapDataset of two lengths: theirs refuses, ours ends with the shorter", refused and len(short) == 3)


def shards():
    for drop in (False, True):
        given = []
        for shard in range(3):
            options = grain.sharding.ShardOptions(shard, 3, drop_remainder=drop)
            sampler = grain.samplers.IndexSampler(9, shard_options=options, shuffle=False, num_epochs=1, seed=0)
            given.append([int(x) for x in grain.DataLoader(data_source=list(range(9)), sampler=sampler, worker_count=0)])
        checks.expect("IndexSampler: contiguous parts", given == [[0, 1, 2], [3, 4, 5], [6, 7, 8]], given)
    ours = [values_of_share(share) for share in range(3)]
    checks.expect("world: shares of each global batch", sorted(sum(ours, [])) == list(range(10))
                  and ours[0][:2] == [0, 1] and ours[1][:2] == [2, 3], ours)


def values_of_share(share):
    return [int(x) for batch in hr.Loader(numbers(10).batch(6), world=(3, share)) for x in batch["x"].numpy()]


def states():
    iterator = iter(Map.range(9).shuffle(seed=2).batch(3).to_iter_dataset())
    next(iterator)
    state, rest = iterator.get_state(), [list(x) for x in iterator]
    iterator.set_state(state)
    checks.expect("state: theirs goes on", [list(x) for x in iterator] == rest)
    loader = hr.Loader(numbers(9).shuffle(2).batch(3))
    loader.next()
    state, rest = loader.state_dict(), [batch["x"].numpy().tolist() for batch in loader]
    loader.load_state_dict(state)
    checks.expect("state: ours goes on", [batch["x"].numpy().tolist() for batch in loader] == rest)


if __name__ == "__main__":
    for topic in (sources, orders, selections, combinations, shards, states):
        topic()
    checks.finish()
