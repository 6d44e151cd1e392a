#!/usr/bin/env python3
"""Archives as Python's own writers make them, read by headrace: every packing of the same images is the same stream.

    tests/peers/run archives

By itself it needs Python 3.9 and nothing else; with numpy installed .npz and .npy are compared, with tensorflow its
TFRecord writer. Exits 1 where a packing gives another stream, or is read where it should be refused.
"""
# peers: numpy tensorflow-cpu
# builds: headrace
import argparse
import gzip
import io
import os
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path

import peers

CLASSES, IMAGES, SIDE = ("cat", "dog", "emu"), 5, 32


def make_pixels(seed):
    return random.Random(seed).randbytes(SIDE * SIDE * 3)


def png(pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + pixels[y * SIDE * 3:(y + 1) * SIDE * 3] for y in range(SIDE))
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


RECORDS = [(f"{name}/{i}.png", label, make_pixels(label * IMAGES + i))
           for label, name in enumerate(CLASSES) for i in range(IMAGES)]
FILES = {path: png(pixels) for path, _, pixels in RECORDS}


class Unseekable(io.RawIOBase):
    """A pipe: zipfile then writes data descriptors."""

    def __init__(self, path):
        self.file = open(path, "wb")

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)

    def close(self):
        self.file.close()
        super().close()


def write_zip(target, method, **options):
    with zipfile.ZipFile(target, "w", method, **options) as archive:
        for path, data in FILES.items():
            archive.writestr(path, data)


def write_zip64(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in FILES.items():
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
                member.write(data)


def write_zip_with_comment(path):
    write_zip(path, zipfile.ZIP_STORED)
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"made by a peer " * 100


def write_tar(path, files=None, kind=tarfile.PAX_FORMAT, mode="w"):
    with tarfile.open(path, mode, format=kind) as archive:
        for name, data in (files or FILES).items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def write_joined_tars(path):
    items = list(FILES.items())
    for number, part in enumerate((items[:7], items[7:])):
        write_tar(path.with_suffix(f".{number}"), dict(part))
    path.write_bytes(b"".join(path.with_suffix(f".{number}").read_bytes() for number in (0, 1)))


def write_padded_gzip(path):
    write_tar(path, mode="w:gz")
    with open(path, "ab") as file:
        file.write(bytes(8192))


def write_members_of_gzip(path):
    write_tar(path.with_suffix(".plain"))
    data = path.with_suffix(".plain").read_bytes()
    path.write_bytes(b"".join(gzip.compress(data[i:i + 5000]) for i in range(0, len(data), 5000)))


def write_with(command):
    def write(path):
        write_tar(path.with_suffix(".plain"))
        subprocess.run(command + [str(path.with_suffix(".plain")), "-o", str(path)], check=True)
    return write


def write_folder(path):
    for name, data in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)


def write_npz(save):
    def write(path):
        import numpy
        pixels = numpy.frombuffer(b"".join(p for _, _, p in RECORDS), numpy.uint8).reshape(-1, SIDE, SIDE, 3)
        labels = numpy.array([label for _, label, _ in RECORDS])
        save(numpy, path, pixels, labels)
    return write


def save_npy_folder(numpy, path, pixels, labels):
    path.mkdir()
    numpy.save(path / "x_train.npy", numpy.asfortranarray(pixels))
    numpy.save(path / "y_train.npy", labels.astype(">i2").reshape(-1, 1))


def write_tf_records(compression):
    def write(path):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow as tf
        path.mkdir()
        for shard in range(3):
            file = str(path / f"train-{shard:05}-of-00003.tfrecord")
            with tf.io.TFRecordWriter(file, compression) as writer:
                for name, label, _ in RECORDS[shard * 5:shard * 5 + 5]:
                    feature = {"image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[FILES[name]])),
                               "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))}
                    writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    return write


def has(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0


def packings():
    stored, deflated = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
    yield "zip, stored", "a.zip", lambda path: write_zip(path, stored)
    yield "zip, deflated", "a.zip", lambda path: write_zip(path, deflated)
    yield "zip, to a pipe (data descriptors)", "a.zip", lambda path: write_zip(Unseekable(path), deflated)
    yield "zip64", "a.zip", write_zip64
    yield "zip with a comment", "a.zip", write_zip_with_comment
    for name, kind in (("pax", tarfile.PAX_FORMAT), ("gnu", tarfile.GNU_FORMAT), ("ustar", tarfile.USTAR_FORMAT)):
        yield f"tar, {name}", "a.tar", lambda path, kind=kind: write_tar(path, kind=kind)
    yield "tar.gz", "a.tar.gz", lambda path: write_tar(path, mode="w:gz")
    yield "tar.gz in many members", "a.tar.gz", write_members_of_gzip
    yield "tar.gz padded with zeros", "a.tar.gz", write_padded_gzip
    yield "two tars joined", "a.tar", write_joined_tars
    if shutil.which("zstd"):
        yield "tar.zst", "a.tar.zst", write_with(["zstd", "-q"])
        yield "tar.zst, --long=31", "a.tar.zst", write_with(["zstd", "-q", "--long=31"])
    if shutil.which("pzstd"):
        yield "tar.zst by pzstd", "a.tar.zst", write_with(["pzstd", "-q"])
    if has("numpy"):
        yield "npz", "a.npz", write_npz(lambda np, path, x, y: np.savez(path, x_train=x, y_train=y))
        yield "npz, compressed", "a.npz", write_npz(lambda np, path, x, y: np.savez_compressed(path, images=x, labels=y))
        yield "folder of npy, Fortran's order and big-endian", "a", write_npz(save_npy_folder)
    if has("tensorflow"):
        for compression in ("", "GZIP", "ZLIB"):
            yield f"TFRecord shards {compression or 'plain'}", "a", write_tf_records(compression)


def refusals():
    yield "tar.xz", "a.tar.xz", lambda path: write_tar(path, mode="w:xz"), "is packed with xz"
    yield "tar.bz2", "a.tar.bz2", lambda path: write_tar(path, mode="w:bz2"), "is packed with bzip2"
    yield "zip by bzip2", "a.zip", lambda path: write_zip(path, zipfile.ZIP_BZIP2), "packed in another way than by deflate"
    if has("numpy"):
        yield ("npy of objects", "a.npy",
               write_npz(lambda np, path, x, y: np.save(path, np.array([{}, []], dtype=object), allow_pickle=True)),
               "holds Python objects")


def digest(headrace, path):
    run = subprocess.run([headrace, "digest", "--pipeline", "cifar-train", "--global-batch", "4", "--data", str(path)],
                         capture_output=True, text=True)
    return (run.stdout.split() or [""])[-1] if run.returncode == 0 else run.stderr.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headrace", default=str(peers.BUILD / "headrace"))
    headrace = parser.parse_args().headrace
    tally = peers.Tally()

    def made(name, write):
        path = Path(tempfile.mkdtemp(dir=scratch)) / name
        write(path)
        return path

    with tempfile.TemporaryDirectory() as scratch:
        wanted = digest(headrace, made("folder", write_folder))
        if len(wanted) != 64:
            sys.exit(f"archives_peers.py: the folder of images is not read: {wanted}")
        for title, name, write in packings():
            tally.expect_equal(title, digest(headrace, made(name, write)), wanted)
        for title, name, write, words in refusals():
            tally.expect_refused(title, digest(headrace, made(name, write)), words)
    tally.finish()


if __name__ == "__main__":
    main()
