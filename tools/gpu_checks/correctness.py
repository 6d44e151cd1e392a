"""Parts that check results: unit and conformance tests on the GPU, and compute-sanitizer on its kernels' conformance tests."""
import re

from gpu_checks.gtest import short_tests
from gpu_checks.machine import find_tool
from gpu_checks.runner import together
from gpu_checks.test_runs import SHARDS, filtered, plans_apart, run_tests

KERNELS = "kernels"  # the block of the list that the sanitizers run
SLOWED = 40  # a test under compute-sanitizer takes up to so many times as long


def tests(check):
    return run_tests(check)


def conformance(check):
    return run_tests(check, KERNELS)


def sanitizer_errors(text):
    """The number of errors compute-sanitizer counts in its last line; None when it did not come so far."""
    found = re.findall(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)", text)
    return sum(int(number) for number in found[-1] if number) if found else None


def sanitizer_findings(text):
    """The number of findings printed so far: all there is of one that was stopped."""
    return len(re.findall(r"^========= (?:Invalid|Misaligned|Error:|Warning:|Race|Barrier|Divergent|Program hit)", text,
                          re.MULTILINE))


def sanitizer(tool):
    """The part that runs the short ones of the kernels' tests that passed under compute-sanitizer's `tool`."""
    def part(check):
        program = find_tool("compute-sanitizer", "/usr/local/cuda/compute-sanitizer", "/opt/nvidia/compute-sanitizer")
        if program is None:
            return {"skipped": "no compute-sanitizer on this machine"}
        # Tests provoke errors of the API to see them handled; those are no findings.
        words = [program, "--tool", tool, "--error-exitcode", "86", "--print-limit", "20",
                 *(["--report-api-errors", "no"] if tool == "memcheck" else [])]
        run = check.tests.get(f"{KERNELS}@{check.machine.device}")
        short = short_tests(run.verdicts.values(), check.runner.left() * SHARDS / SLOWED) if run else []
        if not short:
            return {"failed": "no test is short enough for it, or none passed: the part `tests` has to run before"}
        shares = [short[number::SHARDS] for number in range(min(SHARDS, len(short)))]
        result, failed = {"tests": len(short), "passed": 0, "errors": 0}, []

        def shard(number, names):
            name = f"{tool}-{number}"
            folder = check.machine.work / "shards" / name
            flags = filtered(folder, names)
            outcome = yield from check.running(name, [*words, run.program, flags], folder=folder,
                                               environment=plans_apart(check))
            errors = sanitizer_errors(outcome.output)
            found = sanitizer_findings(outcome.output) if errors is None else errors
            result["passed"] += len(re.findall(r"^\[       OK \]", outcome.output, re.MULTILINE))
            result["errors"] += found
            if found:
                failed.append(f"{found} errors, see {name}.log")
            elif outcome.why or errors is None:
                failed.append(f"{name}: {outcome.why or 'it gave no summary'}")
            check.record(result)
        together([shard(number, names) for number, names in enumerate(shares)], SHARDS)
        return result | ({"failed": "; ".join(failed)} if failed else {})
    return part
