"""Runs of GoogleTest's programs on the GPU, in shards: a shard is started again until each of its tests has a verdict, whatever
one of them does to it."""
import collections
import dataclasses
import pathlib
import re
import subprocess

from gpu_checks.machine import PLAN_FOLDER, Missing
from gpu_checks.runner import together

TEST_DEVICES = "HEADRACE_TEST_DEVICES"
LIST = pathlib.Path(__file__).with_name("gpu_tests.txt")
SHARDS = 5  # at once
MAX_STARTS = 8  # of a shard
QUIET = 90  # seconds: a test that takes longer hangs
VERDICTS = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}
LINE = re.compile(r"^\[\s*(RUN|OK|FAILED|SKIPPED)\s*\] ([^\s,]+)(?:,.*?)?(?: \((\d+) ms\))?$")


def listed(program, wanted):
    """Names of the program's tests that fit the filter; none where it cannot be started."""
    try:
        return names_of(subprocess.run([program, "--gtest_list_tests", f"--gtest_filter={wanted}"], capture_output=True,
                                       text=True, timeout=30).stdout)
    except (OSError, subprocess.TimeoutExpired):
        return []


def matches(pattern, name):
    """As GoogleTest matches: '*' any text, '?' one character."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), name) is not None


def names_of(text):
    """Of `--gtest_list_tests`: "Suite.Test", disabled ones left out."""
    names, suite = [], ""
    for line in text.splitlines():
        name = line.split("#")[0].strip()
        if not line.startswith(" "):
            suite = name
        elif name and suite and "DISABLED_" not in suite + name:
            names.append(suite + name)
    return names


def results_of(output):
    """Each test's name, result (passed, failed, skipped, unfinished), seconds and why it failed, in the order in which they ran:
    of what a program printed, to its end or not."""
    found, said = [], []
    for line in output.splitlines():
        match = LINE.match(line)
        if match is None:
            said.append(line)
        elif match[1] == "RUN":
            found.append({"name": match[2], "result": "unfinished", "seconds": 0.0, "why": ""})
            said = []
        elif found and found[-1]["name"] == match[2] and found[-1]["result"] == "unfinished" and match[3]:
            result = VERDICTS[match[1]]
            found[-1] |= {"result": result, "seconds": int(match[3]) / 1000,
                          "why": "\n".join(said)[:500] if result == "failed" else ""}
    if found and found[-1]["result"] == "unfinished":
        found[-1]["why"] = "\n".join(said)[-500:]
    return found


def counts(tests):
    """How many ran, passed, failed and were skipped, and which failed or did not end, and why."""
    number = collections.Counter(test["result"] for test in tests)
    return {"ran": len(tests) - number["skipped"], "passed": number["passed"],
            "failed": number["failed"] + number["unfinished"], "skipped": number["skipped"],
            "failures": [{"test": test["name"], "why": test["why"], "result": test["result"]} for test in tests
                         if test["result"] in ("failed", "unfinished")]}


def skip_reasons(text):
    """Why tests were skipped, and how often, from what a test program printed."""
    return dict(collections.Counter(re.findall(r": Skipped\n(.*)", text)))


def short_tests(tests, seconds):
    """Names of tests that passed, the quickest first, as many as take `seconds` together."""
    chosen, total = [], 0.0
    for took, name in sorted((test["seconds"], test["name"]) for test in tests if test["result"] == "passed"):
        total += took
        if total > seconds:
            break
        chosen.append(name)
    return chosen


@dataclasses.dataclass
class TestRun:
    name: str  # "train@cuda:0"
    program: pathlib.Path
    names: list  # of its tests
    environment: dict
    verdicts: dict = dataclasses.field(default_factory=dict)  # by name
    ended_early: list = dataclasses.field(default_factory=list)  # why, a line a time
    skips: collections.Counter = dataclasses.field(default_factory=collections.Counter)

    def add(self, found):
        self.verdicts |= {test["name"]: test for test in found}

    def account(self):
        return counts(list(self.verdicts.values())) | {
            "skips": dict(self.skips), "ended_early": self.ended_early,
            "not_run": [name for name in self.names if name not in self.verdicts]}

    def why_failed(self):
        """Empty where it went well."""
        one = self.account()
        whys = list(self.ended_early)
        if hard := [test["test"] for test in one["failures"] if test["result"] == "failed"]:
            whys.append(f"{len(hard)} tests failed, the first {hard[0]}")
        elif one["not_run"] and not whys:
            whys.append(f"{len(one['not_run'])} tests did not run, the first {one['not_run'][0]}")
        elif not one["ran"] and not whys:
            whys.append(f"not one test ran, {one['skipped']} were skipped: {'; '.join(self.skips)}")
        return [f"{self.name}: {why}" for why in whys]


def blocks(text):
    """(name, program, devices, filter) of each block of gpu_tests.txt: a line of three words, and patterns below it."""
    found = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words and line[0] == " ":
            found[-1][3].extend(words)
        elif words:
            found.append((*words, []))
    return [(name, program, devices, ":".join(patterns)) for name, program, devices, patterns in found]


def test_runs(machine, only=None, replicas=1):
    """In the order of the list: the blocks whose tests name the GPU themselves, and those that take one replica; or, of two
    replicas that share the GPU, those that take it. A rehearsal has the processor's suites in the place of the GPU's."""
    spec = machine.device if replicas == 1 else machine.two_replicas()
    rows = []
    for name, program, devices, wanted in blocks(LIST.read_text()):
        if only not in (None, name) or only is None and devices == "pair":
            continue
        if devices == "named" and replicas == 1:
            rows.append((f"{name}@{spec}", program, wanted.replace("Cuda/", "Cpu/") if machine.rehearsal else wanted, {}))
        elif devices != "named":
            rows.append((f"{name}@{spec}", program, wanted, {TEST_DEVICES: spec}))
    runs = [TestRun(name, path := machine.program(program), listed(path, wanted), environment)
            for name, program, wanted, environment in rows]
    if empty := [run.name for run in runs if not run.names]:
        raise Missing(f"{', '.join(empty)}: its program lists no test")
    return runs


def file_name(run):
    """For its logs: letters, digits, '-' and '_'."""
    return run.name.replace("@", "-").replace(":", "_").replace(",", "_")


def plans_apart(check):
    """Keeps plans that were timed on a shared GPU, or under a sanitizer, away from measured trainings."""
    return {PLAN_FOLDER: str(check.machine.work / "shards/plans")}


def filtered(folder, names):
    """The argument that chooses these tests, through a file: there may be more than a command line holds."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "flags").write_text(f"--gtest_filter={':'.join(names)}\n")
    return f"--gtest_flagfile={folder / 'flags'}"


