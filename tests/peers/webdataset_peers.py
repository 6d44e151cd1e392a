# peers: webdataset pillow numpy
# builds: peer_records
"""Shards that webdataset's writers make, read by webdataset itself: the same keys, order, labels and pixels."""

import gzip
import io
import json
import os
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
from PIL import Image

os.environ.setdefault("WDS_VERBOSE_CACHE", "0")
warnings.simplefilter("ignore")
import webdataset as wds  # noqa: E402

import peers  # noqa: E402

rng = np.random.default_rng(6)
IMAGES = 37


def pixels():
    return rng.integers(0, 256, (int(rng.integers(1, 40)), int(rng.integers(1, 40)), 3), dtype=np.uint8)


def encoded(kind):
    out = io.BytesIO()
    Image.fromarray(pixels()).save(out, kind)
    return out.getvalue()


def samples(key="{:06}", image="png", label="cls", more=None):
    for i in range(IMAGES):
        sample = {"__key__": key.format(i), image: pixels()}
        if image in ("jpeg", "PNG"):
            sample[image] = encoded("JPEG" if image == "jpeg" else "PNG")
        sample[label] = int(rng.integers(0, 1000)) if label == "cls" else {"label": int(rng.integers(0, 1000)), "x": [i]}
        yield {**sample, **(more or {})}


def write(path, content, **options):
    with wds.TarWriter(str(path), **options) as sink:
        for sample in content:
            sink.write(sample)


def in_one_tar(**options):
    return lambda folder: write(folder / "data.tar", samples(**options))


def in_shards(folder):
    with wds.ShardWriter(str(folder / "train-%06d.tar"), maxcount=10, verbose=0) as sink:
        for sample in samples():
            sink.write(sample)


def in_small_shards(folder):
    with wds.ShardWriter(str(folder / "part-%d.tar"), maxcount=3, verbose=0) as sink:
        for sample in samples(image="jpg"):
            sink.write(sample)


def with_label_in_both(folder):
    write(folder / "data.tar", ({**one, "json": {"label": 5, "of": "another"}} for one in samples()))


def with_text_around_class(text):
    return lambda folder: write(
        folder / "data.tar", ({**one, "cls": text.format(i).encode()} for i, one in enumerate(samples())))


def joined(folder):
    """Two archives, one behind the other; webdataset, which stops at the end of the first, is given both."""
    (folder / "parts").mkdir()
    for name in ("a", "b"):
        write(folder / "parts" / f"{name}.tar", samples(key=name + "{:04}"))
    (folder / "data.tar").write_bytes(b"".join(part.read_bytes() for part in sorted((folder / "parts").iterdir())))


def gzipped(folder):
    write(folder / "data.tmp", samples())
    (folder / "data.tar.gz").write_bytes(gzip.compress((folder / "data.tmp").read_bytes()))
    (folder / "data.tmp").unlink()


def written_by_headrace(folder):
    write(folder / "source.tmp", samples())
    subprocess.run([peers.BUILD / "headrace", "convert", "--data", folder / "source.tmp", "--to", folder / "data.tar", "--format",
                    "webdataset", "--split", "train"], check=True, stdout=subprocess.DEVNULL)
    (folder / "source.tmp").unlink()


CASES = {
    "written by Headrace": written_by_headrace,
    "cls": in_one_tar(),
    "json": in_one_tar(label="json"),
    "json and cls": with_label_in_both,
    "jpg": in_one_tar(image="jpg"),
    "jpeg": in_one_tar(image="jpeg"),
    "extension in capitals": in_one_tar(image="PNG"),
    "keys in folders": in_one_tar(key="a/b.c/{:03}"),
    "keys with blanks and letters": in_one_tar(key="ein Bild größer – {}"),
    "keys longer than a header's 100 bytes": in_one_tar(key="k" * 150 + "{}"),
    "keys in long folders": in_one_tar(key="/".join(["d" * 60] * 4) + "/{}"),
    "other members": in_one_tar(more={"txt": "a caption", "seg.npy": np.zeros(3), "pyd": [1]}),
    "ShardWriter": in_shards,
    "ShardWriter, names without zeros": in_small_shards,
    "blanks around the class": with_text_around_class(" {}\n"),
    "negative classes": with_text_around_class("-{}"),
    "joined archives": joined,
    "gzip": gzipped,
    "TarWriter's own gzip": lambda folder: write(folder / "data.tar.gz", samples(), compress=True),
    "user, mode and time": lambda folder: write(folder / "data.tar", samples(), user="me", group="us", mode=0o400, mtime=0),
}

