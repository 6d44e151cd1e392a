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
    skipped = [test for test in tests if test["result"] == "SKIPPED"]
    reasons = {part["message"].split("\n", 1)[-1].strip() for test in skipped for part in test.get("skipped", [])}
    failed = [f"{test['classname']}.{test['name']}" for test in tests if "failures" in test]
    print(f"{len(tests)} tests, {len(skipped)} skipped: {reasons}")
    if run.returncode != 0 or failed:
        sys.exit(f"failed with {run.returncode}: {failed}\n{run.stdout[-4000:]}{run.stderr[-4000:]}")
    if len(reasons) != 1:
        sys.exit(f"{len(reasons)} reasons for one missing device: {reasons}")
    if len(skipped) < min_skipped:
        sys.exit(f"{len(skipped)} tests were skipped, {min_skipped} or more ask for devices")


main()
