"""Whole checks of a machine that is only pretended."""
import json
import os
import subprocess
import sys
import tarfile
import unittest

from gpu_checks import benchmarks, machine, plan, readers, summary

from gpu_check.pretended import BENCH, PASSING, ROOT, SKIPPING, Pretending


class Command(Pretending):
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
        for name in ("ddp", "resnet18", "profile"):  # what is pretended is no PyTorch; one profile is made to fail
            self.assertEqual(states.pop(name), "failed")
        self.assertEqual(states.pop("libtorch"), "skipped")
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
        self.assertEqual(list(found["parts"]), ["device", "tests", "memcheck", "cifar10-fast"])

    def test_photographs_that_are_given_are_those_that_are_read(self):
        self.pretend_machine(True, PASSING)
        (self.folder / "photographs.tar").touch()
        done, found, _ = self.all_of_it("--parts", "photographs", "--photographs", self.folder / "photographs.tar")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertFalse(found["figures"]["photographs"]["made"])
        with tarfile.open(self.out / "logs.tar.gz") as logs:
            self.assertNotIn("logs/make-photographs.log", logs.getnames())

    def test_a_call_has_its_parts(self):
        self.pretend_machine(True, PASSING)
        done, found, _ = self.all_of_it("--call", "correctness")
        self.assertEqual(tuple(found["parts"]), plan.CALLS["correctness"].parts)
        self.assertEqual(done.returncode, 0, done.stdout)
        order = [f"{name}@cuda:0" for name in ("kernels", "streams", "train", "pipeline", "faults", "golden", "recipes")]
        self.assertEqual(list(self.part("tests", "tests"))[:-1], order + [f"{name}x2" for name in order[2:]])
        self.assertEqual(self.part("memcheck", "tests"), {"tests": 1, "passed": 1, "errors": 0} | {
            "seconds": found["parts"]["memcheck"]["seconds"]})
        with tarfile.open(self.out / "logs.tar.gz") as logs:
            self.assertIn("S.A", logs.extractfile("logs/memcheck-0.log").read().decode())

    def test_a_rehearsal_has_the_parts_and_files_of_its_call_without_a_gpu(self):
        self.pretend_machine(False, PASSING)
        done, found, files = self.all_of_it("--call", "smoke", "--rehearse")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(tuple(found["parts"]), plan.CALLS["smoke"].parts)
        self.assertTrue(done.stdout.split("\n\n")[1].startswith("A rehearsal on a processor"), done.stdout)
        self.assertEqual(list(self.part("conformance", "tests"))[0], "kernels@cpu:1")
        self.assertEqual(files, ["device.json", "logs.tar.gz", "summary.json", "summary.txt", "tests.json", "training.json"])

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

    def test_a_crash_costs_its_own_test_alone(self):
        self.pretend_machine(True, PASSING)
        self.pretend_tests("train", {"A": "passes", "B": "crashes", "C": "passes"})
        done, found, _ = self.all_of_it("--parts", "tests")
        self.assertEqual(done.returncode, 1)
        for spec in ("cuda:0", "cuda:0x2"):
            one = self.part("tests", "tests")[f"train@{spec}"]
            self.assertEqual((one["passed"], one["failed"], one["not_run"]), (2, 1, []))
            self.assertEqual(one["failures"], [{"test": "S.B", "why": f"on {spec}", "result": "unfinished"}])
            self.assertIn(f"train@{spec}: S.B: exit status -6", found["parts"]["tests"]["why"])
        self.assertEqual(self.part("tests", "tests")["kernels@cuda:0"]["passed"], 1)

    def test_an_error_that_sticks_fails_no_other_test(self):
        self.pretend_machine(True, PASSING)
        tests = {"A": "passes", "B": "sticks", "C": "passes", "D": "fails", "E": "passes"}
        self.pretend_tests("train", {f"{name}{i}": fate if i == 2 else "passes" for name, fate in tests.items() for i in range(5)})
        done, found, _ = self.all_of_it("--parts", "tests")
        one = self.part("tests", "tests")["train@cuda:0"]
        self.assertEqual([failure["test"] for failure in one["failures"]], ["S.B2", "S.D2"])
        self.assertEqual((one["passed"], one["ended_early"]), (23, []))
        self.assertIn("train@cuda:0: 2 tests failed, the first S.B2", found["parts"]["tests"]["why"])

    def test_one_that_hangs_is_named_and_leaves_time_for_the_others(self):
        self.pretend_machine(True, PASSING)
        self.pretend_tests("train", {"A": "passes", "B": "hangs"})
        done, found, _ = self.all_of_it("--parts", "tests", "--minutes", "0.5")
        parts = self.part("tests", "tests")
        self.assertEqual(parts["kernels@cuda:0"]["passed"], 1)
        for spec in ("cuda:0", "cuda:0x2"):
            self.assertEqual(parts[f"train@{spec}"]["passed"], 1)
            self.assertIn(f"train@{spec}: S.B: stopped at its time limit", found["parts"]["tests"]["why"])

    def test_a_group_of_benchmarks_that_crashes_costs_what_it_had_not_written(self):
        self.pretend_machine(True, PASSING)
        self.pretend("build/bench/kernels_bench", BENCH.replace("CRASHES", "True"))
        done, found, _ = self.all_of_it("--parts", "kernels")
        self.assertEqual(done.returncode, 1)
        rows = self.part("kernels", "benchmarks")["benchmarks"]
        groups = [f"gelu/{pattern}" for _, pattern in (*benchmarks.GROUPS, benchmarks.OTHERS)]
        self.assertEqual([row["name"] for row in rows], groups)
        self.assertEqual({row["floors"] for row in rows[1:]}, {"4000.0,5.0,6.0"})
        self.assertEqual(rows[0]["floors"], "measured")
        self.assertTrue(found["parts"]["kernels"]["why"].startswith("muon: exit status 139"))

    def test_a_step_is_profiled_under_each_choice_of_kernels(self):
        self.pretend_machine(True, PASSING)
        done, found, _ = self.all_of_it("--parts", "profile")
        steps = self.part("profile", "benchmarks")["steps"]
        self.assertEqual(list(steps), ["default", "tuned"])
        conv = steps["default"]["kernels"][0]
        self.assertEqual((conv["kernel"], conv["calls"], conv["bytes"]), ("conv", 1, 4e6))
        self.assertAlmostEqual(conv["us"], 3)
        self.assertAlmostEqual(conv["floor_us"], 1.0)
        self.assertAlmostEqual(steps["tuned"]["total"]["share"], 0.5)
        self.assertIn("fastest: ", found["parts"]["profile"]["why"])
        self.assertIn("one step, convolutions tuned: 1 kernels, 2 us, floor 1 us", (self.out / "summary.txt").read_text())

    def test_the_seeds_are_trained_in_one_process_a_half(self):
        self.pretend_machine(True, PASSING)
        self.all_of_it("--parts", "cifar10-fast,cifar10-fast-again")
        first, again = (self.part(name, "training") for name in ("cifar10-fast", "cifar10-fast-again"))
        self.assertEqual([run["seed"] for run in first["runs"]], [0, 1])
        self.assertEqual([run["seed"] for run in again["runs"]], [2])
        self.assertEqual(self.last_line("cifar10-fast-0")["HEADRACE_COLLECTIVE_TIMEOUT"], machine.COLLECTIVE_TIMEOUT)

    def last_line(self, name):
        with tarfile.open(self.out / "logs.tar.gz") as logs:
            return readers.json_lines(logs.extractfile(f"logs/{name}.jsonl").read().decode())[-1]

    def test_plans_are_kept_for_the_check_also_without_a_home(self):
        self.pretend_machine(True, PASSING)
        usual = self.environment()
        for number, home in enumerate((None, "", str(self.folder))):
            with self.subTest(home):
                self.out = self.folder / f"out-{number}"
                names = ("HOME", "XDG_CACHE_HOME", machine.PLAN_FOLDER)
                without = {key: value for key, value in usual.items() if key not in names}
                self.environment = lambda: without | ({} if home is None else {"HOME": home})
                self.all_of_it("--parts", "cifar10-fast,cifar10-fast-b")
                first, other = self.last_line("cifar10-fast-0"), self.last_line("cifar10-fast-b-0")
                self.assertRegex(first[machine.PLAN_FOLDER], r"/gpu_check-[^/]*/plans$")
                self.assertEqual(first[machine.PLAN_FOLDER], other[machine.PLAN_FOLDER])
                self.assertTrue(first["HOME"])
                self.assertEqual(first["HOME"], home or first["HOME"])
        self.out = self.folder / "named"
        self.environment = lambda: usual | {machine.PLAN_FOLDER: "/of/the/caller"}
        self.all_of_it("--parts", "cifar10-fast")
        self.assertEqual(self.last_line("cifar10-fast-0")[machine.PLAN_FOLDER], "/of/the/caller")

    def test_what_there_was_no_time_for_is_a_failure(self):
        self.pretend_machine(True, PASSING)
        done, found, _ = self.all_of_it("--parts", "tests", "--minutes", "0.26")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no time was left", found["parts"]["tests"]["why"])

    def test_results_of_another_check_are_not_written_over(self):
        self.pretend_machine(True, PASSING)
        self.all_of_it("--parts", "kernels")
        before = (self.out / "benchmarks.json").read_text()
        done = subprocess.run(self.command("--parts", "device"), capture_output=True, text=True, env=self.environment())
        self.assertEqual(done.returncode, 2)
        self.assertIn("holds the results of another check", done.stderr)
        self.assertEqual((self.out / "benchmarks.json").read_text(), before)

    def test_wrong_usage(self):
        for words in (["--parts", "tsets"], ["--data", "/not/there"], ["--call", "tests"]):
            done = subprocess.run([sys.executable, ROOT / "tools/gpu_check", self.out, *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words[1], done.stderr)
