#!/usr/bin/env python3
"""tools/gpu_check without a GPU: what it reads, sums up and stops, and whole runs over programs that only pretend.

  HEADRACE_BUILD=build/release gpu_check_test.py
"""
import json
import os
import pathlib
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
from gpu_checks import photographs, plan, readers, summary
from gpu_checks.runner import Runner

TESTED = {"testsuites": [{"name": "Cuda/StreamSuite/0", "testsuite": [
    {"name": "Copies", "status": "RUN", "result": "COMPLETED", "time": "0.5s"},
    {"name": "Fills", "status": "RUN", "result": "COMPLETED", "time": "0.01s"},
    {"name": "Waits", "status": "RUN", "result": "COMPLETED", "time": "0.02s", "failures": [{"failure": "1 is not 2"}]},
    {"name": "Far", "status": "RUN", "result": "SKIPPED", "time": "0s"}]}]}

HEAD = "|  run     |  epoch  |  train_acc  |  val_acc  |  tta_val_acc  |  time_seconds  |"


def row(run, epoch, accuracy="", seconds="1.0000"):
    return f"|  {run:>6}  |  {epoch:>5}  |     0.9000  |   0.9000  |       {accuracy:>6}  |        {seconds}  |"


class Readers(unittest.TestCase):
    def test_lines_that_are_no_json_are_passed_over(self):
        self.assertEqual(readers.json_lines('progress\n{"a": 1}\n{"cut": \n {"b": 2}'), [{"a": 1}, {"b": 2}])

    def test_gpus_that_doctor_lists(self):
        lines = [{"name": "device cpu:0", "found": True}, {"name": "device cuda:1", "found": True}, {"name": "GPU", "found": False}]
        self.assertEqual(readers.doctor_devices(lines), ["cuda:1"])

    def test_nvidia_smi_rows_lose_the_units_of_their_heads(self):
        self.assertEqual(readers.csv_rows("name, memory.total [MiB]\nH, 5 MiB\n"), [{"name": "H", "memory.total": "5 MiB"}])
        self.assertEqual(readers.csv_rows(""), [])

    def test_counts_of_tests(self):
        counts = readers.test_counts(TESTED)
        self.assertEqual([counts[key] for key in ("ran", "passed", "failed", "skipped")], [3, 2, 1, 1])
        self.assertEqual(counts["failures"], [{"test": "Cuda/StreamSuite/0.Waits", "why": "1 is not 2"}])
        self.assertEqual(readers.test_counts({})["ran"], 0)

    def test_suites_with_tests_for_a_gpu(self):
        listing = "Running main()\nShape.\n  Prints\nCuda/A/0.  # TypeParam = Cuda\n  One\n  Two\nRegistry.\n  Cpu\n  CudaIsThere\n"
        self.assertEqual(readers.gpu_filters(listing), ["Cuda/A/0.*", "Registry.*Cuda*"])

    def test_reasons_of_skips_are_counted(self):
        text = "[ RUN  ] A\na.cpp:3: Skipped\nno peer\n\n[ SKIPPED ] A\nb.cpp:4: Skipped\nno peer\n"
        self.assertEqual(readers.skip_reasons(text), {"no peer": 2})

    def test_short_tests_are_the_quickest_that_passed(self):
        self.assertEqual(readers.short_tests(TESTED, 0.4), ["Cuda/StreamSuite/0.Fills"])
        self.assertEqual(len(readers.short_tests(TESTED, 1)), 2)
        self.assertEqual(readers.short_tests(TESTED, 0), [])

    def test_sanitizer_summaries(self):
        self.assertEqual(readers.sanitizer_errors("========= ERROR SUMMARY: 0 errors\n"), 0)
        self.assertEqual(readers.sanitizer_errors("========= ERROR SUMMARY: 1 error\n"), 1)
        self.assertEqual(readers.sanitizer_errors("========= RACECHECK SUMMARY: 3 hazards displayed (2 errors, 1 warning)"), 3)
        self.assertIsNone(readers.sanitizer_errors("========= COMPUTE-SANITIZER"))

    def test_benchmarks_keep_their_counters(self):
        report = {"context": {"device": "cuda:0"}, "benchmarks": [
            {"name": "adam", "run_type": "iteration", "iterations": 3, "real_time": 2.0, "cpu_time": 1.0, "time_unit": "us",
             "GB/s": 5.0, "roofline": 0.5},
            {"name": "bad", "error_occurred": True, "error_message": "no"}]}
        context, rows = readers.benchmark_rows(report)
        self.assertEqual(context, {"device": "cuda:0"})
        self.assertEqual(rows, [{"name": "adam", "seconds": 2e-6, "GB/s": 5.0, "roofline": 0.5}, {"name": "bad", "error": "no"}])

    def test_record_runs_are_whole_ones_after_the_warm_up(self):
        table = [HEAD, row("warmup", "0"), row("", "eval", "0.1000"), row("0", "0"), row("", "1"), row("", "eval", "0.9401", "2.5000"),
                 row("1", "0"), row("", "eval", "0.9399", "2.4000"), row("2", "0"), row("", "1")]
        runs = readers.record_runs("compiling | eval | ...\n" + "\n".join(table))
        self.assertEqual(runs, [{"accuracy": 0.9401, "seconds": 2.5}, {"accuracy": 0.9399, "seconds": 2.4}])
        self.assertEqual(readers.record_runs(""), [])


