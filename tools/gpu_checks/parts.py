"""What every part of a check has: its limit, its function, and what it may use."""
import dataclasses
import json
import typing

from gpu_checks.machine import Machine
from gpu_checks.readers import json_lines
from gpu_checks.runner import Runner


@dataclasses.dataclass
class Check:
    """Handed to every part. results: those of the parts before it, by name."""
    machine: Machine
    runner: Runner
    results: dict
    seeds: int = 20

    def run(self, name, command, **how):
        return self.runner.run(name, command, **how)

    def headrace(self, name, *words, **how):
        """Runs the command with --json into a file of the logs; the outcome and the file's lines."""
        lines = self.runner.logs / f"{name}.jsonl"
        outcome = self.run(name, [self.machine.program("headrace"), *words, "--json", lines], **how)
        return outcome, json_lines(lines.read_text()) if lines.exists() else []

    def report(self, name):
        """A JSON file of the logs, or nothing where its program did not come to write it."""
        path = self.runner.logs / name
        try:
            return json.loads(path.read_text())
        except (OSError, ValueError):
            return {}


@dataclasses.dataclass(frozen=True)
class Part:
    """function(check) returns its figures; a key `failed` says why the part failed, `skipped` why it was not run."""
    name: str
    limit: float  # seconds
    file: str  # of the output folder, without .json
    function: typing.Callable[[Check], dict]
