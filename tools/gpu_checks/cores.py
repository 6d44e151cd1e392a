"""The part that measures the engine on this machine's processors: how its rate grows with threads."""
import os

from gpu_checks.machine import Missing

THREADS = (1, 2, 4, 8, 16)
SOME = (1, 4, 16)
ENDS = (1, 16)


def loads(check):
    """(name, words of `bench input`, threads): photographs, their first pass, bare libjpeg beside them, CIFAR-10, and batches
    whose records cost nothing."""
    if check.machine.photographs is not None:
        jpegs = ["--pipeline", "jpeg-train", "--data", check.machine.photographs, "--global-batch", "64"]
        yield "jpeg-train", [*jpegs, "--seconds", "2", "--warm-up", "5"], THREADS
        yield "jpeg-train-first-pass", [*jpegs, "--first-pass"], ENDS
        yield "jpeg-train-libjpeg", [*jpegs, "--seconds", "4", "--warm-up", "5", "--baseline"], ENDS
    if check.machine.data is not None:
        yield "cifar-train", ["--pipeline", "cifar-train", "--data", check.machine.data, "--cache", "memory", "--seconds", "2",
                              "--warm-up", "5"], SOME
    yield "batches", ["--pipeline", "trivial", "--seconds", "2"], SOME


def cores(check):
    """Rows of load, threads and images a second; a load that failed costs no other."""
    result, failed = {"processors": os.cpu_count(), "rows": []}, []
    for name, words, counts in loads(check):
        for threads in counts:
            if threads > (os.cpu_count() or 1):
                continue
            outcome, lines = check.headrace(f"cores-{name}-{threads}", "bench", "input", *words, "--devices", "cpu:1", "--threads",
                                            str(threads))
            if outcome.why or not lines:
                failed.append(f"{name} on {threads}: {outcome.why or 'no line'}")
            else:
                result["rows"].append({"load": name, "threads": threads, **lines[-1]})
            check.record(result)
    if check.machine.photographs is None and not failed:
        raise Missing("no photographs: give --photographs ARCHIVE, here or to tools/bundle")
    return result | ({"failed": "; ".join(failed)} if failed else {})
