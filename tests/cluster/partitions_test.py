"""What workers say, and how soon, when the network parts them or one of them stands still.

# apt: iproute2 util-linux
"""
import random
import signal
import sys
import time
import unittest

from hosts import Hosts, why_no_hosts
from hosts_test import variables_of_tf_config
from workers import START_AGAIN, Scratch, checkpoints_in, load, training, wait_until, write_digits

DEADLINE = 3  # --worker-call-timeout
ON_TIME = DEADLINE + 1
MOMENT = random.Random(1)
BUSY = 2  # more seconds that a machine may take which has other work


@unittest.skipIf(why_no_hosts(), why_no_hosts())
class Partitions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Scratch()
        cls.data = write_digits(cls.scratch / "digits", 240)
        cls.addClassCleanup(cls.scratch.remove)

    def run_beyond_step_20(self, hosts):
        folder = self.scratch.fresh("run")
        words = training(self.data, "--worker-call-timeout", DEADLINE, "--checkpoint-dir", folder / "checkpoints",
                         "--checkpoint-every", 20, epochs=100_000)
        workers = hosts.start(words, folder, variables_of_tf_config(hosts.names))
        self.assertTrue(wait_until(lambda: checkpoints_in(folder / "checkpoints")), workers.outputs())
        time.sleep(MOMENT.uniform(0, 0.5))
        return workers

    def expect_ends(self, workers, ranks, since):
        """They end soon, asking to be started again."""
        wait_until(lambda: not any(workers[rank].running for rank in ranks), 4 * ON_TIME)
        for rank in ranks:
            self.assertFalse(workers[rank].running, f"worker {rank} has not ended: {workers.outputs()}")
            self.assertEqual(workers[rank].status(), START_AGAIN, workers.outputs())
        ended = [workers[rank].ended - since for rank in ranks]
        print(f"ended after {', '.join(f'{one:.2f}' for one in ended)} s, "
              f"{sum(one <= ON_TIME for one in ended)} of {len(ended)} within {ON_TIME} s, {load()}",
              file=sys.stderr, end=" ... ", flush=True)
        self.assertLess(max(ended), ON_TIME + BUSY, workers.outputs())

    def expect_blame(self, worker, rank, others):
        """It names one of them: by its host and process, or by its address."""
        names = "|".join(rf"worker {other} (?:\(|\(expected |)(?:at )?node-{'abcdefgh'[other]}\b" for other in others)
        said = [line for line in worker.output().splitlines() if line.startswith("headrace: ")]
        self.assertRegex(said[0].partition(f"worker {rank} (node")[2] or said[0], names)

    def expect_both_sides_to_end(self, count, cut):
        with Hosts(count) as hosts, self.run_beyond_step_20(hosts) as workers:
            hosts.set(cut=cut)
            self.expect_ends(workers, range(count), time.monotonic())
            for rank in range(count):
                self.expect_blame(workers[rank], rank, [other for other in range(count) if (other in cut) != (rank in cut)])

    def test_two_hosts_are_parted(self):
        self.expect_both_sides_to_end(2, {1})

    def test_one_of_three_hosts_is_parted_from_the_chief(self):
        self.expect_both_sides_to_end(3, {2})

    def test_the_chief_is_parted_from_two_others(self):
        self.expect_both_sides_to_end(3, {0})

    def test_two_and_two_hosts_are_parted(self):
        self.expect_both_sides_to_end(4, {2, 3})

    def expect_a_stopped_worker_to_be_named(self, count, stopped):
        with Hosts(count) as hosts, self.run_beyond_step_20(hosts) as workers:
            workers[stopped].send(signal.SIGSTOP)
            others = [rank for rank in range(count) if rank != stopped]
            self.expect_ends(workers, others, time.monotonic())
            for rank in others:
                self.expect_blame(workers[rank], rank, [stopped])
            workers[stopped].send(signal.SIGCONT)
            self.assertEqual(workers[stopped].status(), START_AGAIN, workers.outputs())

    def test_a_worker_that_stands_still_is_named(self):
        self.expect_a_stopped_worker_to_be_named(3, 1)

    def test_a_chief_that_stands_still_is_named(self):
        self.expect_a_stopped_worker_to_be_named(3, 0)

    def test_an_interruption_shorter_than_the_deadline_is_survived(self):
        with Hosts(2) as hosts, self.run_beyond_step_20(hosts) as workers:
            hosts.set(cut={1})
            time.sleep(1)
            hosts.set()
            time.sleep(3)
            self.assertTrue(workers[0].running and workers[1].running, workers.outputs())


if __name__ == "__main__":
    unittest.main(verbosity=2)
