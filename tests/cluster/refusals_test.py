"""Worlds that cannot train: what is said, by whom, and that nothing was trained or written before."""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import time
import unittest

from workers import (BUILD, COMMAND, START_AGAIN, Scratch, Worker, Workers, checkpoints_in, free_port, lines_in, run,
                     started, training, variables_of_torchrun, wait_until, weights_alone, weights_in, write_digits)

WRONG_USAGE, FAILED = 2, 1


def small_disk(folder, size):
    """Returns why there can be none, or None."""
    if os.geteuid() != 0:
        return "needs root"
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, text=True,
                          check=False)
    return done.stderr.strip() or None


def said(worker):
    return "".join(line + "\n" for line in worker.output().splitlines() if not line.startswith("{"))


class Refusals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Scratch()
        cls.data = write_digits(cls.scratch / "digits", 600)
        cls.addClassCleanup(cls.scratch.remove)

    def different(self, words_of_others, rank=1, workers=3):
        """Workers of which one was started with other words."""
        port, folder = free_port(), self.scratch.fresh("different")
        world = Workers([], folder, [])
        for each in range(workers):
            words = words_of_others if each == rank else training(self.data)
            world.all.append(Worker(words, folder / f"output-{each}", variables_of_torchrun(each, workers, port)))
        return world

    def expect_refused_by_all(self, words_of_others, message):
        with self.different(words_of_others) as workers:
            self.assertEqual(workers.statuses(), [FAILED] * 3, workers.outputs())
            for worker in workers.all:
                self.assertRegex(worker.output(), message)
                self.assertEqual(lines_in(worker.output()), [], "it trained before it was refused")

    def test_other_data_on_one_worker(self):
        other = write_digits(self.scratch / "other", 600, seed=2)
        message = r"the workers differ in their data: .*fingerprint \w+ of workers 0, 2, .*fingerprint \w+ of worker 1"
        self.expect_refused_by_all(training(other), message)

    def test_fewer_data_on_one_worker(self):
        fewer = write_digits(self.scratch / "fewer", 599)
        self.expect_refused_by_all(training(fewer), r"the workers differ in their data: .* of worker 1")

    def test_another_seed_on_one_worker(self):
        self.expect_refused_by_all(training(self.data, "--seed", 3),
                                   r"the workers differ in their --seed: .*3 of worker 1")

    def test_another_recipe_on_one_worker(self):
        self.expect_refused_by_all(training(self.data, recipe="fashion-mnist"), r"the workers differ in their --recipe: ")

    def test_another_build_on_one_worker(self):
        """The other build is a copy of this one in which its name was changed."""
        folder = self.scratch.fresh("build")
        for module in pathlib.Path(BUILD).glob("libheadrace*.so"):
            shutil.copy(module, folder)
        code = pathlib.Path(COMMAND).read_bytes()
        self.assertEqual(code.count(b", compiled by "), 1)
        at = code.index(b", compiled by ")
        other = folder / "headrace"
        other.write_bytes(code[:at - 1] + b"9" + code[at:])
        other.chmod(stat.S_IRWXU)
        self.expect_refused_by_all([other, *training(self.data)[1:]],
                                   r"worker 1.* runs Headrace [\d.]+9, compiled by .*, worker 0 runs Headrace")

    def test_a_world_of_another_size(self):
        port, folder = free_port(), self.scratch.fresh("size")
        variables = [variables_of_torchrun(0, 2, port), variables_of_torchrun(1, 3, port)]
        with Workers(training(self.data, "--worker-start-timeout", 3), folder, variables) as workers:
            workers.statuses()
            self.assertIn("worker 1 counts 3 workers, worker 0 counts 2", workers[1].output())

    def test_two_that_say_they_are_the_same_worker(self):
        port, folder = free_port(), self.scratch.fresh("twice")
        variables = [variables_of_torchrun(rank, 3, port) for rank in (0, 1, 1)]
        with Workers(training(self.data, "--worker-start-timeout", 3), folder, variables) as workers:
            workers.statuses()
            self.assertIn("two processes say that they are worker 1", workers.outputs())

    def test_a_parameter_server_in_tf_config(self):
        cluster = {"worker": ["node-a:2222", "node-b:2222"], "ps": ["node-c:2222"]}
        for task in ("worker", "ps"):
            config = json.dumps({"cluster": cluster, "task": {"type": task, "index": 0}})
            done = run(training(self.data), {"TF_CONFIG": config})
            self.assertEqual(done.returncode, WRONG_USAGE)
            self.assertEqual(done.stdout, "")
            sentence, hint = done.stderr.splitlines()
            self.assertEqual(sentence, 'headrace: TF_CONFIG has parameter servers ("ps"): training by parameter server is not '
                             'provided')
            self.assertIn("multi-worker mirrored", hint)

    def test_a_second_run_on_one_checkpoint_folder(self):
        checkpoints = self.scratch.fresh("shared") / "checkpoints"
        words = training(self.data, "--checkpoint-dir", checkpoints, "--checkpoint-every", 10, "--resume", epochs=100_000)
        with started(words, self.scratch.fresh("first"), 2) as first:
            self.assertTrue(wait_until(lambda: checkpoints_in(checkpoints)), first.outputs())
            begin = time.monotonic()
            with started(words, self.scratch.fresh("second"), 2) as second:
                self.assertEqual(second.statuses(), [FAILED, START_AGAIN], second.outputs())
                seconds = time.monotonic() - begin
                self.assertRegex(said(second[0]), "another training")
                self.assertRegex(said(second[1]), "worker 0 .*another training")
            self.assertTrue(first[0].running and first[1].running, first.outputs())
        print(f"refused after {seconds:.1f} s", file=sys.stderr, end=" ... ", flush=True)

    def test_a_full_disk_at_the_chief(self):
        disk = self.scratch.fresh("disk")
        why_not = small_disk(disk, "5m")  # for one checkpoint and a half
        if why_not:
            self.skipTest(why_not)
        try:
            words = training(self.data, "--checkpoint-dir", disk, "--checkpoint-every", 5, "--resume", epochs=3)
            with started(words, self.scratch.fresh("full"), 2) as workers:
                self.assertEqual(workers.statuses(), [FAILED, START_AGAIN], workers.outputs())
                self.assertRegex(said(workers[0]), "checkpoint-10.*No space left on device")
                self.assertRegex(said(workers[1]), r"worker 0 \(.* failed: .*No space left on device")
            self.assertEqual(os.listdir(disk), ["checkpoint-5.safetensors"], "an unfinished file is left")
            subprocess.run(["mount", "-o", "remount,size=50m", disk], check=True)
            with started(words, self.scratch.fresh("freed"), 2) as workers:
                self.assertEqual(workers.statuses(), [0, 0], workers.outputs())
                self.assertEqual(weights_in(workers[0].output()), weights_alone(training(self.data, epochs=3), 2))
        finally:
            subprocess.run(["umount", disk], check=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
