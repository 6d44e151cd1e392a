#!/usr/bin/env python3
"""No hot kernel takes more registers, shared or local memory than kernel_budgets.txt grants it, so that as many blocks are
resident on a multiprocessor as its grid counts on; and a kernel whose threads take packs of neighbours moves them by
instructions of up to 16 bytes. Read from the compiled modules, for each GPU that they have code for; no GPU is needed.

  kernel_budgets_test.py BUILD               checks the modules in BUILD
  kernel_budgets_test.py BUILD --table       prints what their kernels take on sm_90
  kernel_budgets_test.py BUILD --self-test   shows that each kind of excess is found
"""
import fnmatch
import pathlib
import re
import sys
from dataclasses import dataclass, replace

import cubins

TABLE = pathlib.Path(__file__).with_name("kernel_budgets.txt")
SKIPPED = 77


@dataclass(frozen=True)
class Budget:
    threads: int  # of the blocks that are launched
    registers: int
    shared: int
    local: int
    blocks: int  # resident ones, at least
    kernel: str  # * and ? stand for anything
    architecture: int = 0  # whose budget it is; 0: of all without one of their own

    def matches(self, kernel):
        return fnmatch.fnmatchcase(kernel.name, self.kernel.replace("[", "[[]"))

    def excess(self, kernel, architecture):
        """What a kernel takes beyond its budget, in words."""
        resident = kernel.resident(self.threads, architecture)
        rules = [(kernel.registers > self.registers, f"{kernel.registers} registers a thread, {self.registers} are granted"),
                 (kernel.shared > self.shared, f"{kernel.shared} bytes of shared memory, {self.shared} are granted"),
                 (kernel.local > self.local, f"{kernel.local} bytes of local memory (spills), {self.local} are granted"),
                 (resident < self.blocks, f"{resident} resident blocks, {self.blocks} are wanted"),
                 (kernel.threads not in (0, self.threads), f"up to {kernel.threads} threads, {self.threads} are launched")]
        return [f"sm_{architecture}: {kernel.name}: {words}" for broken, words in rules if broken]


def budgets(lines):
    for line in lines:
        if line.strip() and not line.startswith("#"):
            first, rest = line.split(maxsplit=1)
            architecture = int(first.removeprefix("sm_")) if first.startswith("sm_") else 0
            *numbers, kernel = (rest if architecture else line).split(maxsplit=5)
            yield Budget(*map(int, numbers), kernel.strip(), architecture)


def budgets_of(table, architecture):
    """Its own come first."""
    own = [budget for budget in table if budget.architecture == architecture]
    return own + [budget for budget in table if budget.architecture == 0]


def narrow_accesses(kernels):
    """Kernels of packs, column_kernel<8, Work<BFloat16, ...>>, without an access as wide as a pack or 16 bytes."""
    for kernel in kernels:
        pack = re.match(r"\w+<(\d+), \w+<(BFloat16|float)\b", kernel.name)
        if pack and kernel.access < (wanted := min(16, int(pack[1]) * (2 if pack[2] == "BFloat16" else 4))):
            yield f"{kernel.name}: no access of more than {kernel.access} bytes, its packs are of {wanted}"


def breaches(table, kernels, architecture=90):
    """A kernel's budget is the first that matches; one that matches no kernel is out of date."""
    found = []
    for kernel in kernels:
        budget = next((budget for budget in table if budget.matches(kernel)), None)
        if budget is not None:
            found += budget.excess(kernel, architecture)
    if architecture <= 90:  # whose instructions cubins.py knows
        found += narrow_accesses(kernels)
    unused = [budget for budget in table if not any(budget.matches(kernel) for kernel in kernels)]
    return found + [f"no kernel is called {budget.kernel}: mend the table" for budget in unused]


def print_table(table, kernels):
    print("threads registers shared local blocks warps occupancy kernel")
    for kernel in kernels:
        budget = next((budget for budget in table if budget.matches(kernel)), None)
        if budget is None:
            continue
        blocks = kernel.resident(budget.threads)
        warps = blocks * -(-budget.threads // 32)
        print(f"{budget.threads:7} {kernel.registers:9} {kernel.shared:6} {kernel.local:5} {blocks:6} {warps:5} "
              f"{warps / 64:8.0%}  {kernel.name}")


def self_test(table, kernels):
    """Each kernel made fatter in each way is found, and so is a budget of no kernel."""
    missed = []
    for budget in table:
        kernel = next(kernel for kernel in kernels if budget.matches(kernel))
        fatter = [replace(kernel, registers=budget.registers + 1), replace(kernel, shared=budget.shared + 1),
                  replace(kernel, local=budget.local + 1), replace(kernel, threads=budget.threads * 2),
                  replace(kernel, registers=kernel.registers + 8 * (256 // 8))]
        missed += [kernel.name for kernel in fatter if not breaches([budget], [kernel])]
    packs = [kernel for kernel in kernels if kernel.name.startswith("column_kernel<8, ")]
    missed += [f"accesses of 8 bytes by {kernel.name}" for kernel in packs
               if not any(narrow_accesses([replace(kernel, access=8)]))]
    if not packs:
        missed.append("any kernel of packs")
    if not breaches([replace(table[0], kernel="no_such_kernel")], kernels):
        missed.append("a budget of no kernel")
    for name in missed:
        print(f"not found: {name}")
    return 1 if missed else 0


def main(build, mode="--check"):
    modules = [pathlib.Path(build) / f"lib{name}.so" for name in ("headrace_cuda", "headrace_cuda_math")]
    if not all(module.exists() for module in modules):
        print("skipped: the CUDA modules are not built")
        return SKIPPED
    table = list(budgets(TABLE.read_text().splitlines()))
    kernels = {architecture: [kernel for module in modules for kernel in cubins.kernels(module, architecture)]
               for architecture in cubins.MULTIPROCESSORS if architecture in cubins.architectures(modules[0])}
    if mode == "--table":
        print_table(budgets_of(table, 90), kernels[90])
        return 0
    if mode == "--self-test":
        return self_test(budgets_of(table, 90), kernels[90])
    found = [line for architecture in kernels for line in breaches(budgets_of(table, architecture), kernels[architecture], architecture)]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
