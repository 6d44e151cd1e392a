#!/usr/bin/env python3
"""Every HEADRACE_SIMD_MATH function of a program is vector code for each generation it is compiled for: none of them calls
anything. A call that was not inlined keeps its loop scalar (devices/base/simd.h); results stay right, so nothing else shows.
And none fuses a multiplication with an addition, which another generation could not.

  vector_code_test.py OBJDUMP PROGRAM
"""
import re
import subprocess
import sys

MEMORY = {"memcpy", "memset", "memmove"}  # which the compiler itself makes of loops
FEWEST = 40  # functions: fewer, and names are no longer what is looked for here


def functions(lines):
    """(name, what it calls or fuses) of each function compiled for one generation: NAME.arch_x86_64_v4 and the like."""
    name, calls = None, []
    for line in lines:
        if head := re.match(r"[0-9a-f]+ <(.+)>:$", line):
            if name:
                yield name, calls
            name, calls = (head[1] if re.search(r"\.arch_x86_64_v\d$", head[1]) else None), []
        elif name and (call := re.search(r"\tcall +[0-9a-f]+ <([^>@+]+)", line)):
            calls.append(call[1])
        elif name and (fused := re.search(r"\t(vfn?m(?:add|sub)\w*)", line)):
            calls.append(fused[1])
    if name:
        yield name, calls


def main(objdump, program):
    listing = subprocess.run([objdump, "-d", "--no-show-raw-insn", program], check=True, capture_output=True, text=True)
    found = list(functions(listing.stdout.splitlines()))
    calling = [(name, sorted(set(calls) - MEMORY)) for name, calls in found if set(calls) - MEMORY]
    for name, calls in calling:
        print(f"{name} calls or fuses {', '.join(calls)}: make that HEADRACE_INLINE, see -ffp-contract")
    if len(found) < FEWEST:
        print(f"{program} has {len(found)} functions of several generations: it should have {FEWEST} at least")
    return 1 if calling or len(found) < FEWEST else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
