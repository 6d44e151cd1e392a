"""Trainings of several workers: those of one process with as many replicas."""

import json
import signal
import socket
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from worker_processes import finish, results, run, start, with_module, without_launcher

EXAMPLE = Path(__file__).resolve().parents[3] / "bindings/python/examples/train_workers.py"

TRAINING = """
    import json, os, sys, tempfile
    from pathlib import Path
    import numpy as np
    import headrace as hr
    from headrace import train

    workers = hr.open_world(start_timeout_seconds=60) if "RANK" in os.environ else None
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
                  env=without_launcher() | {"HEADRACE_CPU_THREADS": "1"})
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
@pytest.mark.parametrize("handled", [True, False])
def test_ctrl_c_of_one_interrupts_all_after_the_same_step(handled):
    first, second = processes = start(TRAINING.replace("DEVICES", "'cpu'") + f"""
    import signal
    signal.signal(signal.SIGINT, signal.default_int_handler)
    def tell(report, control):
        if report.epoch == 1:
            print("under way", flush=True)
    model = model_of()
    try:
        model.fit(data, epochs=1_000_000, verbose=0, callbacks=[tell])
        print("ended", model.global_step)
    except {"KeyboardInterrupt" if handled else "hr.ConfigError"} as error:
        print(error, "at", model.global_step)
    """)
    assert second.stdout.readline() == "under way\n"
    second.send_signal(signal.SIGINT)
    (others, its_own), statuses = finish(processes, seconds=60)
    named = f"worker 1 ({socket.gethostname()}, process {second.pid}) was interrupted: all stopped after step "
    assert named in others, others
    if handled:
        assert statuses == [0, 0] and others.split()[-1] == its_own.split()[-1] in others.split("step ")[1], (others, its_own)
    else:
        assert statuses == [-signal.SIGINT] * 2 and "KeyboardInterrupt" in others and "KeyboardInterrupt" in its_own, others


ONLY_ONE = {
    "nan": 'nan="trace"', "mirror_check_every": "mirror_check_every=5", "resume": "resume=True", "accumulate": "accumulate=2",
    "checkpoints": 'checkpoints="folder"', "checkpoints ": 'checkpoints=train.RecordFile(Path("file"), None, None)', "seed": "seed=9",
    "gradient_norms": "gradient_norms=True", "class_weight": "class_weight=[1, 2, 1, 1]", "epochs": "epochs=3",
    "callbacks": 'callbacks=[train.early_stopping(monitor="loss", patience=1)]', "validation": "validation=test",
    "every_steps": "callbacks=[Every()]", "data": "",
}


@with_module
def test_what_only_one_worker_has_is_named(tmp_path):
    printed = run(TRAINING.replace("DEVICES", "'cpu'") + f"""
    os.chdir({str(tmp_path)!r})
    class Every:
        every_steps = 3
        def on_step(self, report, control):
            pass
    for name, option in {ONLY_ONE!r}.items():
        option = "" if strategy.is_chief else option
        model = model_of()
        mine = whole.take(49).batch(8) if name == "data" and not strategy.is_chief else data
        try:
            eval(f"model.fit(mine, verbose=0, {{option}})")
            print(name, "trained")
        except hr.ConfigError as error:
            print(json.dumps([name, error.message]))
    """)
    assert list(tmp_path.iterdir()) == []
    for text in printed:
        said = dict(json.loads(line) for line in text.splitlines() if line.startswith("["))
        for name in ONLY_ONE:
            assert f"the workers differ in their {name.strip()}: " in said.get(name, ""), (name, said.get(name))


@with_module
@pytest.mark.parametrize("end, status", [("sys.exit(3)", 3), ("pass", 0), ("os.kill(os.getpid(), signal.SIGINT)", -2)])
def test_a_worker_that_leaves_is_named_at_once(end, status):
    begin = time.monotonic()
    printed, statuses = finish(start(TRAINING.replace("DEVICES", "'cpu'") + f"""
    import signal
    signal.signal(signal.SIGINT, signal.default_int_handler)
    model = model_of()
    model.fit(data, verbose=0)
    if strategy.is_chief:
        model.evaluate(test)
    else:
        {end}
    """), seconds=90)
    assert time.monotonic() - begin < 50, "the time for a call is 60 s"
    assert statuses == [1, status], printed
    assert "worker 1 (" in printed[0], printed
    if status >= 0:
        assert "has left" in printed[0] and "(evaluate())" in printed[0], printed


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
