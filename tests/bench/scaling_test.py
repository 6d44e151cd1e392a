"""bench/scaling: the closed forms against the event simulations and against numbers worked out by hand, its files and commands."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SCALING = pathlib.Path(__file__).parents[2] / "bench" / "scaling"
sys.path.insert(0, str(SCALING))
sys.dont_write_bytecode = True

import constants  # noqa: E402
import goodput  # noqa: E402
import messages  # noqa: E402
import reductions  # noqa: E402
import step  # noqa: E402
import training  # noqa: E402

BUILD = os.environ.get("HEADRACE_BUILD")
BYTES = 4e6
GIVEN = {"step_seconds": 0.1, "examples_per_step": 64, "gradient_bytes": BYTES, "latency_seconds": 5e-5,
         "bandwidth_bytes_per_second": 1.25e9, "reduce_bytes_per_second": 1e10, "copy_bytes_per_second": 2e10}
LOCAL = {"local_latency_seconds": 5e-6, "local_bandwidth_bytes_per_second": 1e11}
POWERS = (2, 4, 8, 16, 64, 128)


def made(**values):
    return constants.made(**(GIVEN | values))


def simulated_sum(c, p, reduction):
    return max(messages.all_reduce(c, p, BYTES, reduction, [0.0] * p))


class Sums(unittest.TestCase):
    def assert_agree(self, c, p, reduction, within):
        formula, events = reductions.seconds(c, BYTES, p, reduction), simulated_sum(c, p, reduction)
        self.assertLessEqual(abs(formula / events - 1), within, f"{reduction} of {p}: {formula} s, simulated {events} s")

    def test_four_workers_by_hand(self):
        c = made(copy_bytes_per_second=constants.MANY)
        message = BYTES / 1.25e9
        self.assertAlmostEqual(reductions.seconds(c, BYTES, 4, "tree"), 4 * 5e-5 + 1.5 * message + 0.75 * BYTES / 1e10, 12)
        self.assertAlmostEqual(reductions.seconds(c, BYTES, 4, "ring"), 6 * 5e-5 + 1.5 * message + 0.75 * BYTES / 1e10, 12)

    def test_formulas_are_what_the_messages_take(self):
        c = made()
        for p in POWERS:
            for reduction in reductions.ALGORITHMS:
                self.assert_agree(c, p, reduction, 1e-9)
        for p in (3, 5, 7, 12, 60, 100):
            self.assert_agree(c, p, "ring", 1e-9)

    def test_numbers_that_are_no_power_of_two(self):
        for p in (3, 5, 6, 7, 11, 12, 24, 60, 100):
            self.assert_agree(made(), p, "tree", 0.15)

    def test_replicas_that_share_a_connection(self):
        for group in (2, 4, 8):
            c = made(replicas_per_host=group, **LOCAL)
            for p in POWERS:
                self.assert_agree(c, p, "ring", 0.03)
                for reduction in ("tree", "hierarchical"):
                    self.assert_agree(c, p, reduction, 0.12)
            for hosts in (3, 5, 6):
                self.assert_agree(c, hosts * group, "hierarchical", 0.12)

    def test_the_first_level_is_the_host(self):
        c = made(replicas_per_host=8, **LOCAL)
        for p in (2, 4, 8):
            self.assertLess(reductions.seconds(c, BYTES, p, "hierarchical"), 1.1e-3)
        self.assertGreater(reductions.seconds(c, BYTES, 16, "hierarchical"), BYTES / 1.25e9)

    def test_measured_sums_are_taken_as_they_are(self):
        c = made(measured_sums=((2, ((1000, 0.5), (4_000_000, 2.0))),))
        self.assertEqual(reductions.seconds(c, BYTES, 2, "ring"), 2.0)
        self.assertEqual(reductions.seconds(c, 10, 2, "ring"), 0.5)
        self.assertAlmostEqual(reductions.seconds(c, 8e6, 2, "ring"), 4.0)
        self.assertLess(reductions.seconds(c, BYTES, 4, "ring"), 0.1)


class Steps(unittest.TestCase):
    def test_what_backward_hides(self):
        c = made(overlap=True, buckets=((BYTES / 2, 0.5), (BYTES / 2, 1.0)))
        each = reductions.seconds(c, BYTES / 2, 4, "tree")
        prediction = step.predict(c, 4)
        self.assertAlmostEqual(prediction.sums_seconds, 2 * each, 12)
        self.assertAlmostEqual(prediction.exposed_seconds, each, 12)  # the last one: nothing hides it
        self.assertAlmostEqual(prediction.step_seconds, 0.1 + each, 12)
        self.assertAlmostEqual(step.predict(made(), 4).exposed_seconds, reductions.seconds(c, BYTES, 4, "tree"), 12)

    def test_equal_replicas_take_what_the_formula_says(self):
        for overlap in (False, True):
            for reduction in reductions.ALGORITHMS:
                c = made(overlap=overlap, bucket_bytes=1e6, step_seconds=0.01, update_share=0.1)
                for p in (1, 2, 4, 16, 64):
                    self.assertAlmostEqual(training.step_seconds(c, p, 5, reduction) / step.predict(c, p, reduction).step_seconds, 1, 6)

    def test_unequal_replicas_wait_for_the_slowest(self):
        c = made(overlap=True, bucket_bytes=1e6, jitter_sigma=0.1, straggler_probability=0.01, straggler_factor=2)
        for p, steps in ((1, 3000), (2, 1500), (8, 500), (64, 100), (1000, 40)):
            simulated = training.step_seconds(c, p, steps)
            self.assertLess(abs(simulated / step.predict(c, p).step_seconds - 1), 0.04, f"{p} workers: {simulated} s")

    def test_the_slowest_of_many(self):
        self.assertEqual(step.slowest(made(), 100), 1)
        rare = made(straggler_probability=0.5, straggler_factor=3)
        self.assertAlmostEqual(step.slowest(rare, 2), (0.25 * 1 + 0.75 * 3) / 2)
        self.assertAlmostEqual(step.slowest(made(jitter_sigma=0.01), 2), 1 + 0.01 * 0.5642, 4)  # of two normal ones: 1 / sqrt(pi)
        self.assertLess(step.slowest(made(jitter_sigma=0.05), 100), step.slowest(made(jitter_sigma=0.05), 10_000))

    def test_cores_are_shared(self):
        c = made(replicas_per_host=4, cores_per_host=2, core_seconds_per_step=0.11, **LOCAL)
        self.assertAlmostEqual(step.predict(c, 4).crowding_seconds, 0.1 * 1.2)
        self.assertEqual(step.predict(c, 1).crowding_seconds, 0)
        self.assertAlmostEqual(training.step_seconds(c, 4, 5), step.predict(c, 4).step_seconds, 6)

    def test_input_bounds_a_step(self):
        slow = step.predict(made(input_examples_per_second=320), 1)
        self.assertAlmostEqual(slow.step_seconds, 0.2)
        self.assertEqual(slow.limit, "input")
        c = made(bytes_per_example=1e5, store_bytes_per_second=1e9, cached_share=0.5)
        self.assertEqual(step.predict(c, 4).limit, "sums")
        starved = step.predict(c, 256)
        self.assertAlmostEqual(starved.step_seconds, 64 * 256 * 5e4 / 1e9)
        self.assertEqual(starved.limit, "store")
        self.assertLess(abs(training.step_seconds(c, 256, 50) / starved.step_seconds - 1), 0.02)


class Failures(unittest.TestCase):
    C = {"worker_mtbf_seconds": 3e7, "checkpoint_seconds": 20, "restart_seconds": 120}

    def test_the_formula_is_what_simulated_failures_cost(self):
        for p in (100, 1000, 10_000):
            for given in ({}, {"checkpoint_interval_seconds": 1800}):
                c = made(**self.C, **given)
                self.assertLess(abs(goodput.simulated_share(c, p, 20_000) - goodput.share(c, p)), 0.01, p)

    def test_the_interval_is_the_best_one(self):
        c = made(**self.C)
        for p in (100, 1000, 10_000):
            best = goodput.daly(c, p)
            for factor in (0.7, 0.9, 1.1, 1.4):
                self.assertLess(goodput.share(c, p, best * factor), goodput.share(c, p, best))
        self.assertAlmostEqual(goodput.young(c, 100), (2 * 20 * 3e5)**0.5)
        self.assertLess(abs(goodput.young(c, 100) / goodput.daly(c, 100) - 1), 0.01)

    def test_what_fails_all_the_time_gets_nowhere(self):
        self.assertEqual(goodput.share(made(worker_mtbf_seconds=1, restart_seconds=3600), 10_000), 0)
        self.assertAlmostEqual(goodput.share(made(), 10_000), 1)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, **entries):
        path = pathlib.Path(self.folder.name) / "constants.json"
        given = {name: {"value": value, "from": "a test"} for name, value in GIVEN.items()} | entries
        path.write_text(json.dumps({"name": "a case", "constants": given}), encoding="utf-8")
        return path

    def predict(self, *arguments):
        return subprocess.run([sys.executable, SCALING / "predict", *arguments], capture_output=True, text=True)

    def test_what_is_refused(self):
        for entry, words in (({"stepp": {"value": 1, "from": "x"}}, "no constant is called 'stepp'"),
                             ({"step_seconds": {"value": 1}}, "'from' must say"),
                             ({"step_seconds": {"value": 0, "from": "x"}}, "a number above 0"),
                             ({"step_seconds": {"value": True, "from": "x"}}, "a number above 0"),
                             ({"cached_share": {"value": 2, "from": "x"}}, "a share from 0 to 1"),
                             ({"reduction": {"value": "star", "from": "x"}}, "ring, tree"),
                             ({"update_share": {"value": 0.9, "from": "x"}}, "more than the step"),
                             ({"step_seconds": 3}, "not a file of constants")):
            result = self.predict("--constants", self.write(**entry))
            self.assertEqual(result.returncode, 1, entry)
            self.assertIn(words, result.stderr)
        self.assertEqual(self.predict("--constants", self.folder.name + "/none.json").returncode, 1)
        self.assertEqual(self.predict("--constants", self.write(), "--workers", "one").returncode, 2)

    def test_numbers_table_and_chart(self):
        chart = pathlib.Path(self.folder.name) / "chart.svg"
        result = self.predict("--constants", self.write(), "--workers", "1,2,10000", "--simulate", "3", "--json", "-", "--chart", chart)
        self.assertEqual(result.returncode, 0, result.stderr)
        said = json.loads(result.stdout)
        self.assertEqual([each["workers"] for each in said["predictions"]], [1, 2, 10_000])
        self.assertEqual(len(said["simulations"]), 3)
        self.assertEqual(said["predictions"][0]["efficiency"], 1)
        xml.etree.ElementTree.parse(chart)
        table = self.predict("--constants", self.write(), "--workers", "1,2").stdout
        self.assertIn("| workers | sums by |", table)

    def test_stored_constants_scale_without_surprise(self):
        stored = sorted((SCALING / "constants").glob("*.json"))
        self.assertTrue(stored)
        for path in stored:
            _, c = constants.read(path)
            rows = [step.predict(c, p) for p in (1, 8, 64, 1024, 10_000)]
            self.assertEqual(rows[0].efficiency, 1)
            for fewer, more in zip(rows, rows[1:]):
                self.assertLessEqual(more.efficiency, fewer.efficiency + 0.02, path.name)
                self.assertLessEqual(more.goodput, fewer.goodput, path.name)

    def test_the_page_has_every_constant_and_the_tables(self):
        readme = (SCALING / "README.md").read_text(encoding="utf-8")
        for name in constants.Constants.__dataclass_fields__:
            self.assertIn(f"`{name}`", readme)
        self.assertEqual(self.predict("--check").returncode, 0, self.predict("--check").stderr)


STAND_IN = """#!{python}
import json, os, pathlib, sys
words = sys.argv[1:]
def option(name): return words[words.index(name) + 1]
if "--run-dir" in words:
    pathlib.Path(option("--run-dir")).mkdir()
    (pathlib.Path(option("--run-dir")) / "model.txt").write_text("Total parameters: 1500, trained: 1,000, not trained: 500\\n")
