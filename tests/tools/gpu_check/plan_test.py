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
    def test_a_call_fits_a_command_of_ten_minutes(self):
        for name, call in plan.CALLS.items():
            self.assertLessEqual(call.minutes, 9, name)  # one is left to unpack and to start
        self.assertLessEqual(sum(call.minutes for call in plan.CALLS.values()), 31)  # nine of them: record scripts compile for minutes

    def test_every_part_belongs_to_a_call(self):
        names = [part.name for part in plan.PARTS]
        self.assertEqual(len(set(names)), len(names))
        self.assertEqual(set(names), {name for call in plan.CALLS.values() for name in call.parts})
        self.assertEqual(list(plan.CALLS), ["smoke", "correctness", "seeds", "records", "peers"])
        self.assertLessEqual(plan.CALLS["smoke"].minutes, 1.5)
        self.assertLess(names.index("tests"), names.index("memcheck"))  # which runs those that passed
        for call in plan.CALLS.values():
            self.assertEqual(call.parts[0], "device")

    def test_limits_add_up_to_what_there_is(self):
        for wanted in (["kernels"], ["tests", "profile", "ddp"], [part.name for part in plan.PARTS]):
            parts, left = plan.chosen(wanted), 300.0
            for number in range(len(parts)):
                limit = plan.limit(parts[number:], left)
                self.assertAlmostEqual(limit, 300 * parts[number].weight / sum(part.weight for part in parts))
                left -= limit
            self.assertAlmostEqual(left, 0)

    def test_what_a_part_leaves_over_is_for_those_behind_it(self):
        parts = plan.chosen(["kernels", "ddp"])
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
        self.assertTrue(dry_run("--call", "seeds").stdout.startswith("--call seeds: at most 8 minutes"))
        few = dry_run("--parts", "kernels", "--minutes", "2").stdout
        self.assertIn("at most 2 minutes", few)
        self.assertRegex(few, r"kernels +86\.9 s")
        self.assertNotIn("ddp", few.split("\n", 1)[1])

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
