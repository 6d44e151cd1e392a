"""The output folder: one level, at most eight files, written again after every part."""
import json
import tarfile

from gpu_checks.summary import summary_of, table

KEPT = 2 << 20  # bytes of each log


def write(out, results, files, about, logs):
    """files: the file of each part. What was there before a part that never ended stays whole."""
    grouped = {}
    for name, result in results.items():
        grouped.setdefault(files[name], {})[name] = result
    summary = summary_of(results, about)
    for file, parts in (grouped | {"summary": summary}).items():
        replace(out / f"{file}.json", lambda path: path.write_text(json.dumps(parts, indent=1) + "\n"))
    replace(out / "summary.txt", lambda path: path.write_text(table(summary)))
    replace(out / "logs.tar.gz", lambda path: pack(path, logs))
    return summary


def replace(path, write_to):
    fresh = path.with_name(path.name + ".part")
    write_to(fresh)
    fresh.replace(path)


def pack(path, logs):
    with tarfile.open(path, "w:gz") as archive:
        for log in sorted(logs.iterdir()):
            info = archive.gettarinfo(log, arcname=f"logs/{log.name}")
            with open(log, "rb") as file:
                file.seek(max(0, info.size - KEPT))
                info.size = min(info.size, KEPT)
                archive.addfile(info, file)