class Summary(unittest.TestCase):
    def test_spread(self):
        self.assertIsNone(summary.spread([None]))
        one = summary.spread([1.0, 3.0, None, 2.0])
        self.assertEqual((one["n"], one["median"], one["min"], one["max"], one["stdev"]), (3, 2.0, 1.0, 3.0, 1.0))

    def test_ratio_is_of_medians_and_points_of_means(self):
        ours = summary.of_runs([{"accuracy": 0.90, "seconds": 1.0}, {"accuracy": 0.91, "seconds": 3.0}, {"accuracy": 0.92, "seconds": 2.0}])
        theirs = summary.of_runs([{"accuracy": 0.93, "seconds": 5.0}])
        against = summary.against(ours, theirs)
        self.assertAlmostEqual(against["ratio"], 2.5)
        self.assertAlmostEqual(against["points"], -2.0)
        self.assertIsNone(summary.against(ours, summary.of_runs([])))

    def test_a_bar_not_measured_is_not_met(self):
        self.assertIsNone(summary.bar("x", None, 1, "most")["met"])
        self.assertTrue(summary.bar("x", 1, 1, "most")["met"])
        self.assertFalse(summary.bar("x", 1.1, 1, "most")["met"])
        self.assertFalse(summary.bar("x", 1.2, 1.3, "least")["met"])

    def test_one_failed_part_fails_the_whole_and_a_skipped_one_does_not(self):
        good = {"device": {"seconds": 1.0}, "memcheck": {"skipped": "no tool", "seconds": 0}}
        self.assertTrue(summary.summary_of(good, {})["ok"])
        bad = summary.summary_of(good | {"tests": {"failed": "crash", "seconds": 1}}, {})
        self.assertFalse(bad["ok"])
        self.assertIn("crash", summary.table(bad))
        self.assertIn("not measured", summary.table(bad))

    def test_rooflines_are_drawn_together_by_kind(self):
        rows = [{"name": "conv3x3/bf16/forward/a", "roofline": 0.5}, {"name": "conv3x3/bf16/backward_data/b", "roofline": 0.7},
                {"name": "gelu/forward/real_time", "roofline": 0.9}, {"name": "mlp_step/32"}]
        kinds = summary.rooflines(rows)
        self.assertEqual(sorted(kinds), ["conv3x3/bf16", "gelu/forward"])
        self.assertAlmostEqual(kinds["conv3x3/bf16"]["median"], 0.6)


