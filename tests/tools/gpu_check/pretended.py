"""A machine with a GPU that is only pretended: programs that write what those of a build would, and a check of them."""
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]

HEAD = "|  run     |  epoch  |  train_acc  |  val_acc  |  tta_val_acc  |  time_seconds  |"


def row(run, epoch, accuracy="", seconds="1.0000"):
    return f"|  {run:>6}  |  {epoch:>5}  |     0.9000  |   0.9000  |       {accuracy:>6}  |        {seconds}  |"


# What pretends to be the programs of a build with a GPU.
HEADRACE = '''
import os, time
def value(flag, usual): return sys.argv[sys.argv.index(flag) + 1] if flag in sys.argv else usual
first, runs = int(value("--seed", 0)), int(value("--runs", 1))
lines = {"doctor": [{"name": "device cuda:0", "found": DOCTOR, "version": "pretended", "hint": ""}],
         "bench": [{"images_per_second": 5e6}],
         "convert": [{"records": 96}],
         "digest": [{"final": True, "sha256": os.environ.get("PRETENDED_DIGEST_" + value("--decode", ""), "0")}],
         "explain": [{"name": "decode()", "occupancy": 0.7}, {"name": "consumer", "occupancy": 0.995}, {"bottleneck": "consumer"}],
         "train": [{"epoch": e, "examples_per_second": 1e6 * e, "input_stall_fraction": 0.002} for e in (1, 2, 3)] +
                  [{"final": True, "seed": first + run, "test_accuracy": 0.9, "train_seconds": 0.5, "weights_sha256": "0",
                    **{name: os.environ.get(name) for name in ("HEADRACE_COLLECTIVE_TIMEOUT", "HEADRACE_CUDA_PLAN_FOLDER", "HOME")}} for run in range(runs)]}[sys.argv[1]]
with open(value("--json", ""), "w") as file:
    for line in lines:
        print(json.dumps(line), file=file, flush=True)
        time.sleep(float(os.environ.get("PRETENDED_PACE", 0)) if "final" in line else 0)
'''
# A test program: FATES says what becomes of a test: passes, is skipped, fails, crashes, hangs, or sticks, which makes every test
# after it fail in the same process.
FATED = '''
import os, time
fates = FATES
if "--gtest_list_tests" in sys.argv:
    print("S.\\n" + "\\n".join("  " + name for name in fates))
    sys.exit(0)
flags = next(word[17:] for word in sys.argv if word.startswith("--gtest_flagfile="))
wanted = open(flags).read().strip().removeprefix("--gtest_filter=").split(":")
assert os.getcwd() == os.environ["TMPDIR"] == os.path.dirname(flags)
assert os.environ["HEADRACE_CUDA_PLAN_FOLDER"] == os.path.join(os.path.dirname(os.getcwd()), "plans")
stuck = failed = False
for name, fate in fates.items():
    if "S." + name not in wanted:
        continue
    print("[ RUN      ] S." + name, flush=True)
    if fate == "crashes":
        print("on " + os.environ["HEADRACE_TEST_DEVICES"], flush=True)
        os.abort()
    if fate == "hangs":
        time.sleep(1000)
    if fate == "skipped":
        print("a.cpp:3: Skipped\\nno GPU here\\n\\n[  SKIPPED ] S." + name + " (0 ms)", flush=True)
        continue
    fails = fate in ("fails", "sticks") or stuck
    stuck, failed = stuck or fate == "sticks", failed or fails
    print(("[  FAILED  ] S." if fails else "[       OK ] S.") + name + " (10 ms)", flush=True)
sys.exit(1 if failed else 0)
'''
BENCH = '''
path = next(word[16:] for word in sys.argv if word.startswith("--benchmark_out="))
group = next((word[19:] for word in sys.argv if word.startswith("--benchmark_filter=")), "")
floors = next((word[9:] for word in sys.argv if word.startswith("--floors=")), "measured")
text = json.dumps({"context": {"device": "cuda:0", "floor_gb_per_s": "4000.0", "floor_f32_gflop_per_s": "5.0",
                               "floor_bf16_gflop_per_s": "6.0"},
                   "benchmarks": [{"name": "gelu/" + group, "floors": floors, "real_time": 1, "time_unit": "ms", "iterations": 1,
                                   "roofline": 0.8}, {"name": "never"}]}, indent=1)
crashes = CRASHES and "muon" in group and not group.startswith("-")
open(path, "w").write(text.replace(',\\n  {\\n   "name": "never"\\n  }', "") if not crashes else text[:-20])
sys.exit(139 if crashes else 0)
'''
# As ncu: runs what stands behind its own words, and writes its table.
NCU = '''
import os, subprocess
words = sys.argv[1:]
assert words[words.index("--profile-from-start") + 1] == "off" and words[words.index("--clock-control") + 1] == "none"
log = words[words.index("--log-file") + 1]
command = words[words.index("--log-file") + 2:]
assert command[1:4] == ["train", "--recipe", "cifar10-fast"] and "--profile-epoch" in command
found = [name for folder in os.environ["LD_LIBRARY_PATH"].split(":") for name in os.listdir(folder)]
assert "libcublasLt.so.13" in found and not any(name.startswith(("libcupti", "libnvperf")) for name in found), found
status = subprocess.run(command).returncode
with open(log, "w") as file:
    if FAILS:
        print("==ERROR== the driver is too old", file=file)
        sys.exit(1)
    print('"ID","Kernel Name","Grid Size","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum"', file=file)
    print('"","","","byte","byte","ns"', file=file)
    print('"0","conv","(8, 1, 1)","3000000","1000000","3000"', file=file)
sys.exit(status)
'''
ORACLE = '''
import pathlib
def read_archive(path): raise NotImplementedError("zstd")
def main():
    assert read_archive.__name__ == "read_records" and sys.argv[1] == "--data" and sys.argv[2].endswith(".records")
    if "--export" in sys.argv:
        folder = pathlib.Path(sys.argv[-1])
        folder.mkdir(parents=True)
        (folder / "train.pt").touch()
        (folder / "test.pt").touch()
'''
RECORD = f'''
import os, time
assert os.path.exists("cifar10/test.pt")
print({HEAD!r})
for run in range(1000):
    print({row("7", "0")!r}); print({row("", "eval", "0.9010", "1.0000")!r}, flush=True)
    time.sleep(float(os.environ.get("PRETENDED_PACE", 0.01)))
'''
SANITIZER = '''
flags = next(word[17:] for word in sys.argv if word.startswith("--gtest_flagfile="))
for name in open(flags).read().strip().removeprefix("--gtest_filter=").split(":"):
    print(f"[       OK ] {name} (1 ms)")
print("========= ERROR SUMMARY: 0 errors")
'''
PASSING, SKIPPING = {"A": "passes"}, {"A": "skipped"}


