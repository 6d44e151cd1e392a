"""The records of an archive of images, as the peers want them; made once, in a temporary folder, not timed.

The folder ($TMPDIR/headrace-peers-<user>/<key of the archive's path, size and time>) is kept for later runs.
A data set that is whole has a file `done` in it.
"""
import getpass
import hashlib
import io
import json
import os
import pathlib
import shutil
import tarfile
import tempfile

import numpy as np

SUFFIXES = (".jpg", ".jpeg")


def _folder(data):
    data = pathlib.Path(data).resolve()
    about = data.stat()
    key = hashlib.sha256(f"{data}:{about.st_size}:{about.st_mtime_ns}".encode()).hexdigest()[:16]
    return pathlib.Path(tempfile.gettempdir()) / f"headrace-peers-{getpass.getuser()}" / key


def made_once(data, name, make):
    """The folder `name` of the archive; make(folder) fills it the first time."""
    folder = _folder(data) / name
    if (folder / "done").exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as fresh:
        place = pathlib.Path(fresh) / name
        place.mkdir()
        make(place)
        (place / "done").touch()
        shutil.rmtree(folder, ignore_errors=True)
        place.rename(folder)
    return folder


def _members(data):
    """(path, bytes) of each image of a tar or tar.zst, in the archive's order."""
    raw = open(data, "rb")
    if str(data).endswith(".zst"):
        import zstandard
        stream = zstandard.ZstdDecompressor().stream_reader(raw)
    else:
        stream = raw
    with raw, tarfile.open(fileobj=stream, mode="r|*" if stream is raw else "r|") as tar:
        for member in tar:
            if member.isfile() and member.name.lower().endswith(SUFFIXES):
                yield member.name, tar.extractfile(member).read()


def _class_of(path):
    name = path.rsplit("/", 1)[-1]
    return path.split("/")[-2] if "/" in path else name.split("_")[0]


class Records:
    """Encoded images in one file, mapped into memory: records[i] is a read-only array of bytes.

    In the order of their paths; of train/ alone where there is a train/. Cheap to pickle, may be forked.
    """

    def __init__(self, data):
        self.folder = made_once(data, "records", lambda place: self._write(data, place))
        index = json.loads((self.folder / "index.json").read_text())
        self.paths, self.labels, self.ends = index["paths"], index["labels"], index["ends"]
        self._bytes = None

    @staticmethod
    def _write(data, place):
        # Of equal paths the last one counts, as when tar unpacks.
        images = dict(_members(data))
        trains = {path: image for path, image in images.items() if path.startswith("train/")}
        images = dict(sorted((trains or images).items()))
        classes = sorted({_class_of(path) for path in images})
        (place / "bytes").write_bytes(b"".join(images.values()))
        (place / "index.json").write_text(json.dumps({
            "paths": list(images), "labels": [classes.index(_class_of(path)) for path in images],
            "ends": [0, *np.cumsum([len(image) for image in images.values()]).tolist()]}))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        if self._bytes is None:
            self._bytes = np.memmap(self.folder / "bytes", np.uint8, "r").view(np.ndarray)
        return self._bytes[self.ends[i]:self.ends[i + 1]]

    def __getstate__(self):
        return {**self.__dict__, "_bytes": None}


def files(data):
    """(paths of the images unpacked, one file each; labels), in the records' order."""
    records = Records(data)

    def write(place):
        for path, i in zip(records.paths, range(len(records))):
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(records[i])

    folder = made_once(data, "files", write)
    return [str(folder / path) for path in records.paths], records.labels


def shards(data, count, shuffled):
    """Paths of `count` tar files with the members NNNNNN.jpg: the records in order, or in one random order."""
    records = Records(data)
    order = np.random.default_rng(0).permutation(len(records)) if shuffled else np.arange(len(records))

    def write(place):
        for shard, numbers in enumerate(np.array_split(order, count)):
            with tarfile.open(place / f"shard-{shard:04}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
                for i in numbers:
                    member = tarfile.TarInfo(f"{i:06}.jpg")
                    member.size = len(records[i])
                    tar.addfile(member, io.BytesIO(records[i]))

    folder = made_once(data, f"shards-{count}" + ("-shuffled" if shuffled else ""), write)
    return sorted(map(str, folder.glob("*.tar")))


def pixels(data):
    """All images decoded, (N, 3, H, W) uint8 in memory: for images of one size."""
    from PIL import Image
    records = Records(data)

    def write(place):
        images = [np.asarray(Image.open(io.BytesIO(records[i])).convert("RGB")) for i in range(len(records))]
        np.save(place / "pixels.npy", np.ascontiguousarray(np.stack(images).transpose(0, 3, 1, 2)))

    return np.load(made_once(data, "pixels", write) / "pixels.npy")
