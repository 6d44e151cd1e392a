"""Workers that PyTorch's torchrun starts, and starts again after one was killed.

# pypi: torch
"""
import os
import pathlib
import signal
import sys
import unittest

from workers import (PATIENCE, Scratch, Worker, checkpoints_in, processes_of, run, training, wait_until, weights_alone,
                     weights_in, write_digits)

TORCHRUN = pathlib.Path(sys.prefix) / "bin/torchrun"


def torchrun(*options):
    return [TORCHRUN, "--standalone", "--nproc-per-node", "2", "--no-python", *options]


@unittest.skipUnless(TORCHRUN.exists(), "no torchrun in this Python's environment (PyPI: torch)")
class Torchrun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Scratch()
        cls.data = write_digits(cls.scratch / "digits", 600)
        cls.addClassCleanup(cls.scratch.remove)

    def test_two_workers_end_with_the_weights_of_one_process(self):
        words = training(self.data)
        done = run(torchrun(*words))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(weights_in(done.stdout), weights_alone(words, 2))

    def expect_restart_after_the_loss_of(self, lost):
        folder = self.scratch.fresh("restarted")
        checkpoints = folder / "checkpoints"
        words = training(self.data, epochs=8)
        saved = [*words, "--checkpoint-dir", checkpoints, "--checkpoint-every", "10", "--resume"]
        started = Worker(torchrun("--max-restarts=2", *saved), folder / "output", {})
        try:
            self.assertTrue(wait_until(lambda: checkpoints_in(checkpoints) or not started.running), started.output())
            first = processes_of(checkpoints, "RANK")
            os.kill(first[lost], signal.SIGKILL)
            reached = checkpoints_in(checkpoints)[-1]
            self.assertTrue(wait_until(lambda: len(again := processes_of(checkpoints, "RANK")) == 2
                                       and not set(again.values()) & set(first.values())), started.output())
            self.assertEqual(started.status(), 0, started.output())
        finally:
            started.send(signal.SIGTERM)
            started.waiter.join(PATIENCE)
        output = started.output()
        self.assertEqual(weights_in(output), weights_alone(words, 2))
        print(f"worker {lost} killed after step {reached} of 200; the same weights after a restart",
              file=sys.stderr, end=" ... ", flush=True)

    def test_all_start_again_after_the_loss_of_the_chief(self):
        self.expect_restart_after_the_loss_of(0)

    def test_all_start_again_after_the_loss_of_another(self):
        self.expect_restart_after_the_loss_of(1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
