"""Threads, signals, processes and the end of the interpreter."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest

import headrace as hr

ENDLESS = """
    import headrace as hr, numpy as np, time
    def slow(index):
        time.sleep(3600)
        return {"x": np.int64(index)}
    loader = hr.Loader(hr.from_function(slow, 100, fields={"x": "int64"}).batch(4))
"""


@pytest.fixture
def interrupts():
    """As in a terminal: shells start background jobs with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_works_while_next_waits(interrupts):
    def slow(index):
        release.wait(20)
        return {"x": np.int64(index)}

    release = threading.Event()
    loader = hr.Loader(hr.from_function(slow, 100, fields={"x": "int64"}).batch(4))
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        loader.next()
    assert time.monotonic() - began < 5
    release.set()
    assert loader.next()["x"].numpy().tolist() == [0, 1, 2, 3], "the batch is there for the next call"


# What the first record that is judged says goes out at once; a whole pass would take days.
JUDGING = """
    import signal, sys, time
    import numpy as np
    import headrace as hr

    def keep(sample):
        sys.stdout.write("judging\\n")
        sys.stdout.flush()
        time.sleep({seconds})
        return True

    signal.signal(signal.SIGINT, signal.default_int_handler)
    numbers = hr.from_arrays({{"x": np.arange(1_000_000)}})
    plan = numbers.filter(keep, name="keep").batch(10)
    try:
        {waits}
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.parametrize("seconds", [0.5, 3600])
@pytest.mark.parametrize("waits", [
    "hr.Loader(plan)",
    "len(plan)",
    "hr.zip(numbers.filter(keep, name='keep'), numbers, suffixes=['', '_2'], strict=False)",
])
def test_ctrl_c_ends_a_pass_over_all_records(waits, seconds):
    program = textwrap.dedent(JUDGING).format(waits=waits, seconds=seconds)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as process:
        try:
            assert process.stdout.readline() == "judging\n"
            process.send_signal(signal.SIGINT)
            printed, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert printed.replace("judging\n", "") == "interrupted\n" and process.returncode == 0, printed


def test_a_pass_that_was_interrupted_begins_again(interrupts):
    def slow(sample):
        judged.set()
        release.wait(20)
        return sample["x"] % 2 == 0

    judged, release = threading.Event(), threading.Event()
    plan = hr.from_arrays({"x": np.arange(100)}).filter(slow, name="even").batch(10)
    threading.Thread(target=lambda: judged.wait(20) and os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        len(plan)
    release.set()
    assert len(plan) == 5
    assert next(iter(hr.Loader(plan)))["x"].numpy().tolist() == list(range(0, 20, 2))


def test_the_gil_is_released_while_next_waits():
    """Another thread of Python goes on, and so does what makes the batch."""
    counted = threading.Event()

    def waits_for_the_other(index):
        assert counted.wait(20), "the other thread did not run"
        return {"x": np.int64(index)}

    loader = hr.Loader(hr.from_function(waits_for_the_other, 8, fields={"x": "int64"}).batch(4))
    threading.Timer(0.1, counted.set).start()
    assert loader.next()["x"].numpy().tolist() == [0, 1, 2, 3]


def test_two_threads_take_the_batches_of_two_replicas(augmented):
    loader = hr.Loader(augmented, devices="cpu:2", epochs=20)
    taken = [0, 0]

    def consume(replica):
        while (batch := loader.next(replica)) is not None:
            taken[replica] += batch.examples

    threads = [threading.Thread(target=consume, args=(replica,)) for replica in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(taken) == 2000


def test_threads_that_share_a_replica_take_each_batch_once(augmented):
    loader = hr.Loader(augmented, epochs=20)
    steps = []

    def consume():
        while (batch := loader.next()) is not None:
            steps.append(batch.sequence)

    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(steps) == list(range(140))


def test_closed_while_another_thread_waits():
    release = threading.Event()

    def slow(index):
        release.wait(20)
        return {"x": np.int64(index)}

    loader = hr.Loader(hr.from_function(slow, 100, fields={"x": "int64"}).batch(4))
    errors = []

    def consume():
        try:
            loader.next()
        except hr.HeadraceError as error:
            errors.append(error.code)

    thread = threading.Thread(target=consume)
    thread.start()
    time.sleep(0.2)
    loader.close()
    thread.join(10)
    release.set()
    assert errors == ["cancelled"]


def test_who_keeps_batches_does_not_stop_the_engine(augmented):
    kept = list(hr.Loader(augmented, epochs=None, prefetch=1).replica(0))
    kept += list(hr.Loader(augmented, epochs=5).all_epochs())
    assert len(kept) == 7 + 35
    again = np.concatenate([batch["image"].numpy() for batch in hr.Loader(augmented)])
    np.testing.assert_array_equal(np.concatenate([batch["image"].numpy() for batch in kept[:7]]), again)


def test_memory_that_is_given_back_serves_later_batches(data):
    """A loop that lets go of its batches sees the same few pieces of memory again and again."""
    places = {batch["image"].data_ptr for batch in hr.Loader(data.batch(1).prefetch(2))}
    assert len(places) <= 6


def resources():
    gc.collect()
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def careless(augmented, number):
    """Dropped in whatever state it is: not begun, in mid-epoch, with batches that are still held."""
    loader = hr.Loader(augmented, threads=2, prefetch=1 + number % 3)
    held = [loader.next() for _ in range(number % 3)]
    exported = [np.from_dlpack(batch["image"]) for batch in held]
    if number % 5 == 0:
        loader.close()
    return len(exported)


def test_a_thousand_loaders_leave_nothing_behind(augmented):
    for number in range(300):
        careless(augmented, number)
    memory, threads, files = resources()
    for number in range(300, 1000):
        careless(augmented, number)
    after = resources()
    assert after[0] < memory + (8 << 20)
    workers = os.cpu_count() + 1  # oneTBB's, which start when they are first needed
    assert after[1] <= threads + workers and after[2] == files


def test_functions_are_let_go_of(data):
    class Callable:
        def __call__(self, sample):
            return {"image": sample["image"]}

    function = Callable()
    gone = weakref.ref(function)
    plan = data.map(hr.function(function, name="f")).batch(10)
    list(hr.Loader(plan))
    del function, plan
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("program", [
    "import headrace as hr, numpy as np\n"
    "loader = hr.Loader(hr.from_arrays({'x': np.arange(100000)}).batch(3), epochs=None)\n"
    "batch = loader.next(); array = batch['x'].numpy(); print('done')",
    "import headrace as hr, numpy as np, threading\n"
    "loader = hr.Loader(hr.from_function(lambda i: {'x': np.int64(i)}, 100000, fields={'x': 'int64'}).batch(3),"
    " epochs=None, threads=3)\n"
    "[loader.next() for _ in range(50)]; print('done')",
    "import headrace as hr, numpy as np, threading\n"
    "loader = hr.Loader(hr.from_function(lambda i: {'x': np.int64(i)}, 100000, fields={'x': 'int64'}).batch(3),"
    " epochs=None)\n"
    "threading.Thread(target=lambda: [None for _ in iter(loader.next, None)], daemon=True).start()\n"
    "import time; time.sleep(0.3); print('done')",
])
def test_the_interpreter_ends_with_loaders_at_work(python, program):
    for _ in range(3):
        done = python(program)
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout


def test_a_call_that_hangs_does_not_keep_the_interpreter(python):
    began = time.monotonic()
    done = python(ENDLESS + "\n    import threading; threading.Timer(0.3, lambda: None).start(); print('done')")
    assert done.returncode == 0 and "done" in done.stdout, done.stdout
    assert time.monotonic() - began < 30


ENDS = """
    import sys, time, numpy as np, headrace as hr
    class Noted:
        def __del__(self):
            print("deleted", flush=True)
            time.sleep({pause})
    noted = Noted()
    log = open("log.txt", "w")
    log.write("text")
    ten = hr.from_arrays({{"x": np.arange(10)}})
    def busy(sample):
        end = time.time() + 60
        while time.time() < end:
            time.sleep(0.005)
    {program}
