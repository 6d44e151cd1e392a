"""What failures cost. Workers fail independently, at times without memory; any failure ends all of them, the launcher starts them
again, and training resumes from the newest checkpoint.

Young, "A first order approximation to the optimum checkpoint interval", Communications of the ACM 17(9), 1974, pages 530-531.
Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation Computer Systems 22(3),
2006, pages 303-312.
"""
import math
import random


def rate(c, p):
    """Returns the failures a second of p workers."""
    return p / c.worker_mtbf_seconds


def young(c, p):
    return math.sqrt(2 * c.checkpoint_seconds / rate(c, p))


def daly(c, p):
    """Returns the interval of work between two checkpoints, to higher order than Young's."""
    mean, cost = 1 / rate(c, p), c.checkpoint_seconds
    if cost >= 2 * mean:
        return mean
    x = cost / (2 * mean)
    return math.sqrt(2 * cost * mean) * (1 + math.sqrt(x) / 3 + x / 9) - cost


def interval(c, p):
    """Returns the seconds of work between two checkpoints: the given one, else the best, which is never below 1 s."""
    return c.checkpoint_interval_seconds or max(1.0, daly(c, p))


def share(c, p, work=None):
    """Returns the share of the time that brings training forward, by Daly's complete form: a segment of work, checkpoint included,
    takes exp(r R) (exp(r (work + checkpoint)) - 1) / r seconds on average at r failures a second and restarts of R seconds."""
    r, work = rate(c, p), work or interval(c, p)
    segment = r * (work + c.checkpoint_seconds)
    if r * c.restart_seconds + segment > 600:
        return 0.0
    return work * r / (math.exp(r * c.restart_seconds) * math.expm1(segment))


def simulated_share(c, p, failures=2000, seed=1):
    """Lives through that many failures, in restarts and checkpoints, too. Returns the share of the time that brought training
    forward."""
    draw, r, work = random.Random(seed), rate(c, p), interval(c, p)
    now = done = 0.0
    next_failure = draw.expovariate(r)
    while failures > 0:
        segment = work + c.checkpoint_seconds
        if now + segment <= next_failure:  # skips all whole segments before the failure at once
            whole = int((next_failure - now) / segment)
            now += whole * segment
            done += whole * work
            continue
        failures -= 1
        now = next_failure
        next_failure += draw.expovariate(r)
        while now + c.restart_seconds > next_failure:
            failures -= 1
            now = next_failure
            next_failure += draw.expovariate(r)
        now += c.restart_seconds
    return done / now
