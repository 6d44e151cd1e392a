"""Several workers, as processes that are started with torchrun's variables."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import headrace as hr

EXAMPLE = Path(__file__).resolve().parents[3] / "bindings/python/examples/train_workers.py"
LAUNCHERS = re.compile("^(RANK|WORLD_SIZE|LOCAL_|MASTER_|TF_CONFIG|OMPI_|MV2_|PMI|SLURM_|JOB_COMPLETION|HEADRACE_COORD)")

with_module = pytest.mark.skipif(not (Path(hr.__file__).parent / "libheadrace_workers.so").exists(),
                                 reason="the wheel was built without gRPC or Gloo")


def free_port():
    """The first of two that nobody has: torchrun's own store would take it, the coordinator takes the next one."""
    for _ in range(100):
        with socket.socket() as one, socket.socket() as next_one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            try:
                next_one.bind(("127.0.0.1", port + 1))
                return port
            except (OSError, OverflowError):
                continue
    raise RuntimeError("no two ports are free")


def variables(rank, count, port):
    own = {name: value for name, value in os.environ.items() if not LAUNCHERS.match(name)}
    place = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": count}
    return own | {name: str(value) for name, value in place.items()} | {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "HEADRACE_CPU_THREADS": "1"}


def start(text, *, count=2, ranks=None, port=None):
    """Starts a program as these ranks of a world: the processes."""
    port = port or free_port()
    command = [sys.executable, "-c", textwrap.dedent(text)] if isinstance(text, str) else [sys.executable, *text]
    return [subprocess.Popen(command, env=variables(rank, count, port), text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
            for rank in (range(count) if ranks is None else ranks)]


def finish(processes, seconds=120):
    """What each printed and its exit status."""
    try:
        printed = [process.communicate(timeout=seconds)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return printed, [process.returncode for process in processes]


def run(text, **options):
    printed, statuses = finish(start(text, **options))
    assert not any(statuses), printed
    return printed


def results(text, **options):
    """The last line of each worker, which is JSON."""
    return [json.loads(one.splitlines()[-1]) for one in run(text, **options)]


@pytest.fixture
def launched(monkeypatch):
    for name in list(os.environ):
        if LAUNCHERS.match(name):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    return monkeypatch


# --------------------------------------------------------------------------------------------------------- the plan


def test_a_process_alone_has_no_world(monkeypatch):
    for name in list(os.environ):
        if LAUNCHERS.match(name):
            monkeypatch.delenv(name)
    plan = hr.plan_workers()
    assert (plan.rank, plan.count, plan.is_chief, plan.launcher, plan.coordinator) == (0, 1, True, "", "")
    assert str(plan) == "a process that runs alone" and plan.facts == []
    assert hr.open_world() is None


def test_the_plan_says_where_each_fact_comes_from(launched):
    with pytest.raises(hr.ConfigError, match="does not say where worker 0 is") as missing:
        hr.plan_workers()
    assert "HEADRACE_COORDINATOR" in missing.value.hint
    launched.setenv("MASTER_ADDR", "node-a")
    launched.setenv("MASTER_PORT", "29500")
    launched.setenv("LOCAL_RANK", "1")
    plan = hr.plan_workers()
    assert (plan.launcher, plan.rank, plan.count, plan.is_chief) == ("torchrun", 1, 3, False)
    assert (plan.local_rank, plan.local_count, plan.coordinator) == (1, -1, "node-a:29501")
    assert "coordinator: node-a:29501 (MASTER_ADDR, MASTER_PORT + 1)" in str(plan)
    assert {fact.name: fact.origin for fact in plan.facts}["local rank"] == "LOCAL_RANK"


# ------------------------------------------------------------------------------------------------------- their world


@with_module
def test_workers_know_each_other():
    workers = results("""
        import json, os
        import headrace as hr
        workers = hr.open_world(start_timeout=60)
        said = workers.all_gather(b"\\0from %d" % workers.rank)
        print(repr(workers))
        print(json.dumps({"rank": workers.rank, "count": workers.count, "chief": workers.is_chief, "process": os.getpid(),
                          "said": [one.decode() for one in said], "devices": workers.devices("cpu:2"),
                          "at": [(workers.at(rank).host, workers.at(rank).process) for rank in range(workers.count)],
                          "cores": sorted(os.sched_getaffinity(0))}))
    """, count=3)
    here = [(socket.gethostname(), worker["process"]) for worker in workers]
    for rank, worker in enumerate(workers):
        assert (worker["rank"], worker["count"], worker["chief"]) == (rank, 3, rank == 0)
        assert worker["said"] == ["\0from 0", "\0from 1", "\0from 2"] and worker["devices"] == "cpu:2"
        assert [tuple(at) for at in worker["at"]] == here
    cores = [core for worker in workers for core in worker["cores"]]
    assert set(cores) == os.sched_getaffinity(0) or len(os.sched_getaffinity(0)) > 3 * len(set(cores))
    assert len(cores) <= max(3, len(os.sched_getaffinity(0)))


@with_module
def test_who_does_not_join_is_named():
    [printed], _ = finish(start("""
        import headrace as hr
        try:
            hr.open_world(start_timeout=1)
        except hr.DeviceError as error:
            print(error.code, error)
    """, ranks=[0]))
    assert printed.startswith("timeout ") and "after 1 s there is no worker 1" in printed, printed


@with_module
def test_a_lost_worker_is_named_with_its_host():
    processes = start("""
        import os
        import headrace as hr
        workers = hr.open_world(start_timeout=60)
        if workers.rank == 1:
            os._exit(3)
        try:
            workers.all_gather(b"")
        except hr.DeviceError as error:
            print(error.code, error)
    """)
    printed, statuses = finish(processes)
    assert statuses == [0, 3]
    assert f"worker 1 ({socket.gethostname()}, process {processes[1].pid})" in printed[0], printed
    assert printed[0].startswith("cancelled"), printed


@with_module
def test_an_exception_of_one_is_told_to_all():
    printed, statuses = finish(start("""
        import headrace as hr
        workers = hr.open_world(start_timeout=60)
        if workers.rank == 1:
            raise ValueError("the kettle boils")
        workers.all_gather(b"")
    """), seconds=30)
    assert statuses == [1, 1]
    assert "worker 1 (" in printed[0] and "failed: ValueError: the kettle boils" in printed[0], printed


@with_module
def test_abort_says_why():
    printed, _ = finish(start("""
        import time
        import headrace as hr
        workers = hr.open_world(start_timeout=60)
        if workers.rank == 0:
            workers.abort("no more data")
        try:
            workers.all_gather(b"")
        except hr.DeviceError as error:
            print(error.message)
    """))
    for text in printed:
        assert "worker 0 (" in text and "no more data" in text, printed


@with_module
def test_ctrl_c_ends_waiting():
    program = """
        import signal, sys
        import headrace as hr
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("begun", flush=True)
        try:
            workers = hr.open_world(start_timeout=60)
            if workers.rank == 1:
                input()
            print("waiting", flush=True)
            workers.all_gather(b"")
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        except (hr.DeviceError, EOFError) as error:
            print(type(error).__name__, error)
    """
    [alone] = start(program, ranks=[0])
    assert alone.stdout.readline() == "begun\n"
    time.sleep(1)
    alone.send_signal(signal.SIGINT)
    assert finish([alone], seconds=30) == (["interrupted\n"], [0])

    port = free_port()
    [first] = start(program, ranks=[0], port=port)
    [second] = start("import headrace as hr, time\nworkers = hr.open_world(start_timeout=60)\ntime.sleep(2)\n"
                     "workers.all_gather(b'')", ranks=[1], port=port)
    assert first.stdout.readline() == "begun\n" and first.stdout.readline() == "waiting\n"
    time.sleep(0.3)
    first.send_signal(signal.SIGINT)
    (mine, others), statuses = finish([first, second], seconds=30)
    assert mine == "interrupted\n" and statuses == [0, 1]
    assert "worker 0 (" in others and "interrupted" in others, others


@with_module
def test_a_forked_process_leaves_the_world_alone():
    printed = run("""
        import gc, os
        import headrace as hr
        workers = hr.open_world(start_timeout=60)
        if (child := os.fork()) == 0:
            try:
                workers.rank
            except hr.ConfigError as error:
                print(error.message, flush=True)
            del workers
            gc.collect()
            os._exit(0)
        os.waitpid(child, 0)
        print(workers.all_gather(b"still here"))
    """)
    for text in printed:
        assert "forked" in text and "[b'still here', b'still here']" in text, printed


# -------------------------------------------------------------------------------------------------------- the trainer

TRAINING = """
    import json, os, sys, tempfile
    from pathlib import Path
    import numpy as np
    import headrace as hr
    from headrace import train

    workers = hr.open_world(start_timeout=60) if "RANK" in os.environ else None
    strategy = train.Strategy(DEVICES, workers=workers)
    random = np.random.default_rng(0)
    labels = random.integers(0, 4, 70)
    images = random.integers(0, 256, (70, 6, 6, 2), dtype=np.uint8)
    images[..., 0] = (images[..., 0] // 4 + 48 * labels[:, None, None]).astype(np.uint8)
    whole = hr.from_arrays({"image": images, "label": labels})
    data = whole.take(50).shuffle(3).map(hr.flip()).batch(8)
    test = whole.skip(50).batch(6)

    def model_of(batches=data):
        model = strategy.build(lambda g: g.dense(g.dropout(g.flatten(g.input("image")), 0.2), 4), data=batches, seed=1)
        model.compile(train.adam(1e-2), metrics=["accuracy", "top_2"])
        return model

    def figures(history):
        return {name: history[name] for name in ("loss", "accuracy", "val_loss", "val_accuracy")}
"""

TRAIN = TRAINING + """
    calls = []
    class Counting:
        def on_epoch_end(self, report, control):
            calls.append((report.epoch, report.loss))
    told = []
    scratch = Path(tempfile.mkdtemp())
    model = model_of()
    history = model.fit(data, epochs=2, validation=test, seed=5, checkpoints=scratch / "ckpt",
                        callbacks=[Counting(), train.csv_logger(scratch / "log.csv"),
                                   train.on_chief(lambda report, control: told.append(report.epoch))])
    model.check_mirrored()
    predictions = model.predict(test)
    evaluated = model.evaluate(test)
    print(json.dumps({
        "weights": model.weights_sha256(), "history": figures(history), "calls": calls, "told": told,
        "files": sorted(path.name for path in scratch.iterdir()), "predictions": predictions.values.tolist(),
        "records": predictions.records.tolist(), "evaluated": [evaluated[name] for name in ("loss", "accuracy", "examples")],
        "strategy": [strategy.world_replicas, strategy.local_replicas, strategy.first_replica, strategy.is_chief],
        "same": strategy.workers is workers}))
"""


def one_process(python, text, devices):
    done = python(textwrap.dedent(text).replace("DEVICES", repr(devices)),
                  env={name: value for name, value in variables(0, 1, 0).items() if not LAUNCHERS.match(name)})
    assert done.returncode == 0, done.stdout
    return json.loads(done.stdout.splitlines()[-1])


@with_module
@pytest.mark.parametrize("count, local", [(2, 1), (2, 2)])
def test_a_training_is_that_of_one_process(python, count, local):
    alone = one_process(python, TRAIN, f"cpu:{count * local}")
    printed = run(TRAIN.replace("DEVICES", repr(f"cpu:{local}")), count=count)
    workers = [json.loads(text.splitlines()[-1]) for text in printed]
    for rank, worker in enumerate(workers):
        for name in ("weights", "history", "predictions", "records", "evaluated"):
            assert worker[name] == alone[name], name
        assert worker["strategy"] == [count * local, local, rank * local, rank == 0] and worker["same"]
        assert worker["calls"] == alone["calls"], "on every worker"
        assert worker["told"] == ([0, 1] if rank == 0 else [])
        assert worker["files"] == (["ckpt", "log.csv"] if rank == 0 else [])
    assert printed[0].startswith(f"MultiWorkerMirroredStrategy over {', '.join(f'cpu:{i}' for i in range(local))} on each of "
                                 f"{count} workers\nNumber of devices: {count * local}\n"), printed[0]
    assert len(printed[1].splitlines()) == 1, "the chief alone prints"


CONTINUED = TRAINING + """
    mine = Path(FOLDER) if strategy.is_chief else Path(tempfile.mkdtemp())  # the others do not see the chief's
    model = model_of()
    model.fit(data, epochs=2, validation=test, seed=5, verbose=0, checkpoints=mine, resume=True, stop_after_steps=STEPS)
    print(json.dumps({"weights": model.weights_sha256(), "step": model.global_step, "files": len(list(mine.iterdir()))}))
"""


@with_module
def test_a_training_goes_on_from_the_chiefs_checkpoints(python, tmp_path):
    def program(folder, steps):
        return CONTINUED.replace("FOLDER", repr(str(tmp_path / folder))).replace("STEPS", str(steps))

    whole = one_process(python, program("whole", 0), "cpu:2")
    for steps in (3, 0):  # stopped within an epoch
        workers = results(program("parts", steps).replace("DEVICES", "'cpu'"))
        assert [worker["step"] for worker in workers] == ([3, 3] if steps else [14, 14])
        assert workers[0]["files"] and not workers[1]["files"]
    assert {worker["weights"] for worker in workers} == {whole["weights"]}


@with_module
def test_workers_that_differ_are_refused():
    printed = run(TRAINING.replace("DEVICES", "'cpu'") + """
    model = model_of()
    try:
        model.fit(data if strategy.is_chief else whole.batch(7), verbose=0)
    except hr.ConfigError as error:
        print(error.message)
    """)
    for text in printed:
        assert "the workers differ in their" in text and "of worker 1" in text, printed


@with_module
def test_an_exception_of_a_callback_ends_all():
    printed, statuses = finish(start(TRAINING.replace("DEVICES", "'cpu'") + """
    def boil(report, control):
        if report.epoch == 1 and not strategy.is_chief:
            raise ValueError("the kettle boils")
    model_of().fit(data, epochs=1000, verbose=0, callbacks=[boil])
    """), seconds=60)
    assert statuses == [1, 1]
    assert "headrace.DeviceError: " in printed[0] and "worker 1 (" in printed[0] and "the kettle boils" in printed[0], printed
    assert printed[1].rstrip().endswith("ValueError: the kettle boils"), printed


@with_module
def test_a_worker_that_is_killed_in_a_fit_is_named():
    processes = start(TRAINING.replace("DEVICES", "'cpu'") + """
    import os, signal
    def die(report, control):
        if report.epoch == 1 and not strategy.is_chief:
            os.kill(os.getpid(), signal.SIGKILL)
    try:
        model_of().fit(data, epochs=1_000_000, verbose=0, callbacks=[die])
    except hr.DeviceError as error:
        print(error.message)
    """)
    printed, statuses = finish(processes, seconds=60)
    assert statuses == [0, -signal.SIGKILL]
    assert f"worker 1 ({socket.gethostname()}, process {processes[1].pid})" in printed[0], printed


def test_one_of_several_is_told_how_to_join(launched):
    from headrace import train

    with pytest.raises(hr.ConfigError, match="rank 1 of 3 workers") as refused:
        train.Strategy("cpu", announce=False)
    assert "Strategy(workers=headrace.open_world())" in refused.value.hint
    alone = train.Strategy("cpu:2", announce=False, standalone=True)
    assert (alone.world_replicas, alone.local_replicas, alone.first_replica, alone.is_chief) == (2, 2, 0, True)
    assert alone.workers is None


@with_module
def test_the_example_is_one_program(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (80, 8, 8), dtype=np.uint8)
    labels = np.arange(80) % 4
    for split in ("train", "t10k"):
        for name, values in (("images-idx3", images), ("labels-idx1", labels)):
            header = bytes([0, 0, 8, values.ndim]) + b"".join(extent.to_bytes(4, "big") for extent in values.shape)
            (tmp_path / f"{split}-{name}-ubyte").write_bytes(header + values.astype(np.uint8).tobytes())
    arguments = [EXAMPLE, "--data", tmp_path, "--records", "80", "--devices"]
    [alone], _ = finish(start([*arguments, "cpu:2"], count=1))
    first, second = run([*arguments, "cpu"])
    figures = [line for line in first.splitlines() if line.startswith(("test", "weights"))]
    assert len(figures) == 2 and figures == alone.splitlines()[-2:], (alone, first)
    assert second == ""


# ------------------------------------------------------------------------------------------------------- their loaders


def test_loaders_of_all_workers_give_each_record_once(launched):
    """And read no other's: a source of one's own is asked for nothing else."""
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


def test_the_world_of_a_loader_is_checked(data):
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
        workers = hr.open_world(start_timeout=60)
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
