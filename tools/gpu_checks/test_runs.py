"""One run of a test program on the GPU: started again until every test has its verdict, whatever one of them does to it."""
import dataclasses
import pathlib

from gpu_checks.gtest import listed, results_of, skip_reasons

MAX_STARTS = 8
QUIET = 40  # seconds: a test that takes longer hangs


@dataclasses.dataclass(frozen=True)
class TestRun:
    name: str  # "test_train@cuda:0"
    program: pathlib.Path
    filter: str
    environment: dict


def file_name(run):
    """For its logs: letters, digits, '-' and '_'."""
    return run.name.replace("@", "-").replace(":", "_").replace(",", "_")


def undecided(names, found):
    """Names of tests to run again: those that did not come to run, and those that failed behind the first failure, which
    an error that sticks to the GPU's context may have made fail."""
    decided, broken = set(), False
    for test in found:
        if test["result"] in ("passed", "skipped"):
            decided.add(test["name"])
        elif not broken:
            broken = True
            decided.add(test["name"])
    return [name for name in names if name not in decided]


def run_tests(check, run, record):
    """The verdicts by name, why the program ended early (a line a time), reasons of skips. record(verdicts): so far."""
    names = listed(run.program, run.filter)
    verdicts, whys, skips = {}, [], {}
    pending, wanted = names, run.filter
    for start in range(MAX_STARTS):
        name = f"{file_name(run)}-{start}"
        report = check.runner.logs / f"{name}.json"
        outcome = check.run(name, [run.program, f"--gtest_filter={wanted}", f"--gtest_output=json:{report}"], quiet=QUIET,
                            environment=run.environment,
                            partial=lambda output: record(verdicts | by_name(results_of("", output))))
        found = results_of(check.text(report.name), outcome.output)
        verdicts |= by_name(found)
        for reason, times in skip_reasons(outcome.output).items():
            skips[reason] = skips.get(reason, 0) + times
        unfinished = [test["name"] for test in found if test["result"] == "unfinished"]
        if outcome.why and not any(test["result"] == "failed" for test in found) or unfinished:
            whys.append(f"{', '.join(unfinished) or wanted[:80]}: {outcome.why or 'it ended without a verdict'}")
        pending = undecided(pending, found)
        if not found or not pending or check.runner.left() == 0:
            break
        wanted = ":".join(pending)
    return verdicts, whys, skips, [name for name in names if name not in verdicts]


def by_name(found):
    return {test["name"]: test for test in found}
