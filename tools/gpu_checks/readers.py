"""Reads what the programs of a check write: JSON lines, test reports, benchmark reports, tables of record scripts."""
import collections
import json
import re


def json_lines(text):
    """The objects among the lines of `text`; other lines, and one that was cut off, are passed over."""
    found = []
    for line in text.splitlines():
        if line.lstrip().startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def doctor_devices(lines):
    """Names of the GPUs that `headrace doctor --json` lists."""
    return [line["name"].removeprefix("device ") for line in lines
            if line.get("found") and line.get("name", "").startswith("device cuda:")]


def final_stage(lines):
    """Of `headrace explain --seconds`: the last stage of a record's way, which is the consumer; None where there is none."""
    stages = [line for line in lines if "occupancy" in line]
    return stages[-1] if stages else None


def csv_rows(text):
    """Rows of nvidia-smi's --format=csv as dictionaries; the units stay with the values."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]
    if not rows:
        return []
    names = [re.sub(r"\s*\[.*\]$", "", name) for name in rows[0]]
    return [dict(zip(names, row)) for row in rows[1:] if len(row) == len(names)]


def test_counts(report):
    """Of GoogleTest's JSON report: how many ran, passed, failed and were skipped, and which failed, and why."""
    counts = {"ran": 0, "passed": 0, "failed": 0, "skipped": 0, "failures": []}
    for suite in report.get("testsuites", []):
        for test in suite.get("testsuite", []):
            name = f"{suite['name']}.{test['name']}"
            if test.get("result") == "SKIPPED":
                counts["skipped"] += 1
            elif test.get("status") == "RUN":
                counts["ran"] += 1
                failures = test.get("failures", [])
                counts["failed" if failures else "passed"] += 1
                if failures:
                    counts["failures"].append({"test": name, "why": failures[0].get("failure", "")[:500]})
    return counts


def gpu_filters(listing):
    """Of `--gtest_list_tests`: a filter a suite that has tests for a GPU, those with Cuda in their names."""
    suites, suite = {}, ""
    for line in listing.splitlines():
        name = line.split("#")[0].strip()
        if not line.startswith(" "):
            suite = name
        elif "Cuda" in suite + name:
            suites[suite] = suite + ("*" if "Cuda" in suite else "*Cuda*")
    return list(suites.values())


def skip_reasons(text):
    """Why tests were skipped, and how often, from what a test program printed."""
    return dict(collections.Counter(re.findall(r": Skipped\n(.*)", text)))


def short_tests(report, seconds):
    """Names of tests that ran, the quickest first, as many as take `seconds` together."""
    ran = sorted((float(test["time"].rstrip("s")), f"{suite['name']}.{test['name']}")
                 for suite in report.get("testsuites", []) for test in suite.get("testsuite", [])
                 if test.get("status") == "RUN" and test.get("result") != "SKIPPED" and not test.get("failures"))
    chosen, total = [], 0.0
    for took, name in ran:
        total += took
        if total > seconds:
            break
        chosen.append(name)
    return chosen


def sanitizer_errors(text):
    """The number of errors compute-sanitizer counts in its last line; None when it did not come so far."""
    found = re.findall(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)", text)
    return sum(int(number) for number in found[-1] if number) if found else None


def benchmark_rows(report):
    """Of Google Benchmark's JSON report: the context and a row a benchmark, with its counters."""
    usual = {"name", "run_name", "run_type", "repetitions", "repetition_index", "threads", "family_index",
             "per_family_instance_index", "iterations", "cpu_time", "time_unit", "real_time"}
    scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    rows = []
    for one in report.get("benchmarks", []):
        row = {"name": one["name"]}
        if one.get("error_occurred"):
            row["error"] = one.get("error_message", "")
        else:
            row["seconds"] = one["real_time"] * scale[one["time_unit"]]
            row |= {key: value for key, value in one.items() if key not in usual}
        rows.append(row)
    return report.get("context", {}), rows


def record_runs(text):
    """Whole runs in the table that a record script prints: accuracy with test-time augmentation, seconds on its clock.

    The table's head names the columns run, epoch, tta_val_acc and time_seconds. A run's number stands in its first row
    alone, its last row has the epoch `eval`. The warm-up's run has a word for a number, and is no run.
    """
    runs, columns, run = [], [], ""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if {"run", "epoch", "tta_val_acc", "time_seconds"} <= set(cells):
            columns = cells
            continue
        if not columns or len(cells) != len(columns):
            continue
        row = dict(zip(columns, cells))
        run = row["run"] or run
        if row["epoch"] != "eval" or not run.isdigit():
            continue
        try:
            runs.append({"accuracy": float(row["tta_val_acc"]), "seconds": float(row["time_seconds"])})
        except ValueError:
            continue
    return runs
