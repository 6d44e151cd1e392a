"""Draws the figures of a check's parts together, and writes the output folder: one level, at most eight files, each replaced as
a whole, so that it can be read at any moment."""
import json
import os
import statistics

KEPT = 16 << 10  # bytes of each log: its end
MAX_FRACTION = 0.01  # of a step: input stall, exposed copy, idle GPU
MAX_HOST_US = 10.0  # of host time a step
MIN_RATIO = 1.3  # seconds of the record script over ours
SLOWEST = 12  # kernels of a step in the table for people
MAX_POINTS = 0.3  # of accuracy, below the record script's


def spread(values):
    values = [value for value in values if value is not None]
    if not values:
        return None
    return {"n": len(values), "median": statistics.median(values), "mean": statistics.fmean(values), "min": min(values),
            "max": max(values), "stdev": statistics.stdev(values) if len(values) > 1 else 0.0}


def of_runs(runs):
    return {key: spread([run.get(key) for run in runs]) for key in ("accuracy", "seconds")}


def against(ours, theirs):
    """How many times as long their median run takes, and our mean accuracy less theirs in points."""
    if not all(one and one["seconds"] and one["accuracy"] for one in (ours, theirs)):
        return None
    return {"ratio": theirs["seconds"]["median"] / ours["seconds"]["median"],
            "points": 100 * (ours["accuracy"]["mean"] - theirs["accuracy"]["mean"])}


def bar(what, value, limit, most):
    """most: the value may be at most the limit; else it must be at least that. met: None where nothing was measured."""
    met = None if value is None else (value <= limit if most == "most" else value >= limit)
    return {"what": what, "value": value, "limit": limit, "at": most, "met": met}


def bars(figures):
    saturation = (figures.get("steps") or {}).get("end_to_end") or {}
    found = [bar("input stall, of a step", saturation.get("input_stall_fraction"), MAX_FRACTION, "most"),
             bar("exposed copy, of a step", saturation.get("exposed_copy_fraction"), MAX_FRACTION, "most"),
             bar("GPU idle between steps", saturation.get("device_idle_fraction"), MAX_FRACTION, "most"),
             bar("host time a step, us", saturation.get("host_us_per_step"), MAX_HOST_US, "most")]
    for share, stall in ((figures.get("photographs") or {}).get("input_stall_fraction") or {}).items():
        found.append(bar(f"input stall, photographs at {share} of the rate", stall, MAX_FRACTION, "most"))
    for name, one in figures.get("against", {}).items():
        found.append(bar(f"times as fast as {name}", one and one["ratio"], MIN_RATIO, "least"))
        found.append(bar(f"accuracy less that of {name}, points", one and one["points"], -MAX_POINTS, "least"))
    return found


def rooflines(rows):
    """Of kernels with a fraction of a floor, by kind (the name up to the first two slashes): the spread."""
    kinds = {}
    for row in rows:
        if "roofline" in row:
            kinds.setdefault("/".join(row["name"].split("/")[:2]), []).append(row["roofline"])
    return {kind: spread(values) for kind, values in kinds.items()}


def figures_of(results):
    """The figures that count, from the parts' results."""
    part = lambda name: results.get(name) or {}
    halves = [of_runs(part(name).get("runs", [])) for name in ("cifar10-fast", "cifar10-fast-again")]
    ours = of_runs(part("cifar10-fast").get("runs", []) + part("cifar10-fast-again").get("runs", []))
    scripts = {name: of_runs(one["runs"]) for name, one in part("record").get("scripts", {}).items()}
    step = part("profile").get("step")
    figures = {
        "gpu": [gpu.get("name") for gpu in part("device").get("gpus", [])],
        "rooflines": rooflines(part("kernels").get("benchmarks", [])),
        "input_images_per_second": (part("input").get("headrace_bench_input") or {}).get("images_per_second"),
        "steps": {key: part("steps").get(key) for key in ("step_only", "end_to_end", "share_of_step_only")},
        "profile": step and step["total"] | {"slowest": step["kernels"][:SLOWEST]},
        "cores": [{key: row.get(key) for key in ("load", "threads", "images_per_second", "baseline_images_per_second")}
                  for row in part("cores").get("rows", [])],
        "photographs": {key: part("photographs").get(key) for key in ("images_per_second", "input_stall_fraction")},
        "cifar10-fast": ours | {"halves": halves},
        "scripts": scripts,
        "against": {name: against(ours, theirs) for name, theirs in scripts.items()},
    }
    return figures | {"bars": bars(figures)}


def state(result):
    return next((name for name in ("failed", "skipped", "unfinished") if name in result), "ok")


