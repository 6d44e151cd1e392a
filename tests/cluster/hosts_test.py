"""Workers on hosts of their own, which TF_CONFIG names: over a good network, a slow one and one that loses frames.

# apt: iproute2 util-linux
"""
import json
import sys
import time
import unittest

from hosts import Hosts, why_no_hosts
from workers import Scratch, load, training, weights_alone, weights_in, write_digits

STEPS = 10


def variables_of_tf_config(names, port=2222):
    cluster = {"worker": [f"{name}:{port}" for name in names]}
    return [{"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": rank}})}
            for rank in range(len(names))]


@unittest.skipIf(why_no_hosts(), why_no_hosts())
class HostsOfTheirOwn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Scratch()
        cls.data = write_digits(cls.scratch / "digits", 240)
        cls.addClassCleanup(cls.scratch.remove)

    def expect_weights_of_one_process(self, workers, named="names", **network):
        words = training(self.data, epochs=1)
        with Hosts(workers) as hosts:
            hosts.set(**network)
            begin = time.monotonic()
            with hosts.start(words, self.scratch.fresh("run"), variables_of_tf_config(getattr(hosts, named))) as all_:
                self.assertEqual(all_.statuses(), [0] * workers, all_.outputs())
                seconds = time.monotonic() - begin
                self.assertEqual(weights_in(all_[0].output()), weights_alone(words, workers))
            sent, lost = hosts.set()
        self.assertGreater(sent, 1000)
        self.assertAlmostEqual(lost / sent, network.get("loss", 0), delta=0.02)
        self.assertGreater(seconds, STEPS * network.get("delay", 0))
        print(f"{seconds:.1f} s, {sent} frames, {lost} lost, {load()}", file=sys.stderr, end=" ... ", flush=True)

    def test_two_hosts_by_name(self):
        self.expect_weights_of_one_process(2)

    def test_two_hosts_by_address(self):
        self.expect_weights_of_one_process(2, named="addresses")

    def test_four_hosts(self):
        self.expect_weights_of_one_process(4)

    def test_frames_that_take_5_ms(self):
        self.expect_weights_of_one_process(2, delay=0.005)

    def test_5_percent_of_frames_lost(self):
        self.expect_weights_of_one_process(2, loss=0.05)

    def test_the_doctor_names_the_hosts(self):
        with Hosts(2) as hosts:
            words = [training(self.data)[0], "doctor", "--cluster", "--json", "-"]
            with hosts.start(words, self.scratch.fresh("doctor"), variables_of_tf_config(hosts.addresses)) as all_:
                self.assertEqual(all_.statuses(), [0, 0], all_.outputs())
                for worker in all_.all:
                    self.assertEqual(json.loads(worker.output().splitlines()[-1])["hosts"], hosts.names)


if __name__ == "__main__":
    unittest.main(verbosity=2)
