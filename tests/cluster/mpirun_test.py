"""Workers that Open MPI's mpirun starts.

# apt: openmpi-bin
"""
import os
import re
import shutil
import signal
import unittest

from workers import (BUILD, COMMAND, Scratch, Worker, checkpoints_in, lines_in, processes_of, run, training, wait_until,
                     weights_alone, weights_in, write_digits)

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

    def expect_transport(self, transport, environment):
        done = run([*MPIRUN[:-1], "-n", 2, COMMAND, "doctor", "--cluster", "--json", "-"], environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual({line["transport"] for line in lines_in(done.stdout)}, {transport}, done.stdout + done.stderr)

    @unittest.skipUnless((BUILD / "libheadrace_mpi.so").exists(), "a build without MPI")
    def test_values_go_over_mpi_if_nothing_is_asked_for(self):
        self.expect_transport("mpi", {})
        self.expect_transport("gloo", {"HEADRACE_TRANSPORT": "gloo"})

    def expect_to_go_on_after_the_loss_of(self, lost):
        folder = self.scratch.fresh("killed")
        checkpoints = folder / "checkpoints"
        words = training(self.data, epochs=8)
        saved = [*MPIRUN, "-n", "2", *words, "--checkpoint-dir", checkpoints, "--checkpoint-every", "10", "--resume"]
        first = Worker(saved, folder / "output", {})
        self.assertTrue(wait_until(lambda: checkpoints_in(checkpoints) or not first.running), first.output())
        os.kill(processes_of(checkpoints, "OMPI_COMM_WORLD_RANK")[lost], signal.SIGKILL)
        self.assertNotEqual(first.status(), 0, first.output())
        self.assertTrue(wait_until(lambda: not processes_of(checkpoints, "OMPI_COMM_WORLD_RANK")))
        again = run(saved)
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertEqual(weights_in(again.stdout), weights_alone(words, 2))

    def test_the_loss_of_the_chief_ends_all_which_go_on_when_started_again(self):
        self.expect_to_go_on_after_the_loss_of(0)

    def test_the_loss_of_another_ends_all_which_go_on_when_started_again(self):
        self.expect_to_go_on_after_the_loss_of(1)

    def test_mpirun_ends_with_the_status_of_a_refused_run(self):
        done = run([*MPIRUN, "-n", 2, *training(self.data), "--strategy", "parameter-server"])
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("parameter", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