class Plan(unittest.TestCase):
    def test_every_part_has_its_time(self):
        self.assertLessEqual(sum(part.limit for part in plan.PARTS), 60 * plan.MINUTES)
        self.assertLess(plan.MINUTES, 10)
        names = [part.name for part in plan.PARTS]
        self.assertEqual(len(set(names)), len(names))
        self.assertEqual(names[:2], ["device", "tests"])


class Photographs(unittest.TestCase):
    def test_a_picture_is_the_same_every_time_and_differs_from_others(self):
        rows = photographs.picture(50, 20, 3)
        self.assertEqual((len(rows), {len(row) for row in rows}), (20, {150}))
        self.assertEqual(rows, photographs.picture(50, 20, 3))
        self.assertNotEqual(rows, photographs.picture(50, 20, 4))

    @unittest.skipUnless("HEADRACE_BUILD" in os.environ, "no HEADRACE_BUILD")
    def test_they_become_jpegs_that_the_engine_reads(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / "pictures/train/0"
            folder.mkdir(parents=True)
            for number in range(4):
                (folder / f"{number}.png").write_bytes(photographs.png(300, photographs.picture(300, 240, number)))
            file = pathlib.Path(scratch) / "made.records"
            headrace = pathlib.Path(os.environ["HEADRACE_BUILD"]) / "headrace"
            subprocess.run([headrace, "convert", "--data", folder.parents[1], "--to", file, "--quality", "85"], check=True,
                           capture_output=True)
            done = subprocess.run([headrace, "digest", "--pipeline", "jpeg-train", "--data", file, "--devices", "cpu:1", "--json",
                                   "-"], check=True, capture_output=True, text=True)
            self.assertEqual(readers.json_lines(done.stdout)[0]["examples"], 4)


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
                                  enough=lambda output: output.count("row") >= 3)
        self.assertEqual((outcome.status, outcome.why), (0, ""))

    def test_a_program_that_is_not_there(self):
        self.assertIn("cannot start", self.runner.run("a", [self.folder / "nothing"]).why)


# What pretends to be the programs of a build with a GPU.
HEADRACE = '''
lines = {"doctor": [{"name": "device cuda:0", "found": DOCTOR, "version": "pretended", "hint": ""}],
         "bench": [{"images_per_second": 5e6}],
         "convert": [{"records": 96}],
         "explain": [{"name": "decode()", "occupancy": 0.7}, {"name": "consumer", "occupancy": 0.995}, {"bottleneck": "consumer"}],
         "train": [{"epoch": e, "examples_per_second": 1e6 * e, "input_stall_fraction": 0.002} for e in (1, 2, 3)] +
                  [{"final": True, "test_accuracy": 0.9, "train_seconds": 0.5, "weights_sha256": "0"}]}[sys.argv[1]]
open(sys.argv[sys.argv.index("--json") + 1], "w").write("\\n".join(map(json.dumps, lines)))
'''
TESTS = '''
if "--gtest_list_tests" in sys.argv:
    print("Cuda/StreamSuite/0.  # TypeParam\\n  Copies\\nShape.\\n  Prints")
else:
    path = next(word[20:] for word in sys.argv if word.startswith("--gtest_output=json:"))
    open(path, "w").write(json.dumps(REPORT))
    print("a.cpp:3: Skipped\\nno GPU here" if "SKIPPED" in json.dumps(REPORT) else "")
'''
BENCH = '''
path = next(word[16:] for word in sys.argv if word.startswith("--benchmark_out="))
open(path, "w").write(json.dumps({"context": {"device": "cuda:0"}, "benchmarks": [
    {"name": "gelu/forward", "real_time": 1, "time_unit": "ms", "iterations": 1, "roofline": 0.8}]}))
'''
ORACLE = '''
import pathlib
if "--export" in sys.argv:
    folder = pathlib.Path(sys.argv[-1])
    folder.mkdir(parents=True)
    (folder / "train.pt").touch()
    (folder / "test.pt").touch()
else:
    print(json.dumps({"accuracy": 0.905, "seconds": 9.0}))
'''
RECORD = f'''
import os, time
assert os.path.exists("cifar10/test.pt")
print({HEAD!r})
for run in range(1000):
    print({row("7", "0")!r}); print({row("", "eval", "0.9010", "1.0000")!r}, flush=True)
    time.sleep(0.01)
'''
SANITIZER = 'print("========= ERROR SUMMARY: 0 errors")\n'
PASSING = {"testsuites": [{"name": "Cuda/S/0", "testsuite": [{"name": "A", "status": "RUN", "result": "COMPLETED", "time": "0.01s"}]}]}
SKIPPING = {"testsuites": [{"name": "Cuda/S/0", "testsuite": [
    {"name": "A", "status": "RUN", "result": "SKIPPED", "time": "0s"}]}]}


