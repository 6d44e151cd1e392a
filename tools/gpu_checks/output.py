"""The output folder: one level, at most eight files, each replaced as a whole: it can be read at any moment."""
import json
import os
import tarfile

from gpu_checks.summary import summary_of, table

KEPT = 2 << 20  # bytes of each log


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
    replace(out / "logs.tar.gz", lambda path: pack_to(path, logs))


def pack_to(path, logs):
    with tarfile.open(path, "w:gz") as archive:
        for log in sorted(logs.iterdir()):
            info = archive.gettarinfo(log, arcname=f"logs/{log.name}")
            with open(log, "rb") as file:
                file.seek(max(0, info.size - KEPT))
                info.size = min(info.size, KEPT)
                archive.addfile(info, file)
