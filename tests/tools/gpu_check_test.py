#!/usr/bin/env python3
"""tools/gpu_check without a GPU: what it reads, sums up and stops, and whole runs over programs that only pretend.

  HEADRACE_BUILD=build/release gpu_check_test.py [gpu_check.runner_test ...]

Several run at a time, each in a folder of its own: most of them wait for limits.
"""
import io
import multiprocessing
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools")]
SLOW_FIRST = "gpu_check.command_test"


def cases(tests):
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            yield from cases(test)
        else:
            yield test


def run(name):
    """What is to be said of the test, and whether it went well."""
    said = io.StringIO()
    result = unittest.TextTestRunner(said, verbosity=0).run(unittest.defaultTestLoader.loadTestsFromName(name))
    return name, result.wasSuccessful(), said.getvalue()


if __name__ == "__main__":
    loader, names = unittest.defaultTestLoader, sys.argv[1:]
    tests = loader.loadTestsFromNames(names) if names else loader.discover(str(HERE / "gpu_check"), "*_test.py", str(HERE))
    ids = sorted((test.id() for test in cases(tests)), key=lambda name: not name.startswith(SLOW_FIRST))
    failed = 0
    with multiprocessing.get_context("fork").Pool((os.cpu_count() or 1) + 1) as pool:
        for name, passed, said in pool.imap_unordered(run, ids):
            if names:
                print("ok " if passed else "not ok ", name, flush=True)
            if not passed:
                failed += 1
                print(said, flush=True)
    print(f"{len(ids)} tests, {failed} failed")
    sys.exit(failed > 0 or not ids)
