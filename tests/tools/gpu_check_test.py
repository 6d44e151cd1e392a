#!/usr/bin/env python3
"""tools/gpu_check without a GPU: what it reads, sums up and stops, and whole runs over programs that only pretend.

  HEADRACE_BUILD=build/release gpu_check_test.py [gpu_check.runner_test ...]
"""
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools")]


if __name__ == "__main__":
    loader, names = unittest.defaultTestLoader, sys.argv[1:]
    tests = loader.loadTestsFromNames(names) if names else loader.discover(str(HERE / "gpu_check"), "*_test.py", str(HERE))
    sys.exit(not unittest.TextTestRunner(verbosity=2 if names else 1).run(tests).wasSuccessful())
