"""How the time of a check is divided."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

from gpu_checks import benchmarks, plan

ROOT = pathlib.Path(__file__).resolve().parents[3]


def dry_run(*words):
    return subprocess.run([sys.executable, ROOT / "tools/gpu_check", "--dry-run", *words], capture_output=True, text=True)


class Plan(unittest.TestCase):
    def test_calls_fit_a_command_of_ten_minutes_and_a_loan_of_fifteen(self):
        self.assertLessEqual(plan.CALLS["first"].minutes, 9.5)
        self.assertLessEqual(plan.CALLS["first"].minutes + plan.CALLS["second"].minutes, 12)  # three to start, carry and unpack

    def test_calls_have_parts_in_their_order(self):
        names = [part.name for part in plan.PARTS]
        self.assertEqual(len(set(names)), len(names))
        self.assertEqual(list(plan.CALLS), ["smoke", "first", "second"])
        self.assertLessEqual(plan.CALLS["smoke"].minutes, 1.5)
        for call in plan.CALLS.values():
            self.assertEqual(call.parts[0], "device")
            self.assertEqual(list(call.parts), [name for name in names if name in call.parts])
        second = plan.CALLS["second"].parts
        self.assertLess(second.index("conformance"), second.index("memcheck"))  # which runs those that passed

    def test_limits_add_up_to_what_there_is(self):
        for wanted in (["kernels"], ["tests", "profile", "cores"], [part.name for part in plan.PARTS]):
            parts, left = plan.chosen(wanted), 300.0
            for number in range(len(parts)):
                limit = plan.limit(parts[number:], left)
                self.assertAlmostEqual(limit, 300 * parts[number].weight / sum(part.weight for part in parts))
                left -= limit
            self.assertAlmostEqual(left, 0)

    def test_what_a_part_leaves_over_is_for_those_behind_it(self):
        parts = plan.chosen(["kernels", "input"])
        self.assertGreater(plan.limit(parts[1:], 299), plan.limit(parts[1:], 300 - plan.limit(parts, 300)))
        self.assertAlmostEqual(plan.limit(parts[2:], 100), 100)

    def test_a_dry_run_shows_all_calls_and_limits_that_fit(self):
        done = dry_run()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name, call in plan.CALLS.items():
            block = done.stdout[done.stdout.index(f"--call {name}:"):].split("\n\n")[0]
            self.assertEqual([line.split()[0] for line in block.splitlines()[1:-1]],
                             [part.name for part in plan.PARTS if part.name in call.parts])
            seconds = [float(one) for one in re.findall(r" ([0-9.]+) s\b", block)]
            self.assertAlmostEqual(sum(seconds), 60 * call.minutes, delta=0.5)

    def test_a_dry_run_of_one_call_or_some_parts(self):
        self.assertTrue(dry_run("--call", "first").stdout.startswith("--call first: at most 9.5 minutes"))
        few = dry_run("--parts", "kernels", "--minutes", "2").stdout
        self.assertIn("at most 2 minutes", few)
        self.assertRegex(few, r"kernels +93\.3 s")
        self.assertNotIn("cores", few.split("\n", 1)[1])

    @unittest.skipUnless((pathlib.Path(os.environ.get("HEADRACE_BUILD", "/nowhere")) / "bench/kernels_bench").exists(),
                         "no kernels_bench")
    def test_each_benchmark_belongs_to_one_group(self):
        program = pathlib.Path(os.environ["HEADRACE_BUILD"]) / "bench/kernels_bench"

        def names(*words):
            return subprocess.run([program, "--device=cpu:1", "--floors=1,1,1", "--benchmark_list_tests", *words],
                                  capture_output=True, text=True, check=True).stdout.split()
        everything, grouped = names(), []
        for group, pattern in (*benchmarks.GROUPS, benchmarks.OTHERS):
            those = names(f"--benchmark_filter={pattern}")
            self.assertTrue(those or group.endswith("bf16"), f"{group} is empty")
            grouped += those
        self.assertEqual(sorted(grouped), sorted(everything))