def summary_of(results, about):
    parts = {name: {"state": state(one), "seconds": one.get("seconds"), "why": one.get(state(one))}
             for name, one in results.items()}
    well = all(one["state"] in ("ok", "skipped") for one in parts.values())
    return about | {"ok": well, "parts": parts, "figures": figures_of(results)}


def number(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def profile_lines(one):
    """Of a step's kernels: the sum, and the slowest."""
    lines = ["", f"one step: {one['calls']} kernels, {number(one['us'])} us, floor {number(one['floor_us'])} us",
             f"{'us':>9} {'calls':>5} {'MB':>8} {'floor us':>8} {'share':>6}  kernel"]
    for row in one["slowest"]:
        megabytes = None if row["bytes"] is None else row["bytes"] / 1e6
        lines.append(f"{number(row['us']):>9} {row['calls']:>5} {number(megabytes):>8} {number(row['floor_us']):>8} "
                     f"{number(row['share']):>6}  {row['kernel'][:70]}")
    return lines


def table(summary):
    """The summary for people: a line a part, then the figures."""
    lines = ["A rehearsal on a processor: no figure counts.", ""] if summary.get("rehearsal") else []
    lines.append(f"{'part':<20} {'state':<8} {'seconds':>8}  why")
    for name, part in summary["parts"].items():
        lines.append(f"{name:<20} {part['state']:<8} {number(part['seconds']):>8}  {part['why'] or ''}".rstrip())
    figures = summary["figures"]
    lines += ["", "GPU: " + (", ".join(map(str, figures["gpu"])) or "none")]
    for kind, one in figures["rooflines"].items():
        lines.append(f"{kind}: {number(one['median'])} of its floor ({number(one['min'])} to {number(one['max'])}, {one['n']} sizes)")
    lines.append(f"input into the GPU: {number(figures['input_images_per_second'])} images/s")
    for name in ("step_only", "end_to_end"):
        rate = (figures["steps"][name] or {}).get("examples_per_second")
        lines.append(f"{name.replace('_', ' ')}: {number(rate)} images/s")
    for row in figures["cores"]:
        bare = row["baseline_images_per_second"]
        lines.append(f"{row['load']} on {row['threads']} threads: {number(row['images_per_second'])} images/s"
                     + (f", bare {number(bare)}" if bare else ""))
    for side, rate in (figures["photographs"]["images_per_second"] or {}).items():
        lines.append(f"photographs into the GPU, decoded on the {side}: {number(rate)} images/s")
    for name, one in {"cifar10-fast": figures["cifar10-fast"], **figures["scripts"]}.items():
        if one["seconds"]:
            lines.append(f"{name}: {one['seconds']['n']} runs, {number(one['seconds']['median'])} s "
                         f"({number(one['seconds']['min'])} to {number(one['seconds']['max'])}), accuracy "
                         f"{one['accuracy']['mean']:.4f} +- {one['accuracy']['stdev']:.4f}")
    if figures["profile"]:
        lines += profile_lines(figures["profile"])
    lines += ["", f"{'bar':<44} {'measured':>10} {'wanted':>12}  met"]
    for one in figures["bars"]:
        wanted = ("<= " if one["at"] == "most" else ">= ") + number(one["limit"])
        met = {True: "yes", False: "NO", None: "not measured"}[one["met"]]
        lines.append(f"{one['what']:<44} {number(one['value']):>10} {wanted:>12}  {met}")
    return "\n".join(lines) + "\n"


def write(out, results, files, about):
    """files: the file of each part. The summary."""
    grouped = {}
    for name, result in results.items():
        grouped.setdefault(files[name], {})[name] = result
    summary = summary_of(results, about)
    for file, parts in (grouped | {"summary": summary}).items():
        text = json.dumps(parts, indent=1) + "\n"
        replace(out / f"{file}.json", lambda path: path.write_text(text))
    replace(out / "summary.txt", lambda path: path.write_text(table(summary)))
    return summary


def replace(path, write_to):
    fresh = path.with_name("unfinished.part")  # one name for all: a killed check leaves one such file at most
    write_to(fresh)
    os.replace(fresh, path)


def pack(out, logs):
    """What the programs printed and wrote, as one text: small enough to be kept with the results."""
    def said(log):
        with open(log, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - KEPT))
            cut = f" (the last {KEPT} of {size} bytes)" if size > KEPT else ""
            return f"== {log.name}{cut}\n{file.read().decode(errors='replace').rstrip()}\n"
    text = "\n".join(said(log) for log in sorted(logs.iterdir()) if log.is_file() and log.stat().st_size)
    replace(out / "output.txt", lambda path: path.write_text(text))
