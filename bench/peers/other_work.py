"""How much of the machine went to other processes, other machines of the host included, while something was measured."""
import os
import resource


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
