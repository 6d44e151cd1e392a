"""Compares the C interface with abi.txt: what a program was compiled with must stay as it was.

  abi_test.py --compiler CC --nm NM --headers FOLDER --include FOLDER --list abi.txt LIBRARY
  abi_test.py ... --update LIBRARY      writes abi.txt anew: symbols, structs and members may only be added, and
                                        with them HR_ABI_VERSION grows
  abi_test.py ... --self-test LIBRARY   plants breaches and expects each to be found

Structs and constants are read from the headers; a C program that is made from them prints sizes and offsets.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile


def without_comments(header):
    return re.sub(r"/\*.*?\*/", "", header, flags=re.S)


def members(body):
    body = re.sub(r"\([^()]*\)\s*;", ";", re.sub(r"\(\*(\w+)\)", r" \1", body))  # pointers to functions
    return [re.search(r"(\w+)\s*(\[[^\]]*\])?$", line.strip()).group(1) for line in body.split(";") if line.strip()]


def structs(text):
    return {name: members(body) for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", text, flags=re.S)}


def constants(text):
    names = re.findall(r"^#define (HR_(?!API)\w+) [^{\\\n]+$", text, flags=re.M)
    for body in re.findall(r"enum \{(.*?)\}", text, flags=re.S):
        names += re.findall(r"(HR_\w+)\s*=", body)
    return [name for name in names if not name.endswith("_INIT")]


def program(text):
    lines = ["#include <headrace/headrace.h>", "#include <stdio.h>", "int main(void) {"]
    for name in constants(text):
        lines.append(f'printf("constant {name} %lld\\n", (long long){name});')
    for name, fields in structs(text).items():
        lines.append(f'printf("struct {name} %zu\\n", sizeof({name}));')
        for field in fields:
            lines.append(f'printf("  {name}.{field} at %zu, %zu bytes\\n", offsetof({name}, {field}), sizeof((({name}*)0)->{field}));')
    return "\n".join(lines + ["return 0; }"])


def layout(compiler, include, text):
    with tempfile.TemporaryDirectory() as scratch:
        source, binary = pathlib.Path(scratch, "abi.c"), pathlib.Path(scratch, "abi")
        source.write_text(program(text))
        subprocess.run([compiler, "-std=c11", "-I", include, "-o", binary, source], check=True)
        return subprocess.run([binary], check=True, capture_output=True, text=True).stdout.splitlines()


def symbols(nm, library):
    options = ["--defined-only", "--extern-only"] + (["-D"] if ".so" in library.name else [])
    listed = subprocess.run([nm, *options, library], check=True, capture_output=True, text=True).stdout
    return sorted(f"symbol {name}" for name in set(re.findall(r"^[0-9a-f]+ T (hr_\w+)", listed, flags=re.M)))


def found(options, library, text):
    return symbols(options.nm, library) + layout(options.compiler, options.include, text)


def compare(expected, actual, declared):
    breaches = [f"missing, or changed: {line}" for line in expected if line not in actual]
    breaches += [f"not in the list: {line}" for line in actual if line not in expected]
    exported = {line.split()[1] for line in actual if line.startswith("symbol ")}
    breaches += [f"declared, not exported: {name}" for name in sorted(declared - exported)]
    return breaches + [f"exported, not declared: {name}" for name in sorted(exported - declared)]


def self_test(expected, declared):
    size = next(i for i, line in enumerate(expected) if line.startswith("struct "))
    member = next(i for i, line in enumerate(expected) if line.startswith("  "))
    planted = {
        "a symbol that is gone": expected[1:],
        "a new symbol": ["symbol hr_new"] + expected,
        "a struct of another size": expected[:size] + [expected[size] + "0"] + expected[size + 1:],
        "a member in another place": expected[:member] + [expected[member].replace(" at ", " at 9")] + expected[member + 1:],
    }
    missed = [what for what, actual in planted.items() if not compare(expected, actual, declared)]
    if not compare(expected, expected, declared | {"hr_forgotten"}):
        missed.append("a function that is declared only")
    return [f"not caught: {what}" for what in missed]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--nm", required=True)
    parser.add_argument("--headers", type=pathlib.Path, required=True)
    parser.add_argument("--include", type=pathlib.Path, required=True)
    parser.add_argument("--list", type=pathlib.Path, required=True)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    text = without_comments("".join(header.read_text() for header in sorted(options.headers.glob("*.h"))))
    declared = set(re.findall(r"^HR_API [^;]*?\b(hr_\w+)\(", text, flags=re.M))
    if options.update:
        options.list.write_text("\n".join(found(options, options.library, text)) + "\n")
        return 0
    expected = options.list.read_text().splitlines()
    if options.self_test:
        breaches = self_test(expected, declared)
    else:
        breaches = compare(expected, found(options, options.library, text), declared)
    for breach in breaches:
        print(breach, file=sys.stderr)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
