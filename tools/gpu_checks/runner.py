"""Runs commands, each under a time limit, and keeps what they print in a folder of logs."""
import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import time

KEPT = 1 << 20  # bytes of a log that are read back: its end
STOPPED = "stopped at its time limit"


@dataclasses.dataclass
class Outcome:
    status: int | None  # None: it was stopped, or could not be started
    seconds: float
    output: str  # standard output and error, the last megabyte
    why: str  # why it failed; empty when it went well

    def ending(self):
        """The last two lines: a message, and what to do about it."""
        lines = [line.strip()[:300] for line in self.output.splitlines() if line.strip()]
        return " / ".join(lines[-2:]) or "it printed nothing"


def tail(path):
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - KEPT))
        return file.read().decode(errors="replace")


def stop(process):
    """Ends the process, kindly at first, and whatever it left running: it leads a group of its own."""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(3)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Runner:
    def __init__(self, logs, seconds, environment):
        self.logs = pathlib.Path(logs)
        self.logs.mkdir(parents=True, exist_ok=True)
        self.environment = environment
        self.end = time.monotonic() + seconds  # of the whole check
        self.part_end = self.end

    def left(self):
        return max(0.0, self.part_end - time.monotonic())

    def left_of_all(self):
        return max(0.0, self.end - time.monotonic())

    def begin_part(self, seconds):
        """Commands until the next call share this limit, and what is left of the whole check."""
        self.part_end = min(self.end, time.monotonic() + seconds)

    @contextlib.contextmanager
    def at_most(self, seconds):
        """Commands within share this limit, and what is left of the part."""
        whole = self.part_end
        self.part_end = min(whole, time.monotonic() + seconds)
        try:
            yield
        finally:
            self.part_end = whole

    def run(self, name, command, enough=None, folder=None, environment=None):
        """Runs `command`; its output lies in logs/NAME.log. enough(output): it has done what is wanted of it, stop it."""
        log = self.logs / f"{name}.log"
        start = time.monotonic()
        try:
            with open(log, "wb") as out:
                process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=subprocess.STDOUT,
                                           stdin=subprocess.DEVNULL, cwd=folder, start_new_session=True,
                                           env={**self.environment, **(environment or {})})
        except OSError as error:
            return Outcome(None, 0.0, "", f"cannot start {command[0]}: {error.strerror}")
        try:
            return self._watch(process, log, start, enough)
        finally:
            stop(process)

    def _watch(self, process, log, start, enough):
        while True:
            status = process.poll()
            seconds = time.monotonic() - start
            if status is None and self.left() == 0:
                stop(process)
                return Outcome(None, seconds, tail(log), f"{STOPPED}, after {seconds:.0f} s")
            if status is None and enough is not None and enough(tail(log)):
                stop(process)
                return Outcome(0, seconds, tail(log), "")
            if status is not None:
                outcome = Outcome(status, seconds, tail(log), "")
                if status != 0:
                    outcome.why = f"exit status {status}: {outcome.ending()}"
                return outcome
            time.sleep(0.05 if seconds < 2 else 0.3)
