# peers: pypng numpy
# builds: peer_decode
"""PNGs of every kind that pypng writes, against the pixels that pypng reads: 8 bits, in colour, alpha dropped."""

import io
import itertools
import random
import tempfile
import zlib
from pathlib import Path

import numpy as np
import png

import peers

random.seed(5)
rng = np.random.default_rng(5)
SIZES = [(1, 1), (3, 7), (8, 8), (17, 33)]


def rows_of(height, width, planes, bits):
    return [[int(v) for v in row] for row in rng.integers(0, 1 << bits, (height, width * planes))]


def written(rows, width, height, **options):
    out = io.BytesIO()
    png.Writer(width=width, height=height, **options).write(out, rows)
    return out.getvalue()


def direct_files():
    """Grey and colour of 1 to 16 bits, with alpha or one transparent colour; odd depths are written with sBIT."""
    for (height, width), interlaced in itertools.product(SIZES, (False, True)):
        for grey, alpha, bits in itertools.product((True, False), (False, True), range(1, 17)):
            planes = (1 if grey else 3) + alpha
            options = {"greyscale": grey, "alpha": alpha, "bitdepth": bits, "interlace": interlaced}
            rows = rows_of(height, width, planes, bits)
            yield f"{height}x{width} {options}", written(rows, width, height, **options)
            if not alpha and bits in (1, 2, 4, 8, 16) and (grey or bits >= 8):
                clear = rows[0][0] if grey else tuple(rows[0][:3])
                yield f"{height}x{width} {options} tRNS", written(rows, width, height, transparent=clear, **options)


def palette_files():
    for (height, width), interlaced, bits in itertools.product(SIZES, (False, True), (1, 2, 4, 8)):
        for colors, planes in itertools.product({1, 2, 1 << bits, (1 << bits) // 2 + 1}, (3, 4)):
            if colors > 1 << bits:
                continue
            palette = [tuple(random.randrange(256) for _ in range(planes)) for _ in range(colors)]
            rows = [[random.randrange(colors) for _ in range(width)] for _ in range(height)]
            options = {"palette": palette, "bitdepth": bits, "interlace": interlaced}
            name = f"{height}x{width} {colors} colours of {planes} planes, {bits} bits, interlaced {interlaced}"
            yield name, written(rows, width, height, **options)


def other_files():
    """One picture in other wrappings."""
    rows = rows_of(20, 30, 3, 8)
    for level, gamma, background in itertools.product((0, 1, 9), (None, 0.45), (None, (1, 2, 3))):
        options = {"compression": level, "gamma": gamma, "background": background, "greyscale": False}
        yield f"{options}", written(rows, 30, 20, **options)
    yield "IDAT of 7 bytes each", written(rows, 30, 20, greyscale=False, chunk_limit=7)
    yield "physical size", written(rows, 30, 20, greyscale=False, x_pixels_per_unit=9, y_pixels_per_unit=3)
    data = written(rows, 30, 20, greyscale=False)
    chunks = list(png.Reader(bytes=data).chunks())
    for kind, body in ((b"tEXt", b"a\0b"), (b"zTXt", b"a\0\0" + zlib.compress(b"b" * 99)), (b"prVt", b"anything")):
        out = io.BytesIO()
        png.write_chunks(out, chunks[:1] + [(kind, body)] + chunks[1:])
        yield f"with {kind.decode()}", out.getvalue()


def broken_files():
    """What both refuse: headers that make no sense, and pixels that are not there."""
    rows = rows_of(9, 9, 3, 8)
    chunks = list(png.Reader(bytes=written(rows, 9, 9, greyscale=False)).chunks())

    def rebuilt(change):
        out = io.BytesIO()
        png.write_chunks(out, change(chunks))
        return out.getvalue()

    def with_header(at, value):
        body = bytearray(chunks[0][1])
        body[at] = value
        return rebuilt(lambda all: [(b"IHDR", bytes(body))] + all[1:])

    yield "no width", with_header(3, 0)
    yield "no height", with_header(7, 0)
    for depth in (0, 3, 5, 17, 32):
        yield f"depth {depth}", with_header(8, depth)
    for color in (1, 5, 7, 255):
        yield f"colour type {color}", with_header(9, color)
    yield "compression 1", with_header(10, 1)
    yield "filter method 1", with_header(11, 1)
    yield "interlace 2", with_header(12, 2)
    yield "palette missing", with_header(9, 3)
    yield "more rows than pixels", with_header(7, 10)
    yield "no header", rebuilt(lambda all: all[1:])
    yield "no pixels", rebuilt(lambda all: [one for one in all if one[0] != b"IDAT"])
    yield "two headers", rebuilt(lambda all: all[:1] + all)
    yield "no IEND", rebuilt(lambda all: all[:-1])
    yield "an unknown critical chunk", rebuilt(lambda all: all[:1] + [(b"QQQQ", b"1")] + all[1:])


def by_pypng(data):
    """What pypng reads, made 8-bit RGB as decoders/README.md says; sBIT changes nothing."""
    reader = png.Reader(bytes=data)
    width, height, rows, info = reader.read()
    values = np.array([list(row) for row in rows], np.int64).reshape(height, width, info["planes"])
    if "palette" in info:
        colors = np.array([color[:3] for color in info["palette"]], np.uint8)
        return peers.hash_of(colors[values[..., 0]])
    top = (1 << info["bitdepth"]) - 1
    values = ((values * 255 * 2 + top) // (2 * top)).astype(np.uint8)  # to the nearest
    return peers.hash_of(np.repeat(values[..., :1], 3, axis=2) if info["greyscale"] else values[..., :3])


def main():
    tally = peers.Tally()
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for make, good in ((direct_files, True), (palette_files, True), (other_files, True), (broken_files, False)):
            for name, data in make():
                path = Path(folder) / f"{len(files)}.png"
                path.write_bytes(data)
                files[str(path)] = (name, data, good)
        lines = peers.decode_images(files)
    for path, (name, data, good) in files.items():
        line = lines[path]
        if good:
            tally.expect_equal(name, line.get("pixels", line.get("error")), by_pypng(data))
        else:
            tally.expect_refused(name, line.get("error"), "")
        if not line.get("windows", True):
            tally.expect_equal(f"windows of {name}", "other pixels", "the whole's")
    tally.finish()


if __name__ == "__main__":
    main()
