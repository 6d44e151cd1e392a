"""Without a GPU, a suite that is sent to one skips: every test that asks for devices, all with one reason.

    skips_test.py PROGRAM MIN_SKIPPED
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def main():
    program, min_skipped = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        environment = dict(os.environ, HEADRACE_TEST_DEVICES="cuda:0", HEADRACE_CUDA_MODULE="/nowhere/libheadrace_cuda.so")
        command = [program, f"--gtest_output=json:{report}", "--gtest_brief=1", *sys.argv[3:]]
        run = subprocess.run(command, env=environment, capture_output=True, text=True)
        suites = json.loads(report.read_text())["testsuites"]
    tests = [test for suite in suites for test in suite["testsuite"]]
    # Other tests may lack something else: data, a user who is not root.
    lines = run.stdout.splitlines()
    reasons = [reason for line, reason in zip(lines, lines[1:])
               if line.endswith(": Skipped") and reason.startswith("HEADRACE_TEST_DEVICES")]
    failed = [f"{test['classname']}.{test['name']}" for test in tests if "failures" in test]
    print(f"{len(tests)} tests, {len(reasons)} skipped: {set(reasons)}")
    if run.returncode != 0 or failed:
        sys.exit(f"failed with {run.returncode}: {failed}\n{run.stdout[-4000:]}{run.stderr[-4000:]}")
    if len(set(reasons)) != 1:
        sys.exit(f"{len(set(reasons))} reasons for one missing device")
    if len(reasons) < min_skipped:
        sys.exit(f"{len(reasons)} tests were skipped, {min_skipped} or more ask for devices")


main()
