"""Runs commands, each under a time limit, and keeps what they print in a folder of logs."""
import contextlib
import ctypes
import dataclasses
import itertools
import os
import pathlib
import signal
import subprocess
import time

KEPT = 1 << 20  # bytes of a log that are read back: its end
STOPPED = "stopped at its time limit"
SILENT = "stopped, since it printed nothing more"
LEFT_BEHIND = "left behind: it does not end when it is killed, as where it hangs in the driver"
KIND_SECONDS = 3  # from SIGTERM to SIGKILL
KILL_SECONDS = 5  # from SIGKILL until a process is left behind
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


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


def end_with_parent():
    """In the child: the system kills it when the check ends, however that ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def stop(process, kind=KIND_SECONDS, kill=KILL_SECONDS):
    """Ends the process, kindly at first, and whatever it left running: it leads a group of its own. False where it is
    still there after all that: nobody waits for a call of the driver that never returns."""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(kind)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(kill)
    except subprocess.TimeoutExpired:
        return False
    return True


# A task is a generator: it yields the seconds after which it wants to be looked at again, and returns its result.
def waited_for(task):
    while True:
        try:
            time.sleep(next(task))
        except StopIteration as done:
            return done.value


def together(tasks, count):
    """Runs tasks in their order, `count` of them at once; ended in its midst, it ends those that run."""
    waiting, active = iter(tasks), []
    try:
        while True:
            active += itertools.islice(waiting, count - len(active))
            if not active:
                return
            for task in list(active):
                if next(task, None) is None:
                    active.remove(task)
            time.sleep(0.05)
    finally:
        for task in active:
            task.close()


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

    def start(self, name, command, folder=None, environment=None):
        """A process whose output goes to logs/NAME.log. OSError where it cannot be started."""
        with open(self.logs / f"{name}.log", "wb") as out:
            return subprocess.Popen([str(word) for word in command], stdout=out, stderr=subprocess.STDOUT,
                                    stdin=subprocess.DEVNULL, cwd=folder, start_new_session=True,
                                    preexec_fn=end_with_parent, env={**self.environment, **(environment or {})})

    def run(self, name, command, **how):
        """As running(), waited for."""
        return waited_for(self.running(name, command, **how))

    def running(self, name, command, watch=None, quiet=None, **how):
        """A task that runs `command` to its end or the limit's, and returns its outcome. watch(output): seen while it runs;
        true: it has done what is wanted of it, stop it. quiet: seconds without a word after which it is stopped, too."""
        start = time.monotonic()
        try:
            process = self.start(name, command, **how)
        except OSError as error:
            return Outcome(None, 0.0, "", f"cannot start {command[0]}: {error.strerror}")
        gone = False
        try:
            outcome = yield from self._watch(process, self.logs / f"{name}.log", start, watch, quiet)
        finally:
            gone = stop(process)
        if not gone:
            outcome.status = None
            outcome.why = f"{outcome.why}; {LEFT_BEHIND}".removeprefix("; ")
        return outcome

    def _watch(self, process, log, start, watch, quiet):
        spoke, size = start, 0
        while True:
            status = process.poll()
            now = time.monotonic()
            seconds = now - start
            if log.stat().st_size != size:
                spoke, size = now, log.stat().st_size
            if status is not None:
                outcome = Outcome(status, seconds, tail(log), "")
                if status != 0:
                    outcome.why = f"exit status {status}: {outcome.ending()}"
                return outcome
            if self.left() == 0:
                return Outcome(None, seconds, tail(log), f"{STOPPED}, after {seconds:.0f} s")
            if quiet is not None and now - spoke > quiet:
                return Outcome(None, seconds, tail(log), f"{SILENT}, for {now - spoke:.0f} s")
            if watch is not None and watch(tail(log)):
                return Outcome(0, seconds, tail(log), "")
            yield 0.05 if seconds < 2 else 0.3
