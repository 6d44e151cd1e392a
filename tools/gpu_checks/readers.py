"""Reads what the programs of a check write: JSON lines, benchmark reports, tables of record scripts."""
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


def cut_json(text):
    """Google Benchmark's JSON report as far as it was written: the context, and the benchmarks that are whole."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    decoder, report = json.JSONDecoder(), {"context": {}, "benchmarks": []}
    try:
        report["context"] = decoder.raw_decode(text, text.index("{", text.index('"context"')))[0]
        at = text.index("[", text.index('"benchmarks"', text.index('"context"'))) + 1
        while True:
            one, at = decoder.raw_decode(text, text.index("{", at))
            report["benchmarks"].append(one)
    except ValueError:
        return report


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
