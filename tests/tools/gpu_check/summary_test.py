"""How the parts' figures are drawn together."""
import unittest

from gpu_checks import summary


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

    def test_a_part_that_was_stopped_is_no_success(self):
        cut = summary.summary_of({"device": {"seconds": 1.0}, "kernels": {"unfinished": "stopped", "benchmarks": []}}, {})
        self.assertFalse(cut["ok"])
        self.assertEqual(cut["parts"]["kernels"], {"state": "unfinished", "seconds": None, "why": "stopped"})
        self.assertIn("unfinished", summary.table(cut))

    def test_a_profile_is_shown(self):
        row = {"kernel": "void conv()", "grid": "(1, 1, 1)", "calls": 2, "us": 4.0, "bytes": 8e6, "floor_us": 2.0, "share": 0.5}
        step = {"tool": "ncu", "total": row | {"kernel": ""}, "kernels": [row] * 20}
        one = summary.summary_of({"profile": {"step": step}}, {})
        self.assertEqual(len(one["figures"]["profile"]["slowest"]), summary.SLOWEST)
        self.assertIn("one step: 2 kernels, 4 us, floor 2 us", summary.table(one))
