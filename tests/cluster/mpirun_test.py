"""Workers that Open MPI's mpirun starts.

# apt: openmpi-bin
"""
import re
import shutil
import unittest

from workers import Scratch, run, training, weights_alone, weights_in, write_digits

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--tag-output"]


@unittest.skipUnless(shutil.which("mpirun"), "no mpirun (Debian: openmpi-bin)")
class Mpirun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Scratch()
        cls.data = write_digits(cls.scratch / "digits", 300)
        cls.addClassCleanup(cls.scratch.remove)

    def expect_weights_of_one_process(self, workers, environment):
        words = training(self.data)
        done = run([*MPIRUN, "-n", workers, *words], environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(weights_in(done.stdout), weights_alone(words, workers))
        printed = set(re.findall(r"\[\d+,(\d+)\]<stdout>:.*\"final\":true", done.stdout))
        self.assertEqual(printed, {"0"}, "the chief alone prints")

    def test_two_workers_end_with_the_weights_of_one_process(self):
        self.expect_weights_of_one_process(2, {})

    def test_four_workers_end_with_the_weights_of_one_process(self):
        self.expect_weights_of_one_process(4, {})

    def test_values_go_over_gloo_if_that_is_asked_for(self):
        self.expect_weights_of_one_process(2, {"HEADRACE_TRANSPORT": "gloo"})

    def test_mpirun_ends_with_the_status_of_a_refused_run(self):
        done = run([*MPIRUN, "-n", 2, *training(self.data), "--strategy", "parameter-server"])
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("parameter", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
