#!/usr/bin/env python3
"""Every source of kernels has code for each GPU that CMake names, PTX where it is to have some, and the same kernels in each.
Read from the compiled files; no GPU is needed.

  architectures_test.py ARCHITECTURES FILE ...             such as 80-real,90 and the modules
  architectures_test.py --self-test ARCHITECTURES FILE ... shows that one too few is found
"""
import pathlib
import sys
from collections import defaultdict

import cubins

SKIPPED = 77


def wanted(architectures):
    """{(kind, number)} of a list as CMake has it."""
    kinds = {"": (cubins.CUBIN, cubins.PTX), "real": (cubins.CUBIN,), "virtual": (cubins.PTX,)}
    return {(kind, int(number)) for number, _, which in (word.partition("-") for word in architectures.split(","))
            for kind in kinds[which]}


def named(architecture):
    kind, number = architecture
    return f"{'code' if kind == cubins.CUBIN else 'PTX'} for {number // 10}.{number % 10}"


def breaches(file, architectures):
    expected, found, kernels = wanted(architectures), defaultdict(set), defaultdict(dict)
    for source, kind, number, flags, data in cubins.entries(file):
        found[source].add((kind, number))
        if kind == cubins.CUBIN and not flags & cubins.COMPRESSED:
            kernels[source][number] = {kernel.name for kernel in cubins.kernels_of(data)}
    lines = [] if found else [f"{file}: no kernels"]
    for source, of in sorted(found.items()):
        lines += [f"{file}: fat binary {source} has no {named(each)}" for each in sorted(expected - of)]
        lines += [f"{file}: fat binary {source} has {named(each)}, which is not asked for" for each in sorted(of - expected)]
        names = list(kernels[source].values())
        lines += [f"{file}: fat binary {source} has other kernels for one GPU than for another"] * (names.count(names[0]) != len(names))
    return lines


def self_test(architectures, files):
    missed = [each for file in files for each in (f"{architectures},103-real", f"{architectures},103-virtual", architectures.split(",")[0])
              if not breaches(file, each)]
    for each in missed:
        print(f"not found: {each}")
    return 1 if missed else 0


def main(*words):
    architectures, *files = words[1:] if words[0] == "--self-test" else words
    if not all(pathlib.Path(file).exists() for file in files):
        print("skipped: the CUDA modules are not built")
        return SKIPPED
    if words[0] == "--self-test":
        return self_test(architectures, files)
    found = [line for file in files for line in breaches(file, architectures)]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
