"""What every part of a check may use."""
import dataclasses
import json
import time
import typing

from gpu_checks.machine import Machine
from gpu_checks.readers import json_lines
from gpu_checks.runner import Runner, waited_for

UNFINISHED = "it was stopped in its midst; what it had measured by then is here"
BETWEEN_SAVES = 1.0  # seconds, while a command runs


@dataclasses.dataclass
class Check:
    """Handed to every part. results: those of the parts before it and, so far, its own, by name."""
    machine: Machine
    runner: Runner
    results: dict
    save: typing.Callable[[], None]  # writes the results, so that no end of the check can lose them
    seeds: int = 13
    record_runs: int = 5
    part: str = ""
    saved: float = 0.0
    tests: dict = dataclasses.field(default_factory=dict)  # those that ran, by test run: the sanitizer chooses among them

    def record(self, result):
        """What the part has measured so far; saved where it is news."""
        told = result | {"unfinished": UNFINISHED}
        if self.results.get(self.part) != told:
            self.results[self.part] = json.loads(json.dumps(told))  # what is saved changes no more
            self.save()
        self.saved = time.monotonic()

    def run(self, name, command, **how):
        """As running(), waited for."""
        return waited_for(self.running(name, command, **how))

    def running(self, name, command, partial=None, enough=None, **how):
        """As Runner.running(). partial(output): the part's result so far, recorded about once a second; enough(output): it
        has done what is wanted of it, stop it."""
        def watch(output):
            if partial is not None and time.monotonic() - self.saved > BETWEEN_SAVES:
                self.record(partial(output))
            return enough is not None and enough(output)
        return self.runner.running(name, command, watch=watch, **how)

    def headrace(self, name, *words, partial=None, before=(), **how):
        """Runs the command with --json into a file of the logs, below the words `before`; the outcome and the file's
        lines. partial(lines): as in run()."""
        file = self.runner.logs / f"{name}.jsonl"
        lines = lambda: json_lines(file.read_text()) if file.exists() else []
        outcome = self.run(name, [*before, self.machine.program("headrace"), *words, "--json", file],
                           partial=partial and (lambda _: partial(lines())), **how)
        return outcome, lines()

    def text(self, name):
        """A file of the logs, or nothing where its program did not come to write it."""
        try:
            return (self.runner.logs / name).read_text(errors="replace")
        except OSError:
            return ""