"""


@pytest.mark.parametrize("program", [
    "data = ten.map(lambda s: {'x': s['x'] + 1}).batch(2)",
    "data = ten.filter(lambda s: s['x'] > 3).batch(2); len(data)",
    "data = ten.batch(2).map(hr.function(lambda s: s, batched=True)); loader = hr.Loader(data); loader.next()",
    "data = hr.from_function(lambda i: {'x': np.int64(i)}, 99).batch(2); loader = hr.Loader(data); batch = loader.next()",
    "data = hr.from_generator(lambda: iter([{'x': np.int64(1)}])).batch(1); loader = hr.Loader(data); batch = loader.next()",
    "data = ten.map(lambda s: s).batch(2); sys.exit(3)",
    "data = ten.map(lambda s: s).batch(2); raise ValueError()",
    "from headrace import train; rate = train.learning_rate_scheduler(lambda epoch: 0.1)",
], ids=range(8))
def test_a_program_that_ends_deletes_its_variables(python, program, tmp_path):
    done = python(ENDS.format(program=program, pause=0), cwd=tmp_path)
    assert (tmp_path / "log.txt").read_text() == "text" and "deleted" in done.stdout, done.stdout
    assert done.returncode == (3 if "exit" in program else 1 if "raise" in program else 0)


@pytest.mark.parametrize("plan", [
    "ten.map(hr.function(busy, outputs={'x': 'int64'}))", "hr.from_function(busy, 10, fields={'x': 'int64'})",
    "hr.from_generator(lambda: iter(lambda: busy(0), 1), fields={'x': 'int64'})",
], ids=["map", "function", "generator"])
def test_a_function_left_to_itself_ends_with_the_interpreter(python, plan, tmp_path):
    """Its thread wants the interpreter's lock again and again, while the interpreter takes its time to end."""
    program = f"loader = hr.Loader({plan}.batch(2), stall_timeout_seconds=0.1)\n    try:\n        loader.next()\n" \
              "    except hr.HeadraceError as error:\n        print(error.code)\n    late = [Noted()]; late.append(late)"
    done = python(ENDS.format(program=program, pause=0.2), cwd=tmp_path)
    assert done.returncode == 0 and "timeout" in done.stdout and (tmp_path / "log.txt").read_text() == "text", done.stdout


