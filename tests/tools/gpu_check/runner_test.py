"""How commands are run, watched, stopped and left behind."""
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

from gpu_checks import runner
from gpu_checks.runner import Runner


def runs(stat_file):
    try:
        return stat_file.read_text().split()[2] != "Z"
    except OSError:
        return False


class Running(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.runner = Runner(self.folder / "logs", 60, dict(os.environ))

    def test_a_failure_is_told_with_its_last_lines(self):
        outcome = self.runner.run("a", ["sh", "-c", "echo zero; echo one; echo two >&2; exit 3"])
        self.assertEqual((outcome.status, outcome.why), (3, "exit status 3: one / two"))
        self.assertEqual((self.folder / "logs/a.log").read_text(), "zero\none\ntwo\n")

    def test_at_its_limit_a_command_ends_with_its_children(self):
        self.runner.begin_part(1.5)
        start = time.monotonic()
        outcome = self.runner.run("a", ["sh", "-c", "sleep 500 & echo $!; wait"])
        self.assertIsNone(outcome.status)
        self.assertIn("time limit", outcome.why)
        self.assertRegex(outcome.output, r"^\d+\n$")
        child = pathlib.Path("/proc") / outcome.output.strip() / "stat"
        while runs(child):  # it was told to end, and ends in its own time
            self.assertLess(time.monotonic() - start, 60)
            time.sleep(0.01)

    def test_a_limit_within_a_part_leaves_the_rest_of_it(self):
        with self.runner.at_most(0.2):
            self.assertIsNone(self.runner.run("a", ["sleep", "50"]).status)
        self.assertEqual(self.runner.run("b", ["true"]).status, 0)

    def test_a_command_that_has_done_enough_is_ended_and_went_well(self):
        outcome = self.runner.run("a", ["sh", "-c", "while true; do echo row; sleep 0.05; done"],
                                  watch=lambda output: output.count("row") >= 3)
        self.assertEqual((outcome.status, outcome.why), (0, ""))

    def test_a_program_that_is_not_there(self):
        self.assertIn("cannot start", self.runner.run("a", [self.folder / "nothing"]).why)

    def test_one_that_says_nothing_more_is_stopped_early(self):
        start = time.monotonic()
        outcome = self.runner.run("a", ["sh", "-c", "echo begun; sleep 500"], quiet=0.5)
        self.assertLess(time.monotonic() - start, 30)
        self.assertIn("printed nothing more", outcome.why)
        self.assertEqual(outcome.output, "begun\n")

    def test_one_that_keeps_talking_is_not(self):
        outcome = self.runner.run("a", ["sh", "-c", "for i in 1 2 3 4 5 6; do echo $i; sleep 0.3; done"], quiet=1.5)
        self.assertEqual((outcome.status, outcome.why), (0, ""))

    def test_what_no_signal_ends_is_left_behind(self):
        class Hanging:  # as in a call of the driver that never returns
            pid = 2**22 + 1  # above every process's number

            def wait(self, seconds):
                time.sleep(seconds)
                raise subprocess.TimeoutExpired("hanging", seconds)

        start = time.monotonic()
        self.assertFalse(runner.stop(Hanging(), kind=0.1, kill=0.2))
        self.assertLess(time.monotonic() - start, 10)
        self.assertTrue(runner.stop(subprocess.Popen(["sleep", "500"], start_new_session=True)))

    def test_leaving_one_behind_is_told(self):
        usual = runner.stop
        self.addCleanup(setattr, runner, "stop", usual)
        runner.stop = lambda process: usual(process) and False
        self.runner.begin_part(0.3)
        outcome = self.runner.run("a", ["sleep", "500"])
        self.assertIsNone(outcome.status)
        self.assertIn(runner.STOPPED, outcome.why)
        self.assertIn(runner.LEFT_BEHIND, outcome.why)
