"""What is read of ncu and nsys, and the table that is made of it."""
import pathlib
import tempfile
import unittest

from gpu_checks import profile

NCU = '''==PROF== Connected to process 4711 (/bundle/bin/headrace)
==PROF== Profiling "conv" - 0 (1/3): 0%....50%....100% - 1 pass
==PROF== Disconnected from process 4711
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum"
"","","","","","","","","","","","byte","byte","ns"
"0","4711","headrace","127.0.0.1","void conv<float, 4>(Shape, float *)","1","7","(256, 1, 1)","(132, 1, 1)","0","9.0","3000000","1000000","2,000"
"1","4711","headrace","127.0.0.1","void conv<float, 4>(Shape, float *)","1","7","(256, 1, 1)","(132, 1, 1)","0","9.0","3000000","1000000","2000"
"2","4711","headrace","127.0.0.1","norm","1","7","(64, 1, 1)","(8, 1, 1)","0","9.0","500000","n/a","9000"
'''

class Profilers(unittest.TestCase):
    def test_kernels_of_ncu(self):
        conv, again, norm = profile.ncu_kernels(NCU)
        self.assertEqual((conv["kernel"], conv["grid"], conv["bytes"]), ("void conv<float, 4>(Shape, float *)", "(132, 1, 1)", 4e6))
        self.assertAlmostEqual(conv["seconds"], 2e-6, 12)
        self.assertEqual(conv, again)
        self.assertAlmostEqual(norm["seconds"], 9e-6, 12)
        self.assertIsNone(norm["bytes"])

    def test_units_are_those_of_the_row_below_the_head(self):
        text = NCU.replace('"byte","byte","ns"', '"Kbyte","Mbyte","us"')
        conv = profile.ncu_kernels(text)[0]
        self.assertAlmostEqual(conv["seconds"], 2e-3)
        self.assertAlmostEqual(conv["bytes"], 3e9 + 1e12)

    def test_a_table_that_was_cut_is_read_as_far_as_it_goes(self):
        self.assertEqual(len(profile.ncu_kernels(NCU[:NCU.index('"1","4711"') + 40])), 1)
        self.assertEqual(profile.ncu_kernels("==ERROR== ERR_NVGPUCTRPERM - no permission\n"), [])
        self.assertEqual(profile.ncu_kernels(""), [])

    def test_the_slowest_come_first_with_their_floors(self):
        table = profile.step_table(profile.ncu_kernels(NCU), 4e12)
        norm, conv = table["kernels"]
        self.assertEqual((norm["calls"], norm["bytes"], norm["floor_us"], norm["share"]), (1, None, None, None))
        self.assertEqual((conv["calls"], conv["bytes"]), (2, 8e6))
        self.assertAlmostEqual(norm["us"], 9)
        self.assertAlmostEqual(conv["us"], 4)
        self.assertAlmostEqual(conv["floor_us"], 2.0)
        self.assertAlmostEqual(conv["share"], 0.5)
        self.assertEqual((table["total"]["calls"], table["total"]["bytes"]), (3, None))
        self.assertAlmostEqual(table["total"]["us"], 13)

    def test_without_a_copy_to_compare_with_there_is_no_floor(self):
        self.assertIsNone(profile.step_table(profile.ncu_kernels(NCU), None)["kernels"][1]["share"])

    def test_the_loader_finds_all_but_other_profilers(self):
        with tempfile.TemporaryDirectory() as scratch:
            folders = {"plain": ["libcudnn.so.9"], "mixed": ["libcublas.so.13", "libcupti.so.13", "libnvperf_target.so", "libnvJitLink.so.13"]}
            for folder, names in folders.items():
                (pathlib.Path(scratch) / folder).mkdir()
                for name in names:
                    (pathlib.Path(scratch) / folder / name).write_text(name)
            path = f"{scratch}/plain::{scratch}/mixed:/not/there"
            for _ in range(2):  # once a mode
                plain, mixed, absent = profile.without_profilers(path, pathlib.Path(scratch) / "links").split(":")
                self.assertEqual((plain, absent), (f"{scratch}/plain", "/not/there"))
                self.assertEqual({file.name: file.read_text() for file in pathlib.Path(mixed).iterdir()},
                                 {name: name for name in ("libcublas.so.13", "libnvJitLink.so.13")})
            self.assertEqual(profile.without_profilers("", pathlib.Path(scratch)), "")