# What is wrong with sample 7 of 37, and what Headrace says of it.
FAULTS = {
    "no class": (lambda one: {k: v for k, v in one.items() if k != "cls"}, "has no label: no 000007.cls"),
    "no image": (lambda one: {k: v for k, v in one.items() if k != "png"}, "has a label and no image"),
    "class in words": (lambda one: {**one, "cls": b"dog"}, "'000007.cls' is no decimal number"),
    "class of a fraction": (lambda one: {**one, "cls": b"1.5"}, "'000007.cls' is no decimal number"),
    "class empty": (lambda one: {**one, "cls": b""}, "'000007.cls' is no decimal number"),
    "json without label": (
        lambda one: {"__key__": one["__key__"], "png": one["png"], "json": {"class": 1}}, "no integer \"label\""),
    "json of a fraction": (
        lambda one: {"__key__": one["__key__"], "png": one["png"], "json": {"label": 1.5}}, "no integer \"label\""),
    "json that is none": (
        lambda one: {"__key__": one["__key__"], "png": one["png"], "json": b"{"}, "no integer \"label\""),
    "two images": (lambda one: {**one, "jpg": pixels()}, "is a second image"),
    "image that is none": (lambda one: {**one, "png": b"no image"}, "neither"),
}

# What has no sample that could be used, or is no archive.
REFUSALS = {
    "no labels at all": (lambda folder: write(folder / "data.tar", (
        {"__key__": one["__key__"], "png": one["png"]} for one in samples())), "data.tar"),
    "labels alone": (lambda folder: write(folder / "data.tar", (
        {"__key__": one["__key__"], "cls": one["cls"]} for one in samples())), "data.tar"),
    "captions alone": (lambda folder: write(folder / "data.tar", (
        {"__key__": one["__key__"], "txt": "a"} for one in samples())), "data.tar"),
    "no sample": (lambda folder: write(folder / "data.tar", ()), "data.tar"),
}


def by_webdataset(archives):
    """(key, label, pixels) of each sample, in its order."""
    found = []
    for sample in wds.WebDataset([str(one) for one in archives], shardshuffle=False, empty_check=False):
        kinds = {kind.lower(): data for kind, data in sample.items()}
        data = next((kinds[kind] for kind in ("png", "jpg", "jpeg") if kind in kinds), None)
        label = int(kinds["cls"]) if "cls" in kinds else json.loads(kinds["json"])["label"]
        found.append((sample["__key__"], label, peers.by_pillow(data)))
    return found


def by_headrace(line, folder_was_named):
    if "records" not in line:
        return line["error"]

    def key(name):
        name = name.split("/", 1)[1] if folder_was_named else name
        return name[:name.rindex(".")]

    return [(key(one["name"]), one.get("label"), one.get("pixels", one.get("error"))) for one in line["records"]]


def compare_sound_shards(tally, scratch):
    folders = {}
    for name, make in CASES.items():
        folders[name] = Path(tempfile.mkdtemp(dir=scratch))
        make(folders[name])
    archives = {name: sorted(folder.glob("*.tar*")) for name, folder in folders.items()}
    paths = {name: str(folders[name] if len(all) > 1 else all[0]) for name, all in archives.items()}
    lines = peers.read_records(paths.values())
    for name, all in archives.items():
        parts = sorted(folders[name].glob("parts/*"))
        ours, theirs = by_headrace(lines[paths[name]], len(all) > 1), by_webdataset(parts or all)
        if not isinstance(ours, list) or len(ours) != len(theirs):
            tally.expect_equal(name, f"{len(ours)} records or letters: {ours}", f"{len(theirs)} samples")
            continue
        for mine, other in zip(ours, theirs):
            tally.expect_equal(name, mine, other)


def compare_faults(tally, scratch):
    paths = {}
    for name, (spoil, _) in FAULTS.items():
        content = list(samples())
        content[7] = spoil(content[7])
        paths[name] = Path(tempfile.mkdtemp(dir=scratch)) / "data.tar"
        write(paths[name], content)
    lines = peers.read_records(paths.values())
    for name, (_, words) in FAULTS.items():
        records = lines[str(paths[name])].get("records", [])
        tally.expect_equal(f"{name}: samples", len(records), IMAGES)
        for i, record in enumerate(records):
            if i == 7:
                tally.expect_refused(name, record.get("error"), words)
            else:
                tally.expect_equal(f"{name}: sample {i} beside it", "error" in record, False)


def compare_refusals(tally, scratch):
    paths = {name: Path(tempfile.mkdtemp(dir=scratch)) / "data.tar" for name in REFUSALS}
    for name, (make, _) in REFUSALS.items():
        make(paths[name].parent)
    lines = peers.read_records(paths.values())
    for name, (_, words) in REFUSALS.items():
        tally.expect_refused(name, lines[str(paths[name])].get("error"), words)


def main():
    tally = peers.Tally()
    with tempfile.TemporaryDirectory() as scratch:
        compare_sound_shards(tally, scratch)
        compare_faults(tally, scratch)
        compare_refusals(tally, scratch)
    tally.finish()


if __name__ == "__main__":
    main()
