"""Whether virtual shards give one result, on GPUs that are only pretended."""
from gpu_checks.correctness import placements

from gpu_check.pretended import PASSING, Pretending

# Two GPUs, whose weights are as told.
HEADRACE = '''
def value(flag): return sys.argv[sys.argv.index(flag) + 1]
lines = [{"name": f"device cuda:{gpu}", "found": True, "version": "", "hint": ""} for gpu in (0, 1)]
if sys.argv[1] == "train":
    assert value("--virtual-shards") == "8"
    weights = WEIGHTS.get(value("--devices"))
    if weights is None: sys.exit(3)
    lines = [{"final": True, "weights_sha256": weights, "shard_price": 1.05}]
with open(value("--json"), "w") as file:
    for line in lines: print(json.dumps(line), file=file)
'''


class Shards(Pretending):
    def shards(self, weights):
        self.pretend_machine(True, PASSING)
        self.pretend("build/headrace", HEADRACE.replace("WEIGHTS", repr(weights)))
        done, found, _ = self.all_of_it("--parts", "shards")
        return done.returncode, found["parts"]["shards"]["why"], self.part("shards", "tests")

    def test_one_result_is_well(self):
        status, why, part = self.shards({"cuda:0": "a", "cuda:0x2": "a", "cuda:0,1": "a"})
        self.assertEqual((status, why, part["gpus"]), (0, None, 2))
        self.assertEqual(part["weights_sha256"], {"cuda:0": "a", "cuda:0x2": "a", "cuda:0,1": "a"})
        self.assertEqual(part["shard_price"]["cuda:0,1"], 1.05)

    def test_other_weights_on_two_gpus_are_a_failure(self):
        status, why, _ = self.shards({"cuda:0": "a", "cuda:0x2": "a", "cuda:0,1": "b"})
        self.assertEqual((status, why), (1, "cuda:0,1: its weights differ from those of cuda:0"))

    def test_a_training_that_fails_is_named_and_the_others_run(self):
        status, why, part = self.shards({"cuda:0": "a", "cuda:0,1": "a"})
        self.assertEqual(status, 1)
        self.assertTrue(why.startswith("cuda:0x2: "), why)
        self.assertEqual(part["weights_sha256"]["cuda:0,1"], "a")

    def test_it_takes_powers_of_two_of_the_gpus(self):
        self.assertEqual(placements("cuda:0", "cuda:0x2", ["cuda:0"]), ["cuda:0", "cuda:0x2"])
        self.assertEqual(placements("cuda:1", "cuda:1x2", [f"cuda:{gpu}" for gpu in range(5)]),
                         ["cuda:1", "cuda:1x2", "cuda:0,1", "cuda:0,1,2,3"])
