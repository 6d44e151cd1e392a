"""What is read of doctor, nvidia-smi, Google Benchmark and the record scripts."""
import json
import unittest

from gpu_checks import readers

from gpu_check.pretended import HEAD, row


class Readers(unittest.TestCase):
    def test_lines_that_are_no_json_are_passed_over(self):
        self.assertEqual(readers.json_lines('progress\n{"a": 1}\n{"cut": \n {"b": 2}'), [{"a": 1}, {"b": 2}])

    def test_gpus_that_doctor_lists(self):
        lines = [{"name": "device cpu:0", "found": True}, {"name": "device cuda:1", "found": True}, {"name": "GPU", "found": False}]
        self.assertEqual(readers.doctor_devices(lines), ["cuda:1"])

    def test_nvidia_smi_rows_lose_the_units_of_their_heads(self):
        self.assertEqual(readers.csv_rows("name, memory.total [MiB]\nH, 5 MiB\n"), [{"name": "H", "memory.total": "5 MiB"}])
        self.assertEqual(readers.csv_rows(""), [])

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

    def test_a_benchmark_report_is_read_as_far_as_it_was_written(self):
        rows = [{"name": f"gelu/{i}", "real_time": float(i), "time_unit": "us", "roofline": 0.5} for i in range(3)]
        text = json.dumps({"context": {"device": "{odd}", "caches": [{"size": 1}]}, "benchmarks": rows}, indent=2)
        self.assertEqual(readers.cut_json(text), json.loads(text))
        kept = set()
        for length in range(len(text)):
            cut = readers.cut_json(text[:length])
            self.assertEqual(cut["benchmarks"], rows[:len(cut["benchmarks"])])
            kept.add(len(cut["benchmarks"]))
            if cut["benchmarks"]:
                self.assertEqual(cut["context"]["device"], "{odd}")
        self.assertEqual(kept, {0, 1, 2, 3})
        self.assertEqual(readers.cut_json(""), {"context": {}, "benchmarks": []})
