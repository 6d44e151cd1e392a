"""What is read of GoogleTest and of compute-sanitizer, and which tests run again."""
import unittest

from gpu_checks import correctness, test_runs

PRINTED = """Running main() from gtest_main.cc
[==========] Running 5 tests from 2 test suites.
[----------] 3 tests from Cuda/S/0, where TypeParam = headrace::test::Cuda
[ RUN      ] Cuda/S/0.Copies
[       OK ] Cuda/S/0.Copies (500 ms)
[ RUN      ] Cuda/S/0.Fills
[       OK ] Cuda/S/0.Fills (10 ms)
[ RUN      ] Cuda/S/0.Waits
a.cpp:3: Failure
1 is not 2
[  FAILED  ] Cuda/S/0.Waits, where TypeParam = headrace::test::Cuda (20 ms)
[ RUN      ] Cuda/S/0.Far
a.cpp:9: Skipped
one GPU only

[  SKIPPED ] Cuda/S/0.Far (0 ms)
[----------] 3 tests from Cuda/S/0 (520 ms total)
[ RUN      ] Sizes/P.Holds/7
terminate called after throwing an instance of 'DeviceError'
"""


def test(name, result):
    return {"name": name, "result": result, "seconds": 0.0, "why": ""}


class Reports(unittest.TestCase):
    def test_a_line_a_test_counts_and_the_last_one_is_named(self):
        found = test_runs.results_of(PRINTED)
        self.assertEqual([(one["name"], one["result"]) for one in found],
                         [("Cuda/S/0.Copies", "passed"), ("Cuda/S/0.Fills", "passed"), ("Cuda/S/0.Waits", "failed"),
                          ("Cuda/S/0.Far", "skipped"), ("Sizes/P.Holds/7", "unfinished")])
        self.assertEqual(found[0]["seconds"], 0.5)
        self.assertIn("1 is not 2", found[2]["why"])
        self.assertIn("DeviceError", found[4]["why"])
        counts = test_runs.counts(found)
        self.assertEqual([counts[key] for key in ("ran", "passed", "failed", "skipped")], [4, 2, 2, 1])
        self.assertEqual(test_runs.counts([])["ran"], 0)

    def test_the_list_of_failures_at_the_end_is_not_counted_again(self):
        text = PRINTED + "[  FAILED  ] 1 test, listed below:\n[  FAILED  ] Cuda/S/0.Waits, where TypeParam = C\n"
        self.assertEqual(len(test_runs.results_of(text)), 5)

    def test_lists(self):
        text = ("Running main()\nShape.\n  Prints\nCuda/A/0.  # TypeParam = Cuda\n  One\n  DISABLED_Two\nRegistry.\n  Cpu\n"
                "  CudaIsThere\nAll/P.\n  Is/0  # GetParam() = 3\n")
        self.assertEqual(test_runs.names_of(text), ["Shape.Prints", "Cuda/A/0.One", "Registry.Cpu", "Registry.CudaIsThere", "All/P.Is/0"])

    def test_patterns(self):
        self.assertTrue(test_runs.matches("Cuda/S?/*.A", "Cuda/S1/0.A"))
        self.assertFalse(test_runs.matches("S.A", "S.AB"))

    def test_reasons_of_skips_are_counted(self):
        text = "[ RUN  ] A\na.cpp:3: Skipped\nno peer\n\n[ SKIPPED ] A\nb.cpp:4: Skipped\nno peer\n"
        self.assertEqual(test_runs.skip_reasons(text), {"no peer": 2})

    def test_short_tests_are_the_quickest_that_passed(self):
        found = test_runs.results_of(PRINTED)
        self.assertEqual(test_runs.short_tests(found, 0.4), ["Cuda/S/0.Fills"])
        self.assertEqual(len(test_runs.short_tests(found, 1)), 2)
        self.assertEqual(test_runs.short_tests(found, 0), [])

    def test_what_runs_again(self):
        names = ["S.A", "S.B", "S.C", "S.D", "S.E"]
        crashed = [test("S.A", "passed"), test("S.B", "unfinished")]
        self.assertEqual(test_runs.undecided(names, crashed), ["S.C", "S.D", "S.E"])
        stuck = [test("S.A", "failed"), test("S.B", "failed"), test("S.C", "passed"), test("S.D", "failed"), test("S.E", "skipped")]
        self.assertEqual(test_runs.undecided(names, stuck), ["S.B", "S.D"])
        self.assertEqual(test_runs.undecided(["S.A"], [test("S.A", "failed")]), [])
        self.assertEqual(test_runs.undecided(names, []), names)

    def test_the_list_of_tests(self):
        text = "# a comment\nkernels test_devices named\n  Cuda/K*  # of the GPU\n  Cuda/L*\n\ntrain test_train taken\n  A.* B.*\n"
        self.assertEqual(test_runs.blocks(text), [("kernels", "test_devices", "named", "Cuda/K*:Cuda/L*"),
                                                  ("train", "test_train", "taken", "A.*:B.*")])


class Sanitizer(unittest.TestCase):
    def test_summaries(self):
        self.assertEqual(correctness.sanitizer_errors("========= ERROR SUMMARY: 0 errors\n"), 0)
        self.assertEqual(correctness.sanitizer_errors("========= ERROR SUMMARY: 1 error\n"), 1)
        self.assertEqual(correctness.sanitizer_errors("========= RACECHECK SUMMARY: 3 hazards displayed (2 errors, 1 warning)"), 3)
        self.assertIsNone(correctness.sanitizer_errors("========= COMPUTE-SANITIZER"))

    def test_findings_of_one_that_was_stopped(self):
        text = ("========= COMPUTE-SANITIZER\n========= Invalid __global__ write of size 4 bytes\n=========     at kernel+0x10\n"
                "========= Error: Race reported between Write access\n")
        self.assertEqual(correctness.sanitizer_findings(text), 2)
        self.assertEqual(correctness.sanitizer_findings("========= COMPUTE-SANITIZER\n[ RUN      ] A.B\n"), 0)

