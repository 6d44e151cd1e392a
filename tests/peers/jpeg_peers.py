# peers: pillow torchvision numpy
# builds: peer_decode
"""JPEGs, whole and damaged, against Pillow and torchvision."""

import io
import random
import tempfile
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageFile

import peers

warnings.simplefilter("ignore")
ImageFile.LOAD_TRUNCATED_IMAGES = False
rng = np.random.default_rng(3)
random.seed(3)


def picture(height, width, channels):
    """Smooth shapes, edges and some noise."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [
        128 + 60 * np.sin(x / (7 + c) + c) + 50 * np.cos(y / (11 - c)) + 30 * ((x // 23 + y // 17) % 2)
        for c in range(channels)
    ]
    noisy = np.stack(planes, axis=-1) + rng.normal(0, 6, (height, width, channels))
    return np.clip(noisy, 0, 255).astype(np.uint8).squeeze()


def jpeg(image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", **options)
    return out.getvalue()


def segments(data):
    """(marker, begin, end) of each segment before the entropy-coded data."""
    at = 2
    while True:
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        yield data[at + 1], at, end
        if data[at + 1] == 0xDA:
            return
        at = end


def without(data, marker):
    for kind, begin, end in segments(data):
        if kind == marker:
            return data[:begin] + data[end:]
    raise ValueError("no such segment")


def inserted(data, at, more):
    return data[:at] + more + data[at:]


def good_files():
    for height, width in [(1, 1), (7, 9), (16, 17), (61, 83), (120, 161)]:
        color, grey = (Image.fromarray(picture(height, width, c)) if height > 1 else None for c in (3, 1))
        if color is None:
            color, grey = Image.new("RGB", (1, 1), (9, 99, 199)), Image.new("L", (1, 1), 77)
        for quality in (20, 75, 95, 100):
            for subsampling in (0, 1, 2):
                for extra in ({}, {"progressive": True}, {"optimize": True}, {"restart_marker_rows": 1}):
                    name = f"{height}x{width} q{quality} s{subsampling} {extra}"
                    yield name, jpeg(color, quality=quality, subsampling=subsampling, **extra)
            yield f"{height}x{width} grey q{quality}", jpeg(grey, quality=quality)
        ink = jpeg(color.convert("CMYK"), quality=90)
        yield f"{height}x{width} ink", ink
        yield f"{height}x{width} ink without Adobe's marker", without(ink, 0xEE)
        yield f"{height}x{width} RGB", jpeg(color, quality=90, keep_rgb=True, subsampling=0)


def harmless_files(data):
    starts = [begin for _, begin, _ in segments(data)]
    for i, at in enumerate(starts[1:]):  # before the first one nobody takes it for a JPEG
        yield f"junk before segment {i}", inserted(data, at, b"junk that is no segment")
    yield "EXIF block longer than it says", inserted(data, 2, b"\xff\xe1\x00\x0cExif\0\0MM\0\x2a and more than that")
    yield "EXIF block of nonsense", inserted(data, 2, b"\xff\xe1\x00\x20Exif\0\0" + b"\xee" * 24)
    yield "zeros before the end mark", data[:-2] + b"\0" * 40 + data[-2:]
    yield "bytes behind the end mark", data + b"not part of it"
    scan = starts[-1]
    yield "other scan parameters", data[: scan + 11] + b"\x05" + data[scan + 12 :]


def damaged_files(data, flips):
    for percent in range(1, 100):
        yield f"cut to {percent} %", data[: len(data) * percent // 100]
    for percent in range(5, 100, 5):
        kept = len(data) * percent // 100
        yield f"zeros from {percent} %", data[:kept] + bytes(len(data) - kept)
    for i in range(flips):
        other = bytearray(data)
        bit = random.randrange(len(data) * 8)
        other[bit // 8] ^= 1 << bit % 8
        yield f"flipped bit {bit}", bytes(other)


def main():
    checks = peers.Checks()
    with tempfile.TemporaryDirectory() as folder:
        files, before = {}, {}

        def add(topic, name, data):
            path = Path(folder) / f"{len(files)}.jpg"
            path.write_bytes(data)
            files[str(path)] = (topic, name, data)

        for name, data in good_files():
            add("good", name, data)
        image = Image.fromarray(picture(93, 131, 3))
        for progressive in (False, True):
            plain = jpeg(image, quality=80, progressive=progressive)
            before[progressive] = peers.by_pillow(plain)
            for name, data in harmless_files(plain) if not progressive else ():
                add("harmless", name, data)
            for name, data in damaged_files(plain, 1000):
                add("damaged", f"progressive {progressive}, {name}", data)
            for orientation in range(1, 9):
                exif = Image.Exif()
                exif[0x0112] = orientation
                add("oriented", f"{orientation}", jpeg(image, quality=80, progressive=progressive, exif=exif))
        lines = peers.decode_images(files)
        peers.silence_libraries()  # torchvision's libjpeg prints its warnings
        counts = {
            "accepted": 0,
            "of these with other pixels than before the damage": 0,
            "with a warning": 0,
            "refused": 0,
            "of these read by Pillow": 0,
            "with the pixels from before the damage": 0,
        }
        for path, (topic, name, data) in files.items():
            line = lines[path]
            ours, pillow, torchvision = line.get("pixels"), peers.by_pillow(data), peers.by_torchvision(data)
            checks.expect(f"{topic}: windows as the whole", line.get("windows", True), name)
            if topic == "damaged":
                whole = before[name.startswith("progressive True")]
                counts["accepted" if ours else "refused"] += 1
                counts["of these with other pixels than before the damage"] += ours not in (None, whole)
                counts["with a warning"] += bool(line.get("warning"))
                counts["of these read by Pillow"] += ours is None and pillow is not None
                counts["with the pixels from before the damage"] += ours is None and pillow == whole
                if ours is not None:
                    checks.expect("damaged but accepted: pixels as Pillow's", ours == pillow, name)
                continue
            checks.expect(f"{topic}: pixels as Pillow's", ours is not None and ours == pillow, (name, line))
            checks.expect(f"{topic}: pixels as torchvision's", ours is not None and ours == torchvision, (name, line))
            if topic == "oriented":
                checks.expect("oriented: orientation", line["orientation"] == int(name), line)
                checks.expect(
                    "oriented: pixels as exif_transpose's", line["oriented"] == peers.by_pillow(data, True), name
                )
        print("damaged:", ", ".join(f"{count} {what}" for what, count in counts.items()))
    checks.finish()


if __name__ == "__main__":
    main()
