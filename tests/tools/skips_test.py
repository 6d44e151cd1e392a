"""Without a GPU, a suite that is sent to one skips: every test that asks for devices, all with one reason. And these are the
tests that tools/gpu_checks/gpu_tests.txt has for a machine with a GPU.

    skips_test.py PROGRAM MIN_SKIPPED [OPTION ...]     options of GoogleTest; without any, the list's tests alone
"""
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from gpu_checks.test_runs import LIST, blocks, matches, results_of

MIN_ASKING = 0.8  # of the list's tests


def wrong_in_list(patterns, tests, asking):
    """What the list lacks, names for nothing, or has too much of. asking: names of tests that asked for a GPU."""
    on_list = [test for test in tests if any(matches(pattern, test["name"]) for pattern in patterns)]
    skipped = [test["name"] for test in tests if test["result"] == "skipped"]  # some for want of data
    wrong = [f"{name} asks for a GPU and is not on the list" for name in asking if name not in {test["name"] for test in on_list}]
    wrong += [f"'{pattern}' is on the list, and none of its tests asks for a GPU" for pattern in patterns
              if not any(matches(pattern, name) for name in skipped)]
    ran = [test["name"] for test in on_list if test["result"] != "skipped"]
    if len(ran) > (1 - MIN_ASKING) * len(on_list):
        wrong.append(f"{len(ran)} of the list's {len(on_list)} tests ask for no GPU, among them {ran[:20]}")
    return wrong


def main():
    program, min_skipped, options = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    patterns = [pattern for _, of, devices, wanted in blocks(LIST.read_text()) for pattern in wanted.split(":")
                if of == pathlib.Path(program).name and devices == "taken"]
    environment = dict(os.environ, HEADRACE_TEST_DEVICES="cuda:0", HEADRACE_CUDA_MODULE="/nowhere/libheadrace_cuda.so")
    run = subprocess.run([program, *(options or [f"--gtest_filter={':'.join(patterns)}"])], env=environment, capture_output=True, text=True)
    tests = results_of(run.stdout)
    # Other tests may lack something else: data, a user who is not root.
    found = re.findall(r": Skipped\n(HEADRACE_TEST_DEVICES.*)\n(?:(?!\[ ).*\n)*\[  SKIPPED \] ([^\s,]+)", run.stdout)
    reasons, asking = {reason for reason, _ in found}, [name for _, name in found]
    failed = [test["name"] for test in tests if test["result"] in ("failed", "unfinished")]
    print(f"{len(tests)} tests, {len(asking)} skipped: {reasons}")
    if run.returncode != 0 or failed:
        sys.exit(f"failed with {run.returncode}: {failed}\n{run.stdout[-4000:]}{run.stderr[-4000:]}")
    if len(reasons) != 1:
        sys.exit(f"{len(reasons)} reasons for one missing device")
    if len(asking) < min_skipped:
        sys.exit(f"{len(asking)} tests were skipped, {min_skipped} or more ask for devices")
    if wrong := wrong_in_list(patterns, tests, asking):
        sys.exit(f"{LIST}: " + "\n".join(wrong))


main()
