"""Several workers: what their launcher says, and what they tell each other."""

import os
import signal
import socket
import time

import pytest

import headrace as hr
from worker_processes import finish, free_port, results, run, start, with_module


def test_a_process_alone_has_no_world(unlaunched):
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


@with_module
def test_workers_know_each_other():
    workers = results("""
        import json, os
        import headrace as hr
        workers = hr.open_world(start_timeout_seconds=60)
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
            hr.open_world(start_timeout_seconds=1)
        except hr.DeviceError as error:
            print(error.code, error)
    """, ranks=[0]))
    assert printed.startswith("timeout ") and "after 1 s there is no worker 1" in printed, printed


@with_module
def test_a_lost_worker_is_named_with_its_host():
    processes = start("""
        import os
        import headrace as hr
        workers = hr.open_world(start_timeout_seconds=60)
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
        workers = hr.open_world(start_timeout_seconds=60)
        if workers.rank == 1:
            raise ValueError("the kettle boils")
        workers.all_gather(b"")
    """), seconds=30)
    assert statuses == [1, 1]
    assert "worker 1 (" in printed[0] and "failed: ValueError: the kettle boils" in printed[0], printed


@with_module
def test_a_worker_that_signs_off_makes_no_calls():
    printed = run("""
        import headrace as hr
        workers = hr.open_world(start_timeout_seconds=60, listen="127.0.0.1")
        if workers.rank == 1:
            workers.sign_off()
        try:
            workers.all_gather(b"")
        except hr.HeadraceError as error:
            print(error.message)
    """)
    assert "worker 1 (" in printed[0] and "has left" in printed[0], printed
    assert "this worker has signed off" in printed[1], printed


@with_module
@pytest.mark.parametrize("host", ["http://127.0.0.1", "::1:29500:", "no such host", "no-such-host.invalid"])
def test_an_address_that_cannot_be_is_refused_at_once(launched, host):
    launched.setenv("HEADRACE_COORDINATOR", host + ":29500")
    begin = time.monotonic()
    with pytest.raises(hr.ConfigError, match="HEADRACE_COORDINATOR|the host of worker 0"):
        hr.open_world(start_timeout_seconds=100)
    assert time.monotonic() - begin < 50


@with_module
def test_abort_says_why():
    printed, _ = finish(start("""
        import time
        import headrace as hr
        workers = hr.open_world(start_timeout_seconds=60)
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
            workers = hr.open_world(start_timeout_seconds=60)
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
    [second] = start("import headrace as hr, time\nworkers = hr.open_world(start_timeout_seconds=60)\ntime.sleep(2)\n"
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
        workers = hr.open_world(start_timeout_seconds=60)
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
