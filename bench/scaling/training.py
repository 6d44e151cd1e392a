"""An event simulation of training: replicas of unequal speed, input that comes at its own rate, and buckets that wait for the
slowest. Up to `max_messages` of a step its sums are simulated message by message, beyond that as one event of the formula's length.
"""
import random

import messages
import reductions
import step


def messages_of(c, p, reduction):
    rounds = 2 * (p - 1) if reduction == "ring" else 2 * p.bit_length() + 2 * min(p, c.replicas_per_host)
    return p * rounds * len(step.buckets(c))


class Replica:
    def __init__(self, c, p, seed):
        self.draw = random.Random(seed)
        self.c, self.crowd = c, step.crowded(c, p)
        self.next_batch, self.between_batches = 0.0, c.examples_per_step / step.input_supply(c, p)
        self.free = self.end_of_passes = 0.0

    def jitter(self):
        c = self.c
        factor = c.straggler_factor if self.draw.random() < c.straggler_probability else 1.0
        if c.jitter_sigma:
            factor *= self.draw.lognormvariate(-c.jitter_sigma**2 / 2, c.jitter_sigma)
        return factor / step.mean_jitter(c)

    def compute(self):
        """Returns when each bucket is ready."""
        c = self.c
        self.next_batch += self.between_batches
        begin = max(self.free, self.next_batch)
        speed = self.crowd * self.jitter()
        backward = c.step_seconds * c.backward_share * speed
        self.end_of_passes = begin + c.step_seconds * (1 - c.update_share) * speed
        if not c.overlap:
            return [self.end_of_passes] * len(step.buckets(c))
        return [self.end_of_passes - (1 - ready) * backward for _, ready in step.buckets(c)]

    def finish(self, sums_end):
        self.free = max(self.end_of_passes, sums_end) + self.c.step_seconds * self.c.update_share * self.crowd


def _sum(c, p, size, reduction, begins, by_message):
    if p == 1:
        return begins
    if by_message:
        return messages.all_reduce(c, p, size, reduction, begins)
    return [max(begins) + reductions.seconds(c, size, p, reduction)] * p


def step_seconds(c, p, steps=50, reduction=None, seed=1, max_messages=20_000):
    """Returns the mean time of a step."""
    reduction = reductions.chosen(c, c.gradient_bytes, p, reduction or c.reduction)
    by_message = messages_of(c, p, reduction) <= max_messages and not any(workers == p for workers, _ in c.measured_sums)
    replicas = [Replica(c, p, seed * 1_000_003 + rank) for rank in range(p)]
    for _ in range(steps):
        ready = [replica.compute() for replica in replicas]
        ends = [0.0] * p
        for i, (size, _) in enumerate(step.buckets(c)):
            begins = [max(own[i], end) for own, end in zip(ready, ends)]
            ends = _sum(c, p, size, reduction, begins, by_message)
        for replica, end in zip(replicas, ends):
            replica.finish(end)
    return max(replica.free for replica in replicas) / steps