config = json.loads(os.environ.get("TF_CONFIG", "{{}}"))
workers = len(config["cluster"]["worker"]) if config else int(os.environ.get("WORLD_SIZE", 1))
if workers > {most}:
    sys.exit("headrace: it cannot")
seconds = {{1: 0.010, 2: 0.011, 4: {four}}}[workers]
assert os.environ["HEADRACE_CPU_THREADS"] == "1"
for epoch in range(1, int(option("--epochs")) + 1):
    late = 5 if epoch == 1 else 1
    print(json.dumps({{"epoch": epoch, "examples_per_second": int(option("--global-batch")) / seconds / late}}))
print(json.dumps({{"final": True}}))
"""
BENCH = """#!{python}
import json, sys
workers = int(sys.argv[sys.argv.index("--workers") + 1])
sizes = [{{"bytes": 4, "median_seconds": 1e-3}}, {{"bytes": 1 << 20, "median_seconds": 1e-3}}]
print(json.dumps({{"workers": workers, "sizes": sizes, "constants": {{
    "latency_seconds": 5e-4, "bandwidth_bytes_per_second": 1e9, "reduce_bytes_per_second": 1e10, "copy_bytes_per_second": 1e10}}}}))
"""


class Measuring(unittest.TestCase):
    """bench/scaling/measure with stand-ins for the command and for workers_bench."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.build = pathlib.Path(self.folder.name)
        (self.build / "bench").mkdir()

    def measure(self, *arguments, most=4, four=0.011):
        for path, text in ((self.build / "headrace", STAND_IN), (self.build / "bench" / "workers_bench", BENCH)):
            path.write_text(text.format(python=sys.executable, most=most, four=four), encoding="utf-8")
            path.chmod(0o755)
        command = [sys.executable, SCALING / "measure", "--build", self.build, "--data", "none", "--runs", "1", "--steps", "1000000",
                   "--tries", "1", "--patience", "0", "--json", self.build / "out.json", "--constants", self.build / "constants.json", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    def test_measures_predicts_and_compares(self):
        for launcher in ("tensorflow", "torchrun"):
            result = self.measure("--launcher", launcher)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            rows = json.loads((self.build / "out.json").read_text(encoding="utf-8"))["rows"]
            self.assertEqual([row["workers"] for row in rows], [1, 2, 4])
            for row in rows:
                self.assertLess(abs(row["deviation"]), 1e-6)
        name, c = constants.read(self.build / "constants.json")
        self.assertIn("mnist-mlp", name)
        self.assertEqual(c.gradient_bytes, 4000)
        self.assertAlmostEqual(c.step_seconds, 0.01)

    def test_says_what_deviates_and_what_does_not_run(self):
        result = self.measure(four=0.022)
        self.assertEqual(result.returncode, 1)
        self.assertIn("+100.0%", result.stdout)
        result = self.measure(most=1)
        self.assertEqual(result.returncode, 1)
        self.assertIn("not run", result.stdout)
        self.assertIn("2 processes: a process ended with 1: headrace: it cannot", result.stderr)


@unittest.skipUnless(BUILD and (pathlib.Path(BUILD) / "bench" / "workers_bench").exists(), "workers_bench is not built")
class WorkersBench(unittest.TestCase):
    def test_times_sums_of_all_sizes(self):
        command = [pathlib.Path(BUILD) / "bench" / "workers_bench", "--workers", "3", "--seconds", "0.001", "--max-bytes", "70000", "--json", "-"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        said = json.loads(result.stdout)
        self.assertEqual(said["workers"], 3)
        self.assertEqual([size["bytes"] for size in said["sizes"]], [4**i for i in range(1, 9)])
        for size in said["sizes"]:
            self.assertLessEqual(size["min_seconds"], size["median_seconds"])
        self.assertGreater(said["constants"]["latency_seconds"], 0)


if __name__ == "__main__":
    unittest.main()
