"""What the loaders of a world's workers serve: together each record once an epoch, in the batches of one process."""
import collections
import unittest

from workers import COMMAND, HELD_OUT, Scratch, lines_in, run, write_digits

IMAGES, EPOCHS, BATCH = HELD_OUT + 37, 2, 1000  # the last batch of an epoch is not full


class Ledgers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Scratch()
        cls.addClassCleanup(cls.scratch.remove)
        cls.data = write_digits(cls.scratch / "digits", IMAGES - HELD_OUT)

    def ledger(self, replicas, *part):
        done = run([COMMAND, "ledger", "--pipeline", "mnist-train", "--data", self.data, "--global-batch", BATCH, "--epochs",
                    EPOCHS, "--replicas", replicas, "--json", "-", *part])
        self.assertEqual(done.returncode, 0, done.stderr)
        return [(line["epoch"], line["step"], line["replica"], line["record"]) for line in lines_in(done.stdout)
                if "record" in line]

    def expect_one_pass_an_epoch(self, workers):
        parts = [self.ledger(1, "--world", workers, "--first", rank) for rank in range(workers)]
        union = [entry for part in parts for entry in part]
        served = collections.Counter((epoch, record) for epoch, _, _, record in union)
        self.assertEqual(set(served.values()), {1})
        self.assertEqual(len(served), EPOCHS * IMAGES)
        self.assertEqual(sorted(union), sorted(self.ledger(workers)))
        self.assertLessEqual(max(map(len, parts)) - min(map(len, parts)), EPOCHS * (IMAGES // BATCH + 1))

    def test_two_workers(self):
        self.expect_one_pass_an_epoch(2)

    def test_three_workers(self):
        self.expect_one_pass_an_epoch(3)

    def test_eight_workers(self):
        self.expect_one_pass_an_epoch(8)


if __name__ == "__main__":
    unittest.main(verbosity=2)
