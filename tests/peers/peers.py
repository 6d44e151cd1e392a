"""What the topics share: checks that count, and the program that decodes images."""

import json
import os
import subprocess
import sys
from pathlib import Path

BUILD = Path(os.environ.get("HEADRACE_BUILD", Path(__file__).resolve().parents[2] / "build/release"))


class Checks:
    """Counts what was compared by its name, and remembers the first ones that differ."""

    def __init__(self):
        self.done, self.different, self.examples = {}, {}, {}

    def expect(self, name, ok, example=""):
        self.done[name] = self.done.get(name, 0) + 1
        if not ok:
            self.different[name] = self.different.get(name, 0) + 1
            self.examples.setdefault(name, []).append(str(example))

    def finish(self):
        for name, done in self.done.items():
            print(f"{name}: {done} compared, {self.different.get(name, 0)} different")
            for example in self.examples.get(name, [])[:3]:
                print(f"    {example}")
        sys.exit(1 if self.different else 0)


def silence_libraries():
    """What C libraries print from here on is dropped; Python's own errors are not."""
    sys.stderr = os.fdopen(os.dup(2), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def decode_images(files):
    """What tests/peers/decode_images.cpp says of each file, by name."""
    names = "\n".join(str(file) for file in files)
    program = BUILD / "tests/peer_decode"
    done = subprocess.run([program], input=names, capture_output=True, text=True, check=True)
    return {line["file"]: line for line in map(json.loads, done.stdout.splitlines())}
