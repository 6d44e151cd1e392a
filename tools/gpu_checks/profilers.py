"""Reads what profilers say of one step: ncu's raw page and nsys's trace of kernels, both CSV, as kernels with times and bytes."""
import csv
import io

SECONDS = {"ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3, "s": 1.0, "second": 1.0}
BYTES = {"byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}
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


def nsys_kernels(text):
    """Of `nsys stats --report cuda_gpu_trace --format csv`: kernels alone, of whose bytes it knows nothing."""
    found = []
    for row in rows_below(text, "Duration (ns)"):
        grid = [row.get(f"Grd{axis}", "") for axis in "XYZ"]
        seconds = value(row["Duration (ns)"], SECONDS, "ns")
        if all(grid) and seconds is not None:  # a copy has no grid
            found.append({"kernel": row.get("Name", ""), "grid": f"({', '.join(grid)})", "seconds": seconds, "bytes": None})
    return found


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
