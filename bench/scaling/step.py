"""One training step of p replicas in closed form, and what it loses to what."""
import dataclasses
import math

import goodput
import reductions

SMALL_LOSS = 0.02  # below it nothing limits


@dataclasses.dataclass(frozen=True)
class Prediction:
    workers: int
    hosts: int
    reduction: str
    step_seconds: float
    sums_seconds: float  # of all buckets, as if they came one after another
    exposed_seconds: float  # of them, what is not hidden behind the backward pass
    straggling_seconds: float  # for the slowest replica, beyond an average one
    crowding_seconds: float  # more processes than cores
    input_wait_seconds: float
    efficiency: float  # examples a second for each replica, against one alone
    examples_per_second: float  # of all replicas
    input_demand: float  # examples a second for each replica
    input_supply: float
    goodput: float  # the share of the time that failures, restarts and checkpoints leave
    checkpoint_interval_seconds: float
    useful_examples_per_second: float
    limit: str


def buckets(c):
    """Returns (bytes, share of the backward pass after which they are ready); without times of their own, gradients fill up
    evenly."""
    if c.buckets:
        return c.buckets
    whole, rest = divmod(c.gradient_bytes, c.bucket_bytes)
    sizes = [c.bucket_bytes] * int(whole) + ([rest] if rest else [])
    ready, filled = [], 0.0
    for size in sizes:
        filled += size
        ready.append((size, filled / c.gradient_bytes))
    return tuple(ready)


def _normal(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def _jitter_below(c, x):
    """Returns the share of a replica's steps that take up to x times the median-corrected mean."""
    def lognormal(y):
        return float(y >= 1) if c.jitter_sigma == 0 else _normal(math.log(y) / c.jitter_sigma + c.jitter_sigma / 2)
    q = c.straggler_probability
    return (1 - q) * lognormal(x) + q * lognormal(x / c.straggler_factor) if x > 0 else 0.0


def mean_jitter(c):
    return 1 + c.straggler_probability * (c.straggler_factor - 1)


def slowest(c, p):
    """Returns the mean time of the slowest of p replicas over that of one: the integral of 1 - F(x)^p."""
    if p == 1 or (c.jitter_sigma == 0 and c.straggler_probability == 0):
        return 1.0
    if c.jitter_sigma == 0:
        late = 1 - (1 - c.straggler_probability)**p
        return (1 + late * (c.straggler_factor - 1)) / mean_jitter(c)
    end = max(1.0, c.straggler_factor) * math.exp(8 * c.jitter_sigma)
    parts = 20_000
    width = end / parts
    middle = sum(1 - _jitter_below(c, (i + 0.5) * width)**p for i in range(parts))
    return middle * width / mean_jitter(c)


def crowded(c, p):
    """Returns how much longer a replica computes because its host has too few cores for all."""
    return max(1.0, min(p, c.replicas_per_host) * c.core_seconds_per_step / (c.cores_per_host * c.step_seconds))


def input_supply(c, p):
    """Returns the examples a second that reach each replica: its engine's, or its part of what the store delivers."""
    crowd = crowded(c, p) if c.core_seconds_per_step else 1.0
    from_store = c.bytes_per_example * (1 - c.cached_share)
    return min(c.input_examples_per_second / crowd, c.store_bytes_per_second / (from_store * p) if from_store else math.inf)


def exposed(c, p, reduction, backward):
    """Returns the seconds of all sums, and those of them that end after the backward pass. Sums follow one another."""
    times = [(reductions.seconds(c, size, p, reduction), ready) for size, ready in buckets(c)]
    total = sum(seconds for seconds, _ in times)
    if not c.overlap:
        return total, total
    end = 0.0
    for seconds, ready in times:
        end = max(end, ready * backward) + seconds
    return total, max(0.0, end - backward)


def predict(c, p, reduction=None):
    """Returns the Prediction for p replicas, each with the examples that it has alone."""
    reduction = reductions.chosen(c, c.gradient_bytes, p, reduction or c.reduction)
    crowd, slow = crowded(c, p), slowest(c, p)
    update = c.step_seconds * c.update_share
    passes = c.step_seconds - update
    sums, shown = exposed(c, p, reduction, c.step_seconds * c.backward_share * crowd * slow)
    busy = passes * crowd * slow + update * crowd + shown
    supply = input_supply(c, p)
    step = max(busy, c.examples_per_step / supply)
    alone = max(c.step_seconds * crowded(c, 1), c.examples_per_step / input_supply(c, 1))
    useful = goodput.share(c, p)
    losses = {"sums": shown / step, "stragglers": passes * crowd * (slow - 1) / step, "cores": c.step_seconds * (crowd - 1) / step,
              "input": (step - busy) / step, "failures": 1 - useful}
    worst = max(losses, key=losses.get)
    if worst == "input" and supply < c.input_examples_per_second:
        losses["store"], worst = losses["input"], "store"
    total = p * c.examples_per_step / step
    return Prediction(workers=p, hosts=reductions.hosts_of(c, p), reduction=reduction, step_seconds=step, sums_seconds=sums,
                      exposed_seconds=shown, straggling_seconds=passes * crowd * (slow - 1),
                      crowding_seconds=c.step_seconds * (crowd - 1), input_wait_seconds=step - busy, efficiency=alone / step,
                      examples_per_second=total, input_demand=c.examples_per_step / busy, input_supply=supply, goodput=useful,
                      checkpoint_interval_seconds=goodput.interval(c, p), useful_examples_per_second=total * useful,
                      limit=worst if losses[worst] > SMALL_LOSS else "nothing")
