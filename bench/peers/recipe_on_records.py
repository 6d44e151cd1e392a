#!/usr/bin/env python3
"""Runs cifar10_recipe_torch.py on a record file of `headrace convert` (pipeline/FORMAT.md), for machines without the zstd command.

  recipe_on_records.py SCRIPT --data cifar10.records [what else the script takes: --export DIR, --steps N ...]

The script's read_archive is replaced; images are decoded by Pillow as there, and stand in the order of their paths.
"""
import importlib.util
import io
import pathlib
import struct
import sys

FOOTER = 48  # bytes


def images(path):
    """(name, JPEG) of each record. The first field of a record of images is the image."""
    data = pathlib.Path(path).read_bytes()
    index, _, _, count = struct.unpack_from("<4Q", data, len(data) - FOOTER)
    version, fields = struct.unpack_from("<I", data, 8)[0], struct.unpack_from("<I", data, 16)[0]
    numbers = 2 + version  # before those of the fields
    entry = 8 * (numbers + fields)
    rows = struct.iter_unpack(f"<{numbers + fields}Q", data[index:index + count * entry])
    name_at = index + count * entry
    for at, _, name_bytes, *rest in rows:
        image_bytes = rest[numbers - 3]
        yield data[name_at:name_at + name_bytes].decode(), data[at:at + image_bytes]
        name_at += name_bytes


def read_records(path):
    """As the script's read_archive: {"train" | "test": (images uint8 NHWC, labels int64)} and the class names."""
    import numpy as np
    import torch
    from PIL import Image
    found = {"train": [], "test": []}
    for name, jpeg in images(path):
        split, label, file = name.split("/")[-3:]
        found[split].append((label, file, np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"))))
    classes = sorted({label for label, _, _ in found["train"]})
    out = {}
    for split, rows in found.items():
        rows.sort(key=lambda row: row[:2])
        out[split] = (torch.tensor(np.stack([row[2] for row in rows])),
                      torch.tensor([classes.index(row[0]) for row in rows]))
    return out, classes


if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location("recipe", sys.argv[1])
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    recipe.read_archive = read_records
    del sys.argv[:1]
    recipe.main()
