"""Reads what GoogleTest's programs print: their lists, and a line a test."""
import collections
import re
import subprocess

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