def undecided(names, found):
    """Names of tests to run again: those that did not come to run, and those that failed after the first failure, which
    an error that sticks to the GPU's context may have made fail."""
    decided, broken = set(), False
    for test in found:
        if test["result"] in ("passed", "skipped"):
            decided.add(test["name"])
        elif not broken:
            broken = True
            decided.add(test["name"])
    return [name for name in names if name not in decided]


def shard(check, run, number, pending, account):
    """A task that fills the run's verdicts of these tests, in a folder of its own. account(): the part's result so far."""
    folder = check.machine.work / "shards" / f"{file_name(run)}-{number}"
    environment = run.environment | plans_apart(check) | {"TMPDIR": str(folder)}

    def partial(output):
        run.add(results_of(output))
        return account()
    for start in range(MAX_STARTS):
        name = f"{folder.name}-{start}"
        outcome = yield from check.running(name, [run.program, filtered(folder, pending)], quiet=QUIET, partial=partial,
                                           folder=folder, environment=environment)
        printed = check.text(f"{name}.log")
        found = results_of(printed)
        run.add(found)
        run.skips.update(skip_reasons(printed))
        unfinished = [test["name"] for test in found if test["result"] == "unfinished"]
        if outcome.why and not any(test["result"] == "failed" for test in found) or unfinished:
            run.ended_early.append(f"{', '.join(unfinished) or name}: {outcome.why or 'it ended without a verdict'}")
        pending = undecided(pending, found)
        if not found or not pending or check.runner.left() == 0:
            break


def run_tests(check, only=None, replicas=1, beside=()):
    """Runs the list, or one block of it: the part's result. The runs are kept in check.tests, by name. beside: tasks that run
    meanwhile."""
    runs = test_runs(check.machine, only, replicas)
    check.tests |= {run.name: run for run in runs}
    account = lambda: {run.name: run.account() for run in runs if run.verdicts}
    shards = [shard(check, run, number, names, account) for run in runs for number in range(SHARDS)
              if (names := run.names[number::SHARDS])]
    together([*beside, *shards], SHARDS + len(beside))
    failed = [why for run in runs for why in run.why_failed()]
    return {run.name: run.account() for run in runs} | ({"failed": "; ".join(failed)} if failed else {})
