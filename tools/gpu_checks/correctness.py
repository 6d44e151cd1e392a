"""Parts that check results: unit and conformance tests on the GPU, and compute-sanitizer on the short ones."""
import json

from gpu_checks.machine import Missing, find_tool
from gpu_checks.readers import sanitizer_errors, short_tests, skip_reasons, test_counts

SUITE_LIMIT = 40  # seconds: one that hangs must leave time for the others
SLOWED = 40  # a test under compute-sanitizer takes up to so many times as long
MOST_NAMES = 400  # of tests on a command line


def run_suites(check, program, filters):
    """Each suite in a process of its own: an error that sticks to the GPU's context spoils no other. (report, whys, skips)"""
    report, whys, skips = {"testsuites": []}, [], {}
    for number, one in enumerate(filters):
        name = f"{program.name}-{number}"
        with check.runner.at_most(SUITE_LIMIT):
            outcome = check.run(name, [program, f"--gtest_filter={one}",
                                       f"--gtest_output=json:{check.runner.logs / name}.json"])
        suite = check.report(f"{name}.json")
        report["testsuites"] += suite.get("testsuites", [])
        for reason, times in skip_reasons(outcome.output).items():
            skips[reason] = skips.get(reason, 0) + times
        if outcome.why and not test_counts(suite)["failed"]:
            whys.append(f"{one}: {outcome.why}")
    (check.runner.logs / f"{program.name}.json").write_text(json.dumps(report))
    return report, whys, skips


def tests(check):
    programs = check.machine.tests()
    if not programs:
        raise Missing("no test program with tests for a GPU: pack them with tools/bundle, or build them")
    result, failed = {}, []
    for program, filters in programs.items():
        report, whys, skips = run_suites(check, program, filters)
        counts = test_counts(report) | {"skips": skips, "ended_early": whys}
        result[program.name] = counts
        failed += [f"{program.name}: {why}" for why in whys]
        if counts["failed"]:
            failed.append(f"{program.name}: {counts['failed']} tests failed, the first {counts['failures'][0]['test']}")
        elif not counts["ran"] and not whys:
            failed.append(f"{program.name}: not one test ran, {counts['skipped']} were skipped: {'; '.join(skips)}")
    return result | ({"failed": "; ".join(failed)} if failed else {})


def sanitizer(tool):
    """The part that runs the short tests that passed under compute-sanitizer's `tool`."""
    def part(check):
        program = find_tool("compute-sanitizer", "/usr/local/cuda/compute-sanitizer", "/opt/nvidia/compute-sanitizer")
        if program is None:
            return {"skipped": "no compute-sanitizer on this machine"}
        result, failed = {}, []
        programs = check.machine.tests()
        for test in programs:
            short = short_tests(check.report(f"{test.name}.json"), check.runner.left() / len(programs) / SLOWED)
            if not short:
                result[test.name] = {"tests": 0}
                continue
            name = f"{tool}-{test.name}"
            outcome = check.run(name, [program, "--tool", tool, "--error-exitcode", "86", "--print-limit", "20",
                                       # Tests provoke errors of the API to see them handled; those are no findings.
                                       *(["--report-api-errors", "no"] if tool == "memcheck" else []),
                                       test, "--gtest_filter=" + ":".join(short[:MOST_NAMES])])
            errors = sanitizer_errors(outcome.output)
            result[test.name] = {"tests": len(short[:MOST_NAMES]), "errors": errors, "seconds": outcome.seconds}
            if errors:
                failed.append(f"{test.name}: {errors} errors, see {name}.log")
            elif outcome.why:
                failed.append(f"{test.name}: {outcome.why}")
            elif errors is None:
                failed.append(f"{test.name}: {tool} gave no summary, see {name}.log")
        if not any(one["tests"] for one in result.values()):
            failed.append("no test is short enough for it, or none passed")
        return result | ({"failed": "; ".join(failed)} if failed else {})
    return part
