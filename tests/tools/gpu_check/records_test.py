"""Record files as PyTorch's scripts get them."""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

from gpu_checks import machine

sys.path.append(str(machine.ROOT / "bench/peers"))
import recipe_on_records


def png(grey):
    """A picture of 2 x 2 pixels."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = bytes([0, grey, grey, 0, grey, grey])
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class Records(unittest.TestCase):
    @unittest.skipUnless("HEADRACE_BUILD" in os.environ, "no HEADRACE_BUILD")
    def test_images_are_those_that_were_packed(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / "pictures"
            for number in range(4):
                file = folder / f"train/{number % 2}/{number}.png"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(png(50 * number))
            packed = pathlib.Path(scratch) / "pictures.records"
            headrace = pathlib.Path(os.environ["HEADRACE_BUILD"]) / "headrace"
            subprocess.run([headrace, "convert", "--data", folder, "--to", packed], check=True, capture_output=True)
            self.assertEqual(dict(recipe_on_records.images(packed)),
                             {f"train/{number % 2}/{number}.png": png(50 * number) for number in range(4)})
