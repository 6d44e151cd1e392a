# peers: pillow torchvision numpy
# builds: peer_decode
"""PNGs, whole and damaged, against Pillow and torchvision."""

import io
import random
import struct
import tempfile
import warnings
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

import peers

warnings.simplefilter("ignore")
rng = np.random.default_rng(4)
random.seed(4)


def png(image, **options):
    out = io.BytesIO()
    image.save(out, "PNG", **options)
    return out.getvalue()


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def chunks(data):
    at = 8
    while at < len(data):
        length = struct.unpack(">I", data[at : at + 4])[0]
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        at += 12 + length


def rebuilt(data, change):
    """The file with what `change(kind, body)` gives in place of each chunk: a list of chunks."""
    return data[:8] + b"".join(chunk(*one) for kind, body in chunks(data) for one in change(kind, body))


def good_files():
    for height, width in [(1, 1), (7, 9), (64, 81)]:
        for mode, channels in (("L", 1), ("LA", 2), ("RGB", 3), ("RGBA", 4)):
            array = rng.integers(0, 256, (height, width, channels), dtype=np.uint8)
            yield f"{mode} {height}x{width}", png(Image.fromarray(array.squeeze(-1) if channels == 1 else array))
        color = Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
        for colors in (2, 16, 256):
            yield f"palette of {colors} {height}x{width}", png(color.quantize(colors))
        yield f"1 bit {height}x{width}", png(color.convert("1"))


def main():
    checks = peers.Checks()
    with tempfile.TemporaryDirectory() as folder:
        files = {}

        def add(topic, name, data):
            path = Path(folder) / f"{len(files)}.png"
            path.write_bytes(data)
            files[str(path)] = (topic, name, data)

        for name, data in good_files():
            add("good", name, data)
        image = Image.fromarray(rng.integers(0, 256, (40, 57, 3), dtype=np.uint8) // 16 * 16)
        plain = png(image)
        add("harmless", "data behind the zlib stream", rebuilt(
            plain, lambda kind, body: [(kind, body + b"\0" * 9 if kind == b"IDAT" else body)]))
        add("harmless", "an IDAT of zeros behind the pixels", rebuilt(
            plain, lambda kind, body: [(b"IDAT", b"\0" * 5), (kind, body)] if kind == b"IEND" else [(kind, body)]))
        add("harmless", "bytes behind IEND", plain + b"not part of it")
        for orientation in range(1, 9):
            exif = Image.Exif()
            exif[0x0112] = orientation
            add("oriented", f"{orientation}", png(image, exif=exif))
        for i in range(1000):
            other = bytearray(plain)
            bit = random.randrange(len(plain) * 8)
            other[bit // 8] ^= 1 << bit % 8
            add("damaged", f"flipped bit {bit}", bytes(other))
        for percent in range(1, 100):
            add("damaged", f"cut to {percent} %", plain[: len(plain) * percent // 100])
        lines = peers.decode_images(files)
        peers.silence_libraries()
        for path, (topic, name, data) in files.items():
            line = lines[path]
            ours = line.get("pixels")
            checks.expect(f"{topic}: windows as the whole", line.get("windows", True), name)
            if topic == "damaged":
                checks.expect("damaged: refused", ours is None, name)
                continue
            checks.expect(f"{topic}: pixels as Pillow's", ours == peers.by_pillow(data), (name, line))
            checks.expect(f"{topic}: pixels as torchvision's", ours == peers.by_torchvision(data), (name, line))
            if topic == "oriented":
                checks.expect("oriented: pixels as exif_transpose's", line["oriented"] == peers.by_pillow(data, True), name)
    checks.finish()


if __name__ == "__main__":
    main()
