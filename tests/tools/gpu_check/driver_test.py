"""What asks the driver itself, over a libcuda.so.1 that only pretends: the epoch that is profiled."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from gpu_checks import readers

DRIVER = r"""
#include <stdio.h>
static int say(const char *what) { return fprintf(stderr, "driver: %s\n", what) < 0; }
int cuProfilerStart(void) { return say("start"); }
int cuProfilerStop(void) { return say("stop"); }
"""
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")


@unittest.skipUnless(shutil.which("cc"), "no C compiler")
class Driver(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "driver.c").write_text(DRIVER)
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", self.folder / "libcuda.so.1",
                        self.folder / "driver.c"], check=True)

    @unittest.skipUnless("HEADRACE_BUILD" in os.environ and FASHION.exists(), "no HEADRACE_BUILD, or no Fashion-MNIST")
    def test_one_epoch_is_profiled(self):
        for epoch, before in ((1, 0), (3, 2)):
            headrace = pathlib.Path(os.environ["HEADRACE_BUILD"]) / "headrace"
            done = subprocess.run(
                [headrace, "train", "--recipe", "mnist-mlp", "--data", FASHION, "--devices", "cpu:1", "--epochs", "4",
                 "--steps-per-epoch", "1", "--profile-epoch", str(epoch), "--verbose", "0", "--json", "/dev/stderr"],
                capture_output=True, text=True, env=dict(os.environ) | {"LD_LIBRARY_PATH": str(self.folder)})
            self.assertEqual(done.returncode, 0, done.stderr)
            order = ["driver" if line.startswith("driver") else "epoch" for line in done.stderr.splitlines()
                     if line.startswith("driver") or readers.json_lines(line) and "epoch" in readers.json_lines(line)[0]]
            started = order.index("driver")
            stopped = order.index("driver", started + 1)
            self.assertEqual(order.count("driver"), 2)
            self.assertLess(done.stderr.index("driver: start"), done.stderr.index("driver: stop"))
            # The line of an epoch is written just before the driver is told, both at the epoch's end.
            self.assertEqual((order[:started].count("epoch"), order[started:stopped].count("epoch")), (before, 1))