@pytest.mark.parametrize("make", [
    lambda owner: hr.from_function(owner.make, 10), lambda owner: hr.from_torch_dataset(owner),
    lambda owner: hr.from_generator(owner.give), lambda owner: hr.from_arrays({"x": np.arange(10)}).map(owner.change),
    lambda owner: hr.from_arrays({"x": np.arange(10)}).filter(owner.keep),
    lambda owner: hr.concatenate(hr.from_function(owner.make, 10), hr.from_function(owner.make, 10)).map(owner.change),
], ids=range(6))
@pytest.mark.parametrize("runs", [False, True])
def test_cycles_through_a_plan_are_collected(make, runs):
    class Owner:
        def make(self, index):
            return {"x": np.int64(index)}

        __getitem__ = make

        def __len__(self):
            return 10

        def give(self):
            yield {"x": np.int64(1)}

        def change(self, sample):
            return {"x": sample["x"] + 1}

        def keep(self, sample):
            return True

    owner = Owner()
    gone = weakref.ref(owner)
    owner.data = make(owner).batch(2)
    if runs and not owner.data.streamed:  # a running stream is held until it is closed
        owner.loader = hr.Loader(owner.data, epochs=None)
        owner.batch = owner.loader.next()
    del owner
    gc.collect()
    assert gone() is None


def test_forked_processes_are_told_to_fork_earlier(python):
    done = python("""
        import headrace as hr, numpy as np, os, sys
        loader = hr.Loader(hr.from_arrays({"x": np.arange(1000)}).batch(4))
        held = loader.next()
        child = os.fork()
        if child == 0:
            try:
                loader.next()
            except hr.HeadraceError as error:
                print(error.code, error, flush=True)
            del held
            loader.close()
            sys.exit(7)  # with all that is done at the end of the interpreter
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        print(loader.next()["x"].numpy())
    """)
    assert done.returncode == 0, done.stdout
    assert "unsupported the loader was started before fork()" in done.stdout and "[4 5 6 7]" in done.stdout


def test_fork_before_the_first_loader(python):
    done = python("""
        import headrace as hr, numpy as np, os
        plan = hr.from_arrays({"x": np.arange(1000)}).batch(100)
        for _ in range(2):
            child = os.fork()
            if child == 0:
                os._exit(10 if sum(batch.examples for batch in hr.Loader(plan)) == 1000 else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 10
        print("done")
    """)
    assert "done" in done.stdout, done.stdout


def test_spawned_processes_read_the_plan(tmp_path, python):
    np.savez(tmp_path / "data.npz", x_train=np.arange(64, dtype=np.uint8).reshape(16, 2, 2), y_train=np.arange(16))
    script = tmp_path / "spawned.py"
    script.write_text("""
import multiprocessing, sys
import headrace as hr

def digest(plan, rank):
    return [batch["label"].numpy().tolist() for batch in hr.Loader(plan, world=(2, rank))]

if __name__ == "__main__":
    plan = hr.open(sys.argv[1]).shuffle(1).batch(4)
    hr.Loader(plan).next()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        first, second = pool.starmap(digest, [(plan, 0), (plan, 1)])
    print(sorted(sum(first + second, [])) == list(range(16)))
""")
    done = subprocess.run([sys.executable, script, tmp_path / "data.npz"], timeout=120, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.stdout.endswith("\nTrue\n") and done.stdout.count("headrace: reading") == 1, done.stdout
