"""A check that is ended in its midst leaves what it had measured, as JSON that can be read, and no program running."""
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

from gpu_check.pretended import BENCH, PASSING, Pretending


def processes_of(folder):
    """Command lines of what runs from there."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_text().replace("\0", " ").strip()
        except OSError:
            continue
        if str(folder) in words:
            found.append(words)
    return found


class Killed(Pretending):
    def until(self, what):
        end = time.monotonic() + 120
        while not (found := what()):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        return found

    def saved(self, part, file):
        """The part's result as it lies there now; every file is whole at any moment."""
        for path in self.out.glob("*.json"):
            json.loads(path.read_text())
        path = self.out / f"{file}.json"
        return json.loads(path.read_text()).get(part, {}) if path.exists() else {}

    def killed_by(self, number, part, file, measured, words=(), environment=None):
        """The part's result after the check was killed, once measured(result) held."""
        self.out = self.folder / f"out-{number}"
        wanted = () if "--call" in words else ("--parts", part)
        check = subprocess.Popen(self.command(*self.data_words(), *wanted, *words), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True, env=self.environment() | (environment or {}))
        self.until(lambda: measured(self.saved(part, file)))
        check.send_signal(number)
        error = check.communicate(timeout=60)[1]
        self.assertNotEqual(check.returncode, 0)
        self.assertNotIn("Traceback", error)
        self.until(lambda: not processes_of(self.folder))
        result = self.saved(part, file)
        self.assertTrue(measured(result))
        summary = json.loads((self.out / "summary.json").read_text())
        self.assertFalse(summary["ok"])
        self.assertEqual(summary["parts"][part]["state"], "unfinished")
        self.assertEqual(summary["parts"]["device"]["state"], "ok")
        self.assertLessEqual(len(list(self.out.iterdir())), 8)
        return result, summary

    def test_between_two_seeds(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(number):
                self.pretend_machine(True, PASSING)
                result, summary = self.killed_by(number, "cifar10-fast", "training", lambda one: one.get("runs"),
                                                 ("--seeds", "80"), {"PRETENDED_PACE": "0.5"})
                self.assertLess(len(result["runs"]), 50)
                self.assertEqual(result["runs"][0]["seed"], 0)
                if number == signal.SIGTERM:  # else the figures may be those of the save before
                    self.assertEqual(summary["figures"]["cifar10-fast"]["seconds"]["n"], len(result["runs"]))

    def test_between_two_tests(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(number):
                self.pretend_machine(True, PASSING)
                self.pretend_tests("train", {"A": "passes", "B": "hangs"})
                result, _ = self.killed_by(number, "tests", "tests", lambda one: one.get("golden@cuda:0", {}).get("passed")
                                           and one.get("train@cuda:0", {}).get("passed") and one["train@cuda:0"]["failures"])
                self.assertEqual(result["kernels@cuda:0"]["passed"], 1)
                self.assertEqual([one["test"] for one in result["train@cuda:0"]["failures"]], ["S.B"])

    def test_a_smoke_call_between_two_tests_of_kernels(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(number):
                self.pretend_machine(True, PASSING)
                self.pretend_tests("devices", {"A": "passes", "B": "hangs"})
                result, _ = self.killed_by(number, "conformance", "tests", lambda one: one.get("kernels@cuda:0", {}).get("passed")
                                           and one["kernels@cuda:0"]["failures"], ("--call", "smoke"))
                self.assertEqual(result["kernels@cuda:0"]["not_run"], [])

    def test_the_first_call_between_two_runs_of_a_script(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(number):
                self.pretend_machine(True, PASSING)
                result, summary = self.killed_by(number, "record", "training",
                                                 lambda one: one.get("scripts", {}).get("record", {}).get("runs"),
                                                 ("--call", "first", "--record-runs", "80"), {"PRETENDED_PACE": "0.3"})
                self.assertEqual(result["scripts"]["record"]["runs"][0], {"accuracy": 0.901, "seconds": 1.0})
                self.assertEqual(summary["parts"]["cifar10-fast"]["state"], "ok")

    def test_between_two_groups_of_benchmarks(self):
        self.pretend_machine(True, PASSING)
        self.pretend("build/bench/kernels_bench", "import time\n" + BENCH.replace("CRASHES", "False").replace(
            "sys.exit(", "time.sleep(1000 if 'muon' in group else 0)\nsys.exit("))
        result, _ = self.killed_by(signal.SIGKILL, "kernels", "benchmarks", lambda one: len(one.get("benchmarks", [])) == 3)
        self.assertEqual(result["context"]["floor_gb_per_s"], "4000.0")
