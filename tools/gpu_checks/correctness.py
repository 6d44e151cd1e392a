"""Parts that check results: unit and conformance tests on the GPU, and compute-sanitizer on the short ones."""
import re

from gpu_checks.gtest import counts, short_tests
from gpu_checks.machine import Missing, find_tool
from gpu_checks.test_runs import file_name, run_tests

SLOWED = 40  # a test under compute-sanitizer takes up to so many times as long
MAX_NAMES = 400  # of tests on a command line
# What shares a GPU waits for kernels of another stream, which a sanitizer may run one after the other.
SANITIZED = re.compile("@cuda$|test_train@cuda:[0-9]+$")


def sanitizer_errors(text):
    """The number of errors compute-sanitizer counts in its last line; None when it did not come so far."""
    found = re.findall(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)", text)
    return sum(int(number) for number in found[-1] if number) if found else None


def sanitizer_findings(text):
    """The number of findings printed so far: all there is of one that was stopped."""
    return len(re.findall(r"^========= (?:Invalid|Misaligned|Error:|Warning:|Race|Barrier|Divergent|Program hit)", text,
                          re.MULTILINE))


def tests(check):
    """Every run in its share of the time, of which an early one may take twice its own."""
    runs = check.machine.test_runs()
    if not runs:
        raise Missing("no test program with tests for a GPU: pack them with tools/bundle, or build them")
    result, failed = {}, []
    for left, run in zip(range(len(runs), 0, -1), runs):
        so_far = lambda verdicts: result | {run.name: counts(list(verdicts.values()))}
        with check.runner.at_most(check.runner.left() * 2 / (left + 1)):
            verdicts, whys, skips, missing = run_tests(check, run, so_far)
        check.tests[run.name] = (run, list(verdicts.values()))
        one = counts(check.tests[run.name][1]) | {"skips": skips, "ended_early": whys, "not_run": missing}
        result[run.name] = one
        failed += [f"{run.name}: {why}" for why in whys]
        if hard := [test["test"] for test in one["failures"] if test["result"] == "failed"]:
            failed.append(f"{run.name}: {len(hard)} tests failed, the first {hard[0]}")
        elif missing and not whys:
            failed.append(f"{run.name}: {len(missing)} tests did not run, the first {missing[0]}")
        elif not one["ran"] and not whys:
            failed.append(f"{run.name}: not one test ran, {one['skipped']} were skipped: {'; '.join(skips)}")
        check.record(result)
    return result | ({"failed": "; ".join(failed)} if failed else {})


def sanitized(output, short):
    """What is known of a run under compute-sanitizer by what it printed so far."""
    errors = sanitizer_errors(output)
    return {"tests": len(short), "passed": len(re.findall(r"^\[       OK \]", output, re.MULTILINE)),
            "errors": sanitizer_findings(output) if errors is None else errors}


def sanitizer(tool):
    """The part that runs the short tests that passed under compute-sanitizer's `tool`."""
    def part(check):
        program = find_tool("compute-sanitizer", "/usr/local/cuda/compute-sanitizer", "/opt/nvidia/compute-sanitizer")
        if program is None:
            return {"skipped": "no compute-sanitizer on this machine"}
        # Tests provoke errors of the API to see them handled; those are no findings.
        words = [program, "--tool", tool, "--error-exitcode", "86", "--print-limit", "20",
                 *(["--report-api-errors", "no"] if tool == "memcheck" else [])]
        chosen = [pair for name, pair in check.tests.items() if SANITIZED.search(name)]
        result, failed = {}, []
        for left, (run, done) in zip(range(len(chosen), 0, -1), chosen):
            name = f"{tool}-{file_name(run)}"
            with check.runner.at_most(check.runner.left() / left):
                short = short_tests(done, check.runner.left() / SLOWED)[:MAX_NAMES]
                if not short:
                    result[run.name] = {"tests": 0}
                    continue
                outcome = check.run(name, [*words, run.program, "--gtest_filter=" + ":".join(short)],
                                    environment=run.environment,
                                    partial=lambda output: result | {run.name: sanitized(output, short)})
            one = result[run.name] = sanitized(outcome.output, short) | {"seconds": outcome.seconds}
            if one["errors"]:
                failed.append(f"{run.name}: {one['errors']} errors, see {name}.log")
            elif outcome.why:
                failed.append(f"{run.name}: {outcome.why}")
            elif sanitizer_errors(outcome.output) is None:
                failed.append(f"{run.name}: {tool} gave no summary, see {name}.log")
            check.record(result)
        if not any(one["tests"] for one in result.values()):
            failed.append("no test is short enough for it, or none passed: the part `tests` has to run before")
        return result | ({"failed": "; ".join(failed)} if failed else {})
    return part
