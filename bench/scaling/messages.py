"""An event simulation of one all-reduce, message by message: each replica runs its rounds as soon as what it waits for is there,
and each host sends and receives one message at a time over its connection. It knows the algorithms' messages, not their formulas.
"""
import collections
import heapq
import typing

import reductions


class Round(typing.NamedTuple):
    """What a replica does in turn: send `size` bytes to `to`, and wait for a message from `source`, whose bytes it may add."""
    to: int | None = None
    size: float = 0
    source: int | None = None
    adds: bool = False


def ring_rounds(ranks, place, size):
    p, part = len(ranks), size / len(ranks)
    right, left = ranks[(place + 1) % p], ranks[place - 1]
    return [Round(right, part, left, adds=turn < p - 1) for turn in range(2 * (p - 1))]


def _reversed_bits(value, bits):
    return int(format(value, f"0{bits}b")[::-1], 2) if bits else 0


def tree_rounds(ranks, place, size):
    """Halving and doubling with binary blocks, the largest block first."""
    blocks, begin, index = reductions.blocks_of(len(ranks)), 0, 0
    while place >= begin + blocks[index]:
        begin, index = begin + blocks[index], index + 1
    block, own = blocks[index], place - begin
    distances = [1 << bit for bit in range(block.bit_length() - 1)]
    halves = [(ranks[begin + (own ^ distance)], size / (2 * distance)) for distance in distances]
    rounds = [Round(peer, part, peer, adds=True) for peer, part in halves]
    smaller = larger = []
    if index + 1 < len(blocks):  # whose sums come here
        after = blocks[index + 1]
        source = ranks[begin + block + _reversed_bits(_reversed_bits(own, len(distances)) * after // block, after.bit_length() - 1)]
        rounds.append(Round(source=source, adds=True))
        smaller = [Round(source, size / block)]
    if index > 0:
        before = blocks[index - 1]
        first, count = _reversed_bits(own, len(distances)) * before // block, before // block
        others = [ranks[begin - before + _reversed_bits(first + i, before.bit_length() - 1)] for i in range(count)]
        larger = [Round(other, size / before) for other in others] + [Round(source=other) for other in others]
    gathering = [Round(peer, part, peer) for peer, part in reversed(halves)]
    return rounds + larger + smaller + gathering


def hierarchical_rounds(c, p, place, size):
    """A ring within the host, a ring or tree between equal places of all hosts."""
    group = min(p, c.replicas_per_host)
    host, own = divmod(place, group)
    local = [host * group + i for i in range(group)]
    peers = list(range(own, p, group))
    rounds = ring_rounds(local, own, size)
    use_ring = reductions.tier_ring(c, size, p) < reductions.tier_tree(c, size, p)
    between = (ring_rounds if use_ring else tree_rounds)(peers, host, size / group)
    return rounds[:group - 1] + between + rounds[group - 1:]


def rounds_of(c, p, place, size, reduction):
    if reduction == "hierarchical":
        return hierarchical_rounds(c, p, place, size)
    return (ring_rounds if reduction == "ring" else tree_rounds)(list(range(p)), place, size)


class Network:
    """Connections of replicas within their host, and those of hosts, each with one message at a time in either direction."""

    def __init__(self, c, p):
        self.c, self.p = c, p
        self.leaving, self.arriving = collections.defaultdict(float), collections.defaultdict(float)

    def send(self, now, source, to, size):
        """Returns when the message has arrived."""
        group = self.c.replicas_per_host
        local = source // group == to // group
        link = reductions.within(self.c, self.p) if local else reductions.between(self.c)
        out, into = (("replica", source), ("replica", to)) if local else (("host", source // group), ("host", to // group))
        begin, busy = max(now, self.leaving[out]), size * link.byte_seconds
        self.leaving[out] = begin + busy
        self.arriving[into] = max(begin + link.latency, self.arriving[into]) + busy
        return self.arriving[into]


def all_reduce(c, p, size, reduction, begins):
    """Returns when each replica has its sums, if it begins at begins[replica]."""
    network, adding = Network(c, p), reductions.adding(c, p)
    programs = [rounds_of(c, p, place, size, reduction) for place in range(p)]
    turns, ends, sent = [0] * p, list(begins), [False] * p
    boxes, waiting = collections.defaultdict(collections.deque), {}
    events = [(begin, replica) for replica, begin in enumerate(begins)]
    heapq.heapify(events)
    while events:
        now, replica = heapq.heappop(events)
        if turns[replica] == len(programs[replica]):
            ends[replica] = now
            continue
        turn = programs[replica][turns[replica]]
        if turn.to is not None and not sent[replica]:
            box = (replica, turn.to)
            boxes[box].append((network.send(now, replica, turn.to, turn.size), turn.size))
            if box in waiting:
                heapq.heappush(events, (waiting.pop(box), turn.to))
            sent[replica] = True
        if turn.source is not None:
            box = (turn.source, replica)
            if not boxes[box]:
                waiting[box] = now
                continue
            arrival, arrived = boxes[box].popleft()
            now = max(now, arrival) + (arrived * adding if turn.adds else 0)
        turns[replica], sent[replica] = turns[replica] + 1, False
        heapq.heappush(events, (now, replica))
    copies = 2 * size * reductions.crowding(c, p) / c.copy_bytes_per_second
    return [end + copies for end in ends]
