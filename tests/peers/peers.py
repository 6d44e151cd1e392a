"""What the topics share: checks that count, the programs that decode images and read records, and other decoders."""

import hashlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

BUILD = Path(os.environ.get("HEADRACE_BUILD", Path(__file__).resolve().parents[2] / "build/release"))


class Checks:
    """Counts what was compared by its name, and remembers the first ones that differ."""

    def __init__(self):
        self.done, self.different, self.examples = {}, {}, {}

    def expect(self, name, ok, example=""):
        self.done[name] = self.done.get(name, 0) + 1
        if not ok:
            self.different[name] = self.different.get(name, 0) + 1
            self.examples.setdefault(name, []).append(str(example))

    def finish(self):
        for name, done in self.done.items():
            print(f"{name}: {done} compared, {self.different.get(name, 0)} different")
            for example in self.examples.get(name, [])[:3]:
                print(f"    {example}")
        sys.exit(1 if self.different else 0)


class Tally:
    """What became of each case: equal to its peer's, refused as documented, or neither, which it prints at once."""

    def __init__(self):
        self.equal, self.refused, self.other = 0, 0, 0

    def expect_equal(self, name, ours, theirs):
        if ours == theirs:
            self.equal += 1
        else:
            self.other += 1
            print(f"DIFFERS: {name}: {ours} where the peer has {theirs}"[:600])

    def expect_refused(self, name, error, words):
        if error is not None and words in error:
            self.refused += 1
        else:
            self.other += 1
            print(f"NOT REFUSED with '{words}': {name}: {error}"[:600])

    def finish(self):
        print(f"{self.equal} equal, {self.refused} refused as documented, {self.other} other")
        sys.exit(1 if self.other else 0)


def silence_libraries():
    """What C libraries print from here on is dropped; Python's own errors are not."""
    sys.stderr = os.fdopen(os.dup(2), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def lines_of(program, paths):
    """What a program of tests/peers says of each path, a line of JSON each."""
    names = "\n".join(str(path) for path in paths)
    done = subprocess.run([BUILD / "tests" / program], input=names, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def decode_images(files):
    """What tests/peers/decode_images.cpp says of each file, by name."""
    return {line["file"]: line for line in lines_of("peer_decode", files)}


def read_records(paths):
    """What tests/peers/read_records.cpp says of each path, by name."""
    return {line["path"]: line for line in lines_of("peer_records", paths)}


def hash_of(array):
    """SHA-256 of a numpy array's bytes."""
    import numpy

    return hashlib.sha256(numpy.ascontiguousarray(array).tobytes()).hexdigest()


def by_pillow(data, transpose=False):
    """SHA-256 of its RGB pixels, or None where Pillow refuses the file."""
    import numpy
    from PIL import Image, ImageOps

    try:
        image = Image.open(io.BytesIO(data))
        if transpose:
            image = ImageOps.exif_transpose(image)
        if image.mode == "P":  # convert() has no shorter way for palettes with transparency
            image = image.convert("RGBA")
        return hash_of(numpy.asarray(image.convert("RGB")))
    except Exception:
        return None


def by_torchvision(data):
    """The same by torchvision, whose decode_image() tells JPEG and PNG apart."""
    import torch
    from torchvision.io import ImageReadMode, decode_image

    try:
        tensor = decode_image(torch.frombuffer(bytearray(data), dtype=torch.uint8), mode=ImageReadMode.RGB)
        return hash_of(tensor.permute(1, 2, 0).numpy())
    except Exception:
        return None
