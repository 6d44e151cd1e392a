"""Every filter by which tests are picked out or left out names tests that are there, and every source of tests is part of
a program.

    filters_test.py BUILD CTEST

Patterns of GoogleTest are those that tests/CMakeLists.txt wrote to BUILD/tests/filters.txt, those in tools/check and those of
the list of tests for a GPU; names and labels of CTest are those in tools/check. BUILD/tests/test_sources.txt has the programs'
sources. Tests of a program of that list that name a GPU, as Cuda/SUITE/0.TEST does, are all on it.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
from gpu_checks.test_runs import LIST, blocks, listed, matches


def idle(patterns, names):
    return [pattern for pattern in patterns if not any(matches(pattern, name) for name in names)]


def unlisted(patterns, names):
    """Tests that name a GPU, as Cuda/SUITE/0.TEST does, and are on no pattern."""
    return [name for name in names if re.match(r"Cuda\w*/", name) and not any(matches(pattern, name) for pattern in patterns)]


def test_filters(build, check):
    """(where, programs, patterns) of every filter."""
    lines = (build / "tests/filters.txt").read_text().splitlines()
    found = [(where, programs.split(":"), patterns.split(":")) for where, programs, patterns in (line.split("\t") for line in lines)]
    found += [(LIST.name, [program], patterns.split(":")) for _, program, _, patterns in blocks(LIST.read_text())]
    return found + [("tools/check", [program], patterns.split(":"))
                    for program, patterns in re.findall(r"/(test_\w+)\b.*--gtest_filter='([^']+)'", check)]


def ctest_filters(check):
    """(option, alternatives) of every regular expression: alternatives without groups."""
    return [(option, expression.split("|")) for option, expression in re.findall(r" (-LE|-L|-E|-R) ('[^']+'|\S+)", check)]


def ctest_names(ctest, build):
    """Names and labels of all tests, those of `-C long` too."""
    shown = subprocess.run([ctest, "--test-dir", build, "-C", "long", "--show-only=json-v1"], capture_output=True, text=True, check=True)
    names, labels = set(), set()
    for test in json.loads(shown.stdout)["tests"]:
        names.add(test["name"])
        for entry in test.get("properties", []):
            labels |= set(entry["value"]) if entry["name"] == "LABELS" else set()
    return names, labels


def in_no_program(build, compiled):
    """Sources of tests that no pattern of tests/CMakeLists.txt reaches, as those in a deeper folder; without CUDA its own are none."""
    of_cuda = () if (build / "tests/test_cuda_host").exists() else ("tests/cuda/", "tests/devices/cuda/")
    names = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("*_test.cpp"))
    return [name for name in names if str(ROOT / name) not in compiled and not name.startswith(of_cuda)]


def self_test():
    assert idle(["A.*", "B*.x", "?.y", "*/C.z"], ["A.b", "Bee.x", "q.y", "R/C.z"]) == []
    assert idle(["Ab.*", "A", "??.y"], ["A.b", "q.y"]) == ["Ab.*", "A", "??.y"]
    assert unlisted(["Cuda/A/*", "Cuda/B*"], ["Cuda/A/0.b", "Cpu/D/0.b", "Cudas.d"]) == []
    assert unlisted(["Cuda/A/*", "Cuda/B*"], ["Cuda/A/0.b", "Cuda/D/0.b", "CudaGpus/A/0.b"]) == ["Cuda/D/0.b", "CudaGpus/A/0.b"]
    text = " build/asan/tests/test_x --gtest_filter='A.*:B.*'\n ctest -LE 'house|golden' -E '^x$'"
    assert ctest_filters(text) == [("-LE", ["'house", "golden'"]), ("-E", ["'^x$'"])]


def main():
    self_test()
    build, ctest = pathlib.Path(sys.argv[1]), sys.argv[2]
    check = (ROOT / "tools/check").read_text()
    filters = test_filters(build, check)
    programs = {program: listed(build / "tests" / program, "*") for _, of, _ in filters for program in of}
    wrong = [f"{program} lists no test: is it built?" for program, names in programs.items() if not names]
    for where, of, patterns in filters:
        names = [name for program in of for name in programs[program]]
        if all(programs[program] for program in of):
            wrong += [f"{where}: '{pattern}' names no test of {' or '.join(of)}" for pattern in idle(patterns, names)]
    named = [(program, patterns.split(":")) for _, program, devices, patterns in blocks(LIST.read_text()) if devices == "named"]
    for program in {program for program, _ in named}:
        patterns = [pattern for of, those in named if of == program for pattern in those]
        wrong += [f"{name} names a GPU and is not in {LIST.name}" for name in unlisted(patterns, programs[program])]
    compiled = set((build / "tests/test_sources.txt").read_text().splitlines())
    wrong += [f"{name} is part of no program: tests/CMakeLists.txt" for name in in_no_program(build, compiled)]
    if not in_no_program(build, compiled - {next(iter(sorted(compiled)))}):
        wrong.append("a source that is part of no program is not noticed")
    names, labels = ctest_names(ctest, build)
    chosen = ctest_filters(check)
    for option, alternatives in chosen:
        among = labels if option.startswith("-L") else names
        for alternative in (each.strip("'") for each in alternatives):
            if not any(re.search(alternative, one) for one in among):
                wrong.append(f"tools/check: {option} '{alternative}' names no {'label' if among is labels else 'test'}")
    print(f"{len(filters)} filters of {len(programs)} programs, {len(chosen)} of CTest")
    order = [name for name, *_ in blocks(LIST.read_text())]
    if order != ["kernels", "streams", "train", "pipeline", "faults", "golden", "recipes", "pairs"]:
        wrong.append(f"{LIST.name} has other blocks: {order}")
    if len(filters) < 10 or not any(where == "tools/check" for where, _, _ in filters) or len(chosen) < 4:
        wrong.append("fewer filters were found than there are: has the way changed in which they are written down?")
    sys.exit("\n".join(wrong) or 0)


main()
