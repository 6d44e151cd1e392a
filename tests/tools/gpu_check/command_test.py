"""Whole checks of a machine that is only pretended."""
import json
import os
import subprocess
import sys
import unittest
import unittest.mock

from gpu_checks import benchmarks, machine, plan, readers

from gpu_check.pretended import BENCH, NCU, PASSING, ROOT, SKIPPING, Pretending


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
        self.assertEqual(files, ["device.json", "output.txt", "summary.json", "summary.txt"])
        doctor = json.loads((self.out / "device.json").read_text())["device"]["doctor"]
        self.assertIn("device cpu:0", [line["name"] for line in doctor])

    def test_a_failing_part_costs_the_status_but_no_other_part(self):
        self.pretend_machine(True, PASSING)
        self.pretend("tools/ncu", NCU.replace("FAILS", "True"))
        done, found, files = self.all_of_it()
        states = {name: part["state"] for name, part in found["parts"].items()}
        self.assertEqual(states.pop("profile"), "failed")
        self.assertEqual(set(states.values()), {"ok"}, done.stdout)
        self.assertEqual(done.returncode, 1)
        self.assertIn("==ERROR== the driver is too old", found["parts"]["profile"]["why"])
        self.assertEqual(files, ["benchmarks.json", "device.json", "output.txt", "summary.json", "summary.txt", "tests.json",
                                 "training.json"])
        figures = found["figures"]
        self.assertEqual(figures["cifar10-fast"]["seconds"]["n"], 3)
        self.assertEqual(figures["steps"]["end_to_end"]["examples_per_second"], 2.5e6)
        self.assertAlmostEqual(figures["against"]["record"]["ratio"], 2.0)
        self.assertEqual(figures["photographs"]["images_per_second"], {"host": 5e6, "device": 5e6})
        self.assertAlmostEqual(figures["photographs"]["input_stall_fraction"]["0.99"], 0.005)
        loads = {row["load"] for row in figures["cores"]}
        self.assertEqual(loads, {"jpeg-train", "jpeg-train-first-pass", "jpeg-train-libjpeg", "cifar-train", "batches"})
        bars = {one["what"]: one["met"] for one in figures["bars"]}
        self.assertTrue(bars["times as fast as record"])
        self.assertTrue(bars["input stall, of a step"])
        self.assertTrue(bars["input stall, photographs at 0.8 of the rate"])
        self.assertIsNone(bars["GPU idle between steps"])
        said = (self.out / "output.txt").read_text()
        self.assertIn("== record-record.log", said)
        self.assertIn("== compile-record.log", said)

    def test_parts_alone_and_all_well(self):
        self.pretend_machine(True, PASSING)
        done, found, _ = self.all_of_it("--parts", "conformance,memcheck,cifar10-fast")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(list(found["parts"]), ["device", "conformance", "memcheck", "cifar10-fast"])

    def test_without_photographs_what_needs_them_says_so(self):
        self.pretend_machine(True, PASSING)
        done, found, _ = self.check("--data", self.folder / "data.tar", "--parts", "cores,photographs")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no photographs", found["parts"]["photographs"]["why"])
        self.assertIn("no photographs", found["parts"]["cores"]["why"])
        self.assertTrue(found["figures"]["cores"])

    def test_streams_that_differ_by_who_decodes_fail(self):
        self.pretend_machine(True, PASSING)
        with unittest.mock.patch.dict(os.environ, {"PRETENDED_DIGEST_device": "1"}):
            done, found, _ = self.check(*self.data_words(), "--parts", "photographs")
        self.assertEqual(done.returncode, 1)
        self.assertIn("another stream than the host's", found["parts"]["photographs"]["why"])

    def test_a_call_has_its_parts(self):
        self.pretend_machine(True, PASSING)
        done, found, _ = self.all_of_it("--call", "first")
        self.assertEqual(tuple(found["parts"]), plan.CALLS["first"].parts)
        self.assertEqual(done.returncode, 0, done.stdout)
        order = [f"{name}@cuda:0" for name in ("kernels", "streams", "train", "pipeline", "faults", "golden", "recipes")]
        self.assertEqual(list(self.part("tests", "tests"))[:-1], order)

    def test_the_second_call_has_pairs_and_the_sanitizers(self):
        self.pretend_machine(True, PASSING)
        self.pretend_tests("train", {"A": "passes"})
        done, found, _ = self.all_of_it("--call", "second")
        self.assertEqual(tuple(found["parts"]), plan.CALLS["second"].parts)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(list(self.part("pairs", "tests"))[:-1], ["pairs@cuda:0x2"])
        self.assertEqual(self.part("memcheck", "tests"), {"tests": 1, "passed": 1, "errors": 0} | {
            "seconds": found["parts"]["memcheck"]["seconds"]})
        self.assertIn("S.A", self.log("memcheck-0.log"))

    def log(self, name):
        """Of output.txt."""
        return (self.out / "output.txt").read_text().split(f"== {name}\n")[1].split("\n== ")[0]

    def test_a_rehearsal_has_the_parts_and_files_of_its_call_without_a_gpu(self):
        self.pretend_machine(False, PASSING)
        done, found, files = self.all_of_it("--call", "smoke", "--rehearse")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(tuple(found["parts"]), plan.CALLS["smoke"].parts)
        self.assertTrue(done.stdout.split("\n\n")[1].startswith("A rehearsal on a processor"), done.stdout)
        self.assertEqual(list(self.part("conformance", "tests"))[0], "kernels@cpu:1")
        self.assertEqual(files, ["device.json", "output.txt", "summary.json", "summary.txt", "tests.json", "training.json"])

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
        one = self.part("tests", "tests")["train@cuda:0"]
        self.assertEqual((one["passed"], one["failed"], one["not_run"]), (2, 1, []))
        self.assertEqual(one["failures"], [{"test": "S.B", "why": "on cuda:0", "result": "unfinished"}])
        self.assertIn("train@cuda:0: S.B: exit status -6", found["parts"]["tests"]["why"])
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
        self.assertEqual(parts["train@cuda:0"]["passed"], 1)
        self.assertIn("train@cuda:0: S.B: stopped at its time limit", found["parts"]["tests"]["why"])

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

    def test_a_step_is_profiled(self):
        self.pretend_machine(True, PASSING)
        done, found, _ = self.all_of_it("--parts", "profile")
        conv = self.part("profile", "benchmarks")["step"]["kernels"][0]
        self.assertEqual((conv["kernel"], conv["calls"], conv["bytes"]), ("conv", 1, 4e6))
        self.assertAlmostEqual(conv["us"], 3)
        self.assertAlmostEqual(conv["floor_us"], 1.0)
        self.assertIn("one step: 1 kernels, 3 us, floor 1 us", (self.out / "summary.txt").read_text())

    def test_the_seeds_are_trained_in_one_process_a_half(self):
        self.pretend_machine(True, PASSING)
        self.all_of_it("--parts", "cifar10-fast,cifar10-fast-again")
        first, again = (self.part(name, "training") for name in ("cifar10-fast", "cifar10-fast-again"))
        self.assertEqual([run["seed"] for run in first["runs"]], [0, 1])
        self.assertEqual([run["seed"] for run in again["runs"]], [2])
        self.assertEqual(self.last_line("cifar10-fast-0")["HEADRACE_COLLECTIVE_TIMEOUT"], machine.COLLECTIVE_TIMEOUT)

    def last_line(self, name):
        return readers.json_lines(self.log(f"{name}.jsonl"))[-1]

    def test_plans_are_kept_for_the_check_also_without_a_home(self):
        self.pretend_machine(True, PASSING)
        usual = self.environment()
        for number, home in enumerate((None, "", str(self.folder))):
            with self.subTest(home):
                self.out = self.folder / f"out-{number}"
                names = ("HOME", "XDG_CACHE_HOME", machine.PLAN_FOLDER)
                without = {key: value for key, value in usual.items() if key not in names}
                self.environment = lambda: without | ({} if home is None else {"HOME": home})
                self.all_of_it("--parts", "cifar10-fast,cifar10-fast-again")
                first, other = self.last_line("cifar10-fast-0"), self.last_line("cifar10-fast-1")
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