class Command(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.out = self.folder / "out"

    def pretend(self, path, text):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/usr/bin/env python3\nimport json, sys\n" + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def pretend_machine(self, gpu, report):
        self.pretend("build/headrace", HEADRACE.replace("DOCTOR", str(gpu)))
        self.pretend("build/tests/test_devices", TESTS.replace("REPORT", repr(report)))
        self.pretend("build/bench/kernels_bench", BENCH)
        self.pretend("build/bench/input_bench", BENCH)
        self.pretend("tools/nvidia-smi", 'print("name, driver_version\\nPretended, 1")' if gpu else "sys.exit(9)")
        self.pretend("tools/compute-sanitizer", SANITIZER)
        self.pretend("peers/cifar10_recipe_torch.py", ORACLE)
        self.pretend("peers/record.py", RECORD)
        self.pretend("site/torch/__init__.py", "")
        (self.folder / "data.tar").touch()

    def check(self, *words, build=None):
        environment = dict(os.environ) | {"PATH": f"{self.folder / 'tools'}{os.pathsep}{os.environ['PATH']}",
                                          "PYTHONPATH": str(self.folder / "site"), "CUDA_VISIBLE_DEVICES": ""}
        done = subprocess.run([sys.executable, ROOT / "tools/gpu_check", self.out, "--build", build or self.folder / "build", *words],
                              capture_output=True, text=True, env=environment, timeout=120)
        self.assertEqual(done.stderr, "")
        files = sorted(path.name for path in self.out.rglob("*"))
        self.assertLessEqual(len(files), 8)
        return done, json.loads((self.out / "summary.json").read_text()), files

    def all_of_it(self, *words):
        return self.check("--data", self.folder / "data.tar", "--peers", self.folder / "peers", "--seeds", "3", *words)

    def test_without_a_gpu_it_says_so_at_once(self):
        self.pretend_machine(False, PASSING)
        done, found, _ = self.all_of_it()
        self.assertEqual((done.returncode, done.stdout), (1, "device: no GPU: nothing to check\n"))
        self.assertEqual(list(found["parts"]), ["device"])

    @unittest.skipUnless("HEADRACE_BUILD" in os.environ, "no HEADRACE_BUILD")
    def test_without_a_gpu_with_the_real_command(self):
        self.pretend("tools/nvidia-smi", "sys.exit(9)")
        done, found, files = self.check(build=os.environ["HEADRACE_BUILD"])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "device: no GPU: nothing to check\n")
        self.assertEqual(files, ["device.json", "logs.tar.gz", "summary.json", "summary.txt"])
        doctor = json.loads((self.out / "device.json").read_text())["device"]["doctor"]
        self.assertIn("device cpu:0", [line["name"] for line in doctor])

    def test_a_failing_part_costs_the_status_but_no_other_part(self):
        self.pretend_machine(True, PASSING)
        done, found, files = self.all_of_it()
        states = {name: part["state"] for name, part in found["parts"].items()}
        for name in ("ddp", "resnet18"):  # what is pretended is no PyTorch
            self.assertEqual(states.pop(name), "failed")
        self.assertEqual(set(states.values()), {"ok"}, done.stdout)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(files, ["benchmarks.json", "device.json", "logs.tar.gz", "summary.json", "summary.txt", "tests.json",
                                 "training.json"])
        figures = found["figures"]
        self.assertEqual(figures["cifar10-fast"]["seconds"]["n"], 3)
        self.assertEqual(figures["steps"]["end_to_end"]["examples_per_second"], 2.5e6)
        self.assertEqual(figures["cifar10-fast-b"]["seconds"]["n"], 2)
        self.assertAlmostEqual(figures["against"]["record"]["ratio"], 2.0)
        self.assertAlmostEqual(figures["b_against"]["record"]["ratio"], 2.0)
        self.assertEqual(figures["resnet18"], {"headrace": 2.5e6, "torch": None, "ratio": None})
        self.assertEqual((figures["photographs"]["images_per_second"], figures["photographs"]["made"]), (5e6, True))
        self.assertAlmostEqual(figures["photographs"]["input_stall_fraction"], 0.005)
        bars = {one["what"]: one["met"] for one in figures["bars"]}
        self.assertTrue(bars["times as fast as record"])
        self.assertTrue(bars["input stall, of a step"])
        self.assertTrue(bars["input stall, photographs"])
        self.assertIsNone(bars["times as fast as compiled PyTorch, ResNet-18"])
        self.assertIsNone(bars["GPU idle between steps"])
        with tarfile.open(self.out / "logs.tar.gz") as logs:
            self.assertIn("logs/record-record.log", logs.getnames())

    def test_parts_alone_and_all_well(self):
        self.pretend_machine(True, PASSING)
        done, found, _ = self.all_of_it("--parts", "tests,memcheck,cifar10-fast")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(list(found["parts"]), ["device", "tests", "cifar10-fast", "memcheck"])

    def test_photographs_that_are_given_are_those_that_are_read(self):
        self.pretend_machine(True, PASSING)
        (self.folder / "photographs.tar").touch()
        done, found, _ = self.all_of_it("--parts", "photographs", "--photographs", self.folder / "photographs.tar")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertFalse(found["figures"]["photographs"]["made"])
        with tarfile.open(self.out / "logs.tar.gz") as logs:
            self.assertNotIn("logs/make-photographs.log", logs.getnames())

    def test_steps_of_a_resnet_are_compared(self):
        results = {"resnet18": {"headrace": {"examples_per_second": 3e4}, "torch": {"examples_per_second": 2e4}, "ratio": 1.5}}
        figures = summary.figures_of(results)
        self.assertEqual(figures["resnet18"], {"headrace": 3e4, "torch": 2e4, "ratio": 1.5})
        met = {one["what"]: one["met"] for one in figures["bars"]}
        self.assertTrue(met["times as fast as compiled PyTorch, ResNet-18"])

    def test_tests_that_were_all_skipped_are_no_success(self):
        self.pretend_machine(True, SKIPPING)
        done, found, _ = self.all_of_it("--parts", "tests,kernels")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not one test ran, 1 were skipped: no GPU here", found["parts"]["tests"]["why"])
        self.assertEqual(found["parts"]["kernels"]["state"], "ok")

    def test_a_crash_is_told_beside_what_went_well(self):
        self.pretend_machine(True, PASSING)
        self.pretend("build/tests/test_other", TESTS.split("else:")[0] + "else:\n    print('CUDA error'); sys.exit(134)\n")
        done, found, _ = self.all_of_it("--parts", "tests")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(found["parts"]["tests"]["why"], "test_other: Cuda/StreamSuite/0.*: exit status 134: CUDA error")
        self.assertEqual(json.loads((self.out / "tests.json").read_text())["tests"]["test_devices"]["passed"], 1)

    def test_what_there_was_no_time_for_is_a_failure(self):
        self.pretend_machine(True, PASSING)
        done, found, _ = self.all_of_it("--parts", "tests", "--minutes", "0.02")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no time was left", found["parts"]["tests"]["why"])

    def test_wrong_usage(self):
        for words in (["--parts", "tsets"], ["--data", "/not/there"]):
            done = subprocess.run([sys.executable, ROOT / "tools/gpu_check", self.out, *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words[1], done.stderr)


if __name__ == "__main__":
    unittest.main()
