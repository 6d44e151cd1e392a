"""The part `profile`: every kernel of one training step of cifar10-fast, with its time, its bytes and its share of its floor."""
import csv
import glob
import io
import os
import re

from gpu_checks.benchmarks import copy_rate
from gpu_checks.machine import find_tool
from gpu_checks.training import REPLAYED, train

# An epoch is one step; the third is recorded, on batches that are there already.
STEP = {"epochs": 4, "steps_per_epoch": 1, "headspace": REPLAYED, "profile_epoch": 3}
SECONDS = {"ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3, "s": 1.0, "second": 1.0}
BYTES = {"byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}
LOADER_PATH = "LD_LIBRARY_PATH"
PROFILERS = re.compile(r"lib(cupti|nvperf|pcsampling|checkpoint)[a-z_]*\.")  # CUPTI's libraries: ncu has its own nvperf
TIME, READ, WRITTEN = "gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum"


def value(text, units, unit):
    """A number, commas between its thousands or not, in seconds or bytes; None where the tool measured nothing."""
    try:
        return float(text.replace(",", "")) * units[unit]
    except (ValueError, KeyError):
        return None


def rows_below(text, column):
    """Rows of the table whose head has `column`; what is printed before and after it is passed over."""
    lines = list(csv.reader(io.StringIO(text)))
    head = next((i for i, cells in enumerate(lines) if column in cells), None)
    if head is None:
        return []
    return [dict(zip(lines[head], cells)) for cells in lines[head + 1:] if len(cells) == len(lines[head])]


def ncu_kernels(text):
    """Of `ncu --csv --page raw`: the row under the head has the units. Each kernel in its order."""
    rows = rows_below(text, "Kernel Name")
    if not rows:
        return []
    units, *rows = rows
    found = []
    for row in rows:
        read, written = (value(row.get(name, ""), BYTES, units.get(name)) for name in (READ, WRITTEN))
        found.append({"kernel": row["Kernel Name"], "grid": row.get("Grid Size", ""),
                      "seconds": value(row.get(TIME, ""), SECONDS, units.get(TIME)),
                      "bytes": None if read is None or written is None else read + written})
    return [one for one in found if one["seconds"] is not None]


def step_table(kernels, bytes_per_second):
    """A row a kernel and grid, the slowest first: calls, time, bytes; the floor, which is how long a copy of so many bytes
    takes; and `share`, the floor over the time. With the sums of all."""
    rows = {}
    for one in kernels:
        row = rows.setdefault((one["kernel"], one["grid"]), {"kernel": one["kernel"], "grid": one["grid"], "calls": 0, "us": 0.0,
                                                            "bytes": 0.0})
        row["calls"] += 1
        row["us"] += 1e6 * one["seconds"]
        row["bytes"] = None if row["bytes"] is None or one["bytes"] is None else row["bytes"] + one["bytes"]
    table = sorted(rows.values(), key=lambda row: -row["us"])
    total = {"calls": len(kernels), "us": sum(row["us"] for row in table),
             "bytes": None if any(row["bytes"] is None for row in table) else sum(row["bytes"] for row in table)}
    for row in (*table, total):
        known = row["bytes"] is not None and bytes_per_second
        row["floor_us"] = 1e6 * row["bytes"] / bytes_per_second if known else None
        row["share"] = row["floor_us"] / row["us"] if known and row["us"] else None
    return {"total": total, "kernels": table}


def without_profilers(path, scratch):
    """Returns the loader's path for a program that brings its own profiler libraries. A folder that has other ones, such as that
    of CUDA's wheels, is replaced by a folder of links to its other files."""
    folders = []
    for number, folder in enumerate(one for one in path.split(os.pathsep) if one):
        names = os.listdir(folder) if os.path.isdir(folder) and os.access(folder, os.R_OK) else []
        if any(map(PROFILERS.match, names)):
            links = scratch / str(number)
            links.mkdir(parents=True, exist_ok=True)
            for name in names:
                if not PROFILERS.match(name) and not (links / name).is_symlink():
                    (links / name).symlink_to(os.path.join(os.path.abspath(folder), name))
            folder = str(links)
        folders.append(folder)
    return os.pathsep.join(folders)


def by_ncu(check, tool):
    """Kernels of the step, or why there are none. Clocks are left alone and caches as the kernel before left them."""
    table = check.runner.logs / "profile.csv"
    words = (tool, "--profile-from-start", "off", "--graph-profiling", "node", "--clock-control", "none", "--cache-control", "none",
             "--csv", "--page", "raw", "--print-units", "base", "--metrics", f"{TIME},{READ},{WRITTEN}", "--log-file", table)
    path = without_profilers(check.runner.environment.get(LOADER_PATH, ""), check.machine.work / "libraries")
    environment = {LOADER_PATH: path} if path else {}
    outcome, _ = train(check, "profile", how={"environment": environment, "before": words}, **STEP)
    kernels = ncu_kernels(check.text(table.name))
    said = [line for line in check.text(table.name).splitlines() if line.startswith("==ERROR==")]
    return kernels, "" if kernels else "; ".join(said) or outcome.why or "it recorded no kernel"


def profile(check):
    if check.machine.rehearsal:
        return {"skipped": "a processor has no kernels to profile"}
    tool = find_tool("ncu", *sorted(glob.glob("/opt/nvidia/nsight-compute/*"), reverse=True))
    if tool is None:
        return {"skipped": "no ncu on this machine, on PATH or in CUDA's folders"}
    check.machine.need_data()
    rate = copy_rate(check)
    kernels, why = by_ncu(check, tool)
    result = {"copy_gb_per_s": rate and rate / 1e9, "tool": tool}
    return result | ({"step": step_table(kernels, rate)} if kernels else {"failed": why})
