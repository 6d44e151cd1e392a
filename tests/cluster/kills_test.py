"""Fifty times a worker is killed at a random moment. The others end at once and name it; started again, all go on and end with
the weights of an undisturbed run, and with its losses and metrics of every epoch: each record was trained on once."""
import os
import random
import re
import signal
import statistics
import sys
import time
import unittest

from workers import (START_AGAIN, Scratch, checkpoints_in, epochs_in, load, output_alone, started, training, wait_until,
                     weights_in, write_cifar, write_digits)

AT_ONCE = 1  # seconds
BUSY = 4  # more of them that a machine may take which has other work
LIFE = 2  # the maximum of seconds before a kill
MOMENTS = ("start", "step", "collective", "save", "any")
SEED = int(os.environ.get("HEADRACE_SEED", "1"))
LIMITS = ("--worker-start-timeout", 10, "--worker-call-timeout", 20)


def told(words):
    """What a survivor says of the moment: where the lost worker was, if the chief knew it, and in which call it waited."""
    moment = re.search(r"last heard of at (?:the )?([a-z]+)", words)
    call = re.search(r"while this worker was in ([a-z-]+)", words)
    return [f"lost at {moment.group(1)}" if moment else "", f"waiting in {call.group(1)}" if call else "not waiting"]


class History:
    """A training that is killed and resumed until it ends."""

    def __init__(self, test, folder, words, chance):
        self.test, self.folder, self.chance = test, folder, chance
        self.checkpoints = folder / "checkpoints"
        self.words = [*words, "--checkpoint-dir", str(self.checkpoints), "--checkpoint-every", "5", "--resume",
                      *map(str, LIMITS)]
        self.seconds, self.moments, self.lives = [], [], 0

    def start(self, workers):
        self.lives += 1
        folder = self.folder / f"life-{self.lives}"
        folder.mkdir()
        return started(self.words, folder, workers)

    def wait_for(self, moment, workers, lost):
        """Returns whether the run has not ended by then."""
        if moment == "start":
            time.sleep(self.chance.uniform(0, 0.2))
        elif moment == "any":
            time.sleep(self.chance.uniform(0, LIFE))
        else:
            before = checkpoints_in(self.checkpoints)[-1:]
            wait_until(lambda: checkpoints_in(self.checkpoints)[-1:] != before or not workers[0].running)
            time.sleep(self.chance.uniform(0, 0.2))
        if moment == "collective":  # it waits for one that stands still
            workers[(lost + 1) % len(workers)].send(signal.SIGSTOP)
            time.sleep(0.05)
        if moment == "save" and wait_until(self.is_saving, LIFE, pause=0.0002):
            self.moments.append("killed in a save")
        return workers[lost].running

    def is_saving(self):
        names = os.listdir(self.checkpoints) if self.checkpoints.exists() else []
        return any(not re.fullmatch(r"checkpoint-\d+\.safetensors|LOCK", name) for name in names)

    def kill_one(self, count, moment):
        """Returns whether one was killed, and not ended before."""
        lost = self.chance.randrange(count)
        with self.start(count) as workers:
            alive = self.wait_for(moment, workers, lost)
            workers[lost].send(signal.SIGKILL)
            since = time.monotonic()
            for worker in workers.all:
                worker.send(signal.SIGCONT)
            workers.statuses()
            if self.is_saving():  # an unfinished file is left
                self.moments.append("saves cut short")
            if not alive or workers[lost].status() != 128 + signal.SIGKILL or 0 in workers.statuses():
                return False
            for rank in range(count):
                if rank != lost:
                    self.expect_end(workers, rank, lost, since)
        return True

    def expect_end(self, workers, rank, lost, since):
        words, test = workers[rank].output(), self.test
        test.assertEqual(workers[rank].status(), START_AGAIN, f"worker {lost} killed\n{workers.outputs()}")
        if "reached no coordinator" in words:  # this worker was started before the chief, and waits no longer than it says
            self.moments.append("lost before it joined, the chief is blamed")
            return
        test.assertRegex(words, rf"worker {lost}\b", words)
        if "there is no worker" in words:  # nobody knew it yet
            self.moments.append("lost before it joined")
            return
        seconds = workers[rank].ended - since
        self.moments.extend(told(words))
        self.seconds.append(seconds)
        test.assertLess(seconds, AT_ONCE + BUSY, words)

    def finish(self, count):
        with self.start(count) as workers:
            self.test.assertEqual(workers.statuses(), [0] * count, workers.outputs())
            return workers[0].output()


class Kills(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Scratch()
        cls.digits = write_digits(cls.scratch / "digits", 600)
        cls.photos = write_cifar(cls.scratch / "photos", 60)
        cls.seconds, cls.moments = [], []
        cls.addClassCleanup(cls.scratch.remove)

    @classmethod
    def tearDownClass(cls):
        if not cls.seconds:
            return
        ordered = sorted(cls.seconds)
        counts = ", ".join(f"{name} {cls.moments.count(name)}" for name in sorted(set(cls.moments)) if name)
        print(f"\n{len(ordered)} survivors ended after {statistics.median(ordered):.2f} s (median), "
              f"{ordered[len(ordered) * 9 // 10]:.2f} s (9 of 10), {ordered[-1]:.2f} s (maximum); "
              f"{sum(one <= AT_ONCE for one in ordered)} within {AT_ONCE} s; {load()}\n"
              f"{counts}", file=sys.stderr)

    def expect_to_survive(self, kills, words, numbers, undisturbed):
        """`numbers` of workers, one of which each life has."""
        chance = random.Random(f"{SEED} {self.id()}")
        history = History(self, self.scratch.fresh("history"), words, chance)
        killed = 0
        for attempt in range(3 * kills):
            killed += history.kill_one(chance.choice(numbers), MOMENTS[attempt % len(MOMENTS)])
            if killed == kills:
                break
        output = history.finish(numbers[0])
        self.seconds.extend(history.seconds)
        self.moments.extend(history.moments)
        print(f"{killed} kills in {history.lives} lives", file=sys.stderr, end=" ... ", flush=True)
        self.assertEqual(killed, kills)
        self.assertEqual(weights_in(output), weights_in(undisturbed))
        self.assertEqual(epochs_in(output), epochs_in(undisturbed))

    def test_two_workers(self):
        words = training(self.digits, epochs=40)
        self.expect_to_survive(15, words, [2], output_alone(words, 2))

    def test_three_workers(self):
        words = training(self.digits, epochs=40)
        self.expect_to_survive(15, words, [3], output_alone(words, 3))

    def test_two_workers_of_a_net_with_dropout_and_batch_norm(self):
        words = training(self.photos, recipe="cifar10-cnn", epochs=20)
        self.expect_to_survive(10, words, [2], output_alone(words, 2))

    def test_another_number_of_workers_each_time(self):
        words = training(self.digits, "--deterministic", epochs=20)
        self.expect_to_survive(10, words, [1, 2, 4], output_alone(words, 1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
