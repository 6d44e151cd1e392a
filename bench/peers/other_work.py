"""What a stored result says of its machine: how much of it went to other processes, other machines of the host included, while
something was measured; its processor; the commit."""
import datetime
import os
import pathlib
import platform
import resource
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def busy_and_all():
    """Seconds of all processors since the machine started: at work (time that the host took away included), and in all."""
    with open("/proc/stat") as stat:
        user, nice, system, idle, waiting, interrupt, soft, stolen, *_ = map(int, stat.readline().split()[1:])
    busy = user + nice + system + interrupt + soft + stolen
    ticks = os.sysconf("SC_CLK_TCK")
    return busy / ticks, (busy + idle + waiting) / ticks


def own_seconds():
    """Processor time of this process and of all its descendants that have ended and were waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class OtherWork:
    """Counts from when it is made."""

    def __init__(self):
        self.busy, self.all = busy_and_all()
        self.own = own_seconds()

    def share(self):
        """Of all processors' time until now: what neither this process nor its ended descendants used, 0 to 1."""
        busy, of_all = busy_and_all()
        others = (busy - self.busy) - (own_seconds() - self.own)
        return max(0.0, others / max(of_all - self.all, 1e-9))


def processor():
    with open("/proc/cpuinfo") as lines:
        return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def commit():
    """The commit that is checked out, "-dirty" where files differ from it: results apart, which a run of many writes."""
    git = lambda *words: subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    changes = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/results", ":!bench/scaling/results",
                  ":!bench/RESULTS.md")
    return git("rev-parse", "--short", "HEAD") + ("-dirty" if changes else "")


def provenance(others):
    """What every stored result says of its machine and moment. `others`: the OtherWork since the measuring began."""
    return {"commit": commit(), "processor": processor(), "cores": os.cpu_count(), "date": datetime.date.today().isoformat(),
            "other_work": round(others.share(), 3)}
