"""Loaders of several processes: each gives its share, and reads no other."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from worker_processes import results, with_module


def test_loaders_of_all_workers_give_each_record_once(launched):
    """And read no other's: a custom source is asked for nothing else."""
    asked = []

    def record(index):
        asked.append(index)
        return {"x": np.int64(index)}

    plan = hr.from_function(record, 100, fields={"x": "int64"}).shuffle(3).batch(12)
    whole = [batch["x"].numpy().tolist() for batch in hr.Loader(plan)]
    given = []
    for rank in range(3):
        launched.setenv("RANK", str(rank))
        asked.clear()
        loader = hr.Loader(plan, devices="cpu:2", world="auto")
        assert loader.world == (6, 2 * rank) and f"replicas {2 * rank} to {2 * rank + 1} of 6" in repr(loader)
        shares = [[loader.next(replica)["x"].numpy().tolist() for replica in range(2)] for _ in range(len(loader))]
        assert loader.state_dict() == {"headrace": loader.state_dict()["headrace"]}
        mine = sorted(value for pair in shares for share in pair for value in share)
        assert sorted(asked) == mine, "a worker reads its own records alone"
        given.append(shares)
    steps = [[value for worker in given for share in worker[step] for value in share] for step in range(len(whole))]
    assert steps == whole, "in rank's order they are the global batches"


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="the system does not count what a process reads")
def test_a_worker_reads_no_bytes_of_other_records(tmp_path, launched):
    image = pytest.importorskip("PIL.Image")

    def bytes_read():
        return int(re.search(r"rchar: (\d+)", Path("/proc/self/io").read_text())[1])

    random = np.random.default_rng(0)
    for number in range(40):
        folder = tmp_path / "train" / f"class{number // 20}"
        folder.mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 256, (24, 24 + number, 3), dtype=np.uint8)
        image.fromarray(pixels).save(folder / f"{number:02}.png")
    plan = hr.open(tmp_path).shuffle(1).decode().map(hr.center_crop(24)).batch(8)
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("train/*/*"))]
    for rank in range(3):
        launched.setenv("RANK", str(rank))
        before = bytes_read()
        mine = [int(record) for batch in hr.Loader(plan, world="auto") for record in batch.records]
        read, own = bytes_read() - before, sum(sizes[record] for record in mine)
        assert own <= read < own + 2 * max(sizes), (own, read, sum(sizes))


def test_the_world_of_a_loader_is_checked(data, unlaunched):
    with pytest.raises(hr.ConfigError, match="world = 'torchrun' is not known"):
        hr.Loader(data.batch(4), world="torchrun")
    assert hr.Loader(data.batch(4), world=(4, 1)).world == (4, 1)
    assert hr.Loader(data.batch(4), world="auto").world == (1, 0)


@with_module
def test_loaders_take_their_place_from_the_world():
    workers = results("""
        import json
        import numpy as np
        import headrace as hr
        workers = hr.open_world(start_timeout_seconds=60)
        plan = hr.from_arrays({"x": np.arange(20)}).shuffle(1).batch(6)
        loader = hr.Loader(plan, devices="cpu:2", world=workers)
        mine = [loader.next(replica)["x"].numpy().tolist() for _ in range(len(loader)) for replica in range(2)]
        read = {stage["name"]: stage["items"] for stage in loader.stats()["stages"]}
        print(json.dumps({"world": loader.world, "mine": mine, "state": loader.state_dict(), "read": read}))
    """)
    assert [worker["world"] for worker in workers] == [[4, 0], [4, 2]]
    given = [sorted(value for share in worker["mine"] for value in share) for worker in workers]
    assert sorted(given[0] + given[1]) == list(range(20))
    assert workers[0]["state"] == workers[1]["state"], "one stream, one state"