class Pretending(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.out = self.folder / "out"

    def pretend(self, path, text):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!{sys.executable} -IS\nimport json, sys\n" + text)  # without site: it starts twice as fast
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def pretend_machine(self, gpu, fates):
        self.pretend("build/headrace", HEADRACE.replace("DOCTOR", str(gpu)))
        for program in ("devices", "train", "pipeline", "faults", "golden", "recipes"):
            self.pretend_tests(program, fates)
        self.pretend("build/bench/kernels_bench", BENCH.replace("CRASHES", "False"))
        self.pretend("build/bench/input_bench", BENCH.replace("CRASHES", "False"))
        self.pretend("tools/nvidia-smi", 'print("name, driver_version\\nPretended, 1")' if gpu else "sys.exit(9)")
        self.pretend("tools/compute-sanitizer", SANITIZER)
        self.pretend("tools/ncu", NCU.replace("FAILS", "False"))
        self.pretend("peers/cifar10_recipe_torch.py", ORACLE)
        self.pretend("peers/record.py", RECORD)
        self.pretend("site/torch/__init__.py", "")
        for name in ("libcublasLt.so.13", "libcupti.so.13", "libnvperf_host.so"):  # one folder, as the wheels of CUDA 13 have it
            self.pretend(f"site/nvidia/cu13/lib/{name}", "")
        (self.folder / "data.tar").touch()
        (self.folder / "photographs.tar").touch()

    def pretend_tests(self, program, fates):
        self.pretend(f"build/tests/test_{program}", FATED.replace("FATES", repr(fates)))

    def environment(self):
        return dict(os.environ) | {"PATH": f"{self.folder / 'tools'}{os.pathsep}{os.environ['PATH']}",
                                   "PYTHONPATH": str(self.folder / "site"), "CUDA_VISIBLE_DEVICES": ""}

    def command(self, *words, build=None):
        return [sys.executable, ROOT / "tools/gpu_check", self.out, "--build", build or self.folder / "build", *words]

    def check(self, *words, build=None):
        done = subprocess.run(self.command(*words, build=build), capture_output=True, text=True, env=self.environment(),
                              timeout=240)
        self.assertEqual(done.stderr, "")
        files = sorted(path.name for path in self.out.rglob("*"))
        self.assertLessEqual(len(files), 8)
        return done, json.loads((self.out / "summary.json").read_text()), files

    def data_words(self):
        return ["--data", self.folder / "data.tar", "--photographs", self.folder / "photographs.tar", "--peers", self.folder / "peers",
                "--seeds", "3", "--record-runs", "3"]

    def all_of_it(self, *words):
        return self.check(*self.data_words(), *words)

    def part(self, name, file):
        return json.loads((self.out / f"{file}.json").read_text())[name]
