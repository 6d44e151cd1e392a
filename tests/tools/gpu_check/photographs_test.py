"""The pictures that the check draws where it is given none, and record files as PyTorch's scripts get them."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from gpu_checks import machine, photographs, readers

sys.path.append(str(machine.ROOT / "bench/peers"))
import recipe_on_records


class Photographs(unittest.TestCase):
    def test_a_picture_is_the_same_every_time_and_differs_from_others(self):
        rows = photographs.picture(50, 20, 3)
        self.assertEqual((len(rows), {len(row) for row in rows}), (20, {150}))
        self.assertEqual(rows, photographs.picture(50, 20, 3))
        self.assertNotEqual(rows, photographs.picture(50, 20, 4))

    @unittest.skipUnless("HEADRACE_BUILD" in os.environ, "no HEADRACE_BUILD")
    def test_they_become_jpegs_that_the_engine_reads(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / "pictures"
            for number in range(4):
                file = folder / f"train/{number % 2}/{number}.png"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(photographs.png(300, photographs.picture(300, 240, number)))
            file = pathlib.Path(scratch) / "made.records"
            headrace = pathlib.Path(os.environ["HEADRACE_BUILD"]) / "headrace"
            subprocess.run([headrace, "convert", "--data", folder, "--to", file, "--quality", "85"], check=True,
                           capture_output=True)
            done = subprocess.run([headrace, "digest", "--pipeline", "jpeg-train", "--data", file, "--devices", "cpu:1", "--json",
                                   "-"], check=True, capture_output=True, text=True)
            self.assertEqual(readers.json_lines(done.stdout)[0]["examples"], 4)
            as_they_are = pathlib.Path(scratch) / "pictures.records"
            subprocess.run([headrace, "convert", "--data", folder, "--to", as_they_are], check=True, capture_output=True)
            self.assertEqual(dict(recipe_on_records.images(as_they_are)),
                             {f"train/{number % 2}/{number}.png": (folder / f"train/{number % 2}/{number}.png").read_bytes()
                              for number in range(4)})
