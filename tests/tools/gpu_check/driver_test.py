"""What asks the driver itself, over a libcuda.so.1 that only pretends: the context that is held, the epoch that is profiled."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from gpu_checks import context, readers
from gpu_checks.runner import Runner

DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
static int say(const char *what) { return fprintf(stderr, "driver: %s\n", what) < 0; }
int cuInit(unsigned flags) { return getenv("PRETENDED_NO_GPU") ? 100 : 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal == 3 ? 0 : 101; }
int cuDeviceGetAttribute(int *value, int which, int device) {
  *value = which == 20 && getenv("PRETENDED_EXCLUSIVE") ? 3 : 0;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &device; return say("retained"); }
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

    def said(self, device, **environment):
        runner = Runner(self.folder / "logs", 60, dict(os.environ) | {"LD_LIBRARY_PATH": str(self.folder)} | environment)
        with context.held(runner, device) as state:
            end = time.monotonic() + 60
            while "not answered" in (said := state()) or said == "driver: retained":
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)
        return said

    def test_a_context_is_held(self):
        self.assertEqual(self.said("cuda:3"), "driver: retained\nheld")

    def test_why_none_is_held(self):
        self.assertEqual(self.said("cuda:0"), "cuDeviceGet failed with error 101")
        self.assertEqual(self.said("cuda:3", PRETENDED_NO_GPU="1"), "cuInit failed with error 100")
        self.assertIn("one process at a time", self.said("cuda:3", PRETENDED_EXCLUSIVE="1"))

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
