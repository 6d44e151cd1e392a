"""The time of one all-reduce in closed form: a message of n bytes takes latency + n / bandwidth, and connections send and
receive at once. Ring and halving-doubling as in Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
Operations in MPICH" (International Journal of High Performance Computing Applications 19(1), 2005); the ring is that of Patarasuk
and Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations" (Journal of Parallel and Distributed Computing
69(2), 2009). For numbers that are no power of two the tree has binary blocks, as Gloo has them.
"""
import math
import typing


class Link(typing.NamedTuple):
    latency: float
    byte_seconds: float

    def seconds(self, size):
        return self.latency + size * self.byte_seconds


def crowding(c, p):
    """Returns how many processes of a host share a core, at least 1."""
    return max(1.0, min(p, c.replicas_per_host) / c.cores_per_host)


def within(c, p):
    return Link(c.local_latency_seconds, crowding(c, p) / c.local_bandwidth_bytes_per_second)


def between(c, sharing=1):
    """Returns the link of a replica to another host, if `sharing` replicas send over the host's connection at once."""
    return Link(c.latency_seconds, sharing / c.bandwidth_bytes_per_second)


def adding(c, p):
    """Returns the seconds for each byte that a replica adds."""
    return crowding(c, p) / c.reduce_bytes_per_second


def hosts_of(c, p):
    return math.ceil(p / c.replicas_per_host)


def ring(c, size, p):
    """Every part makes 2 (p - 1) hops, one of a host's replicas to another or, once a host, to the next host. It takes as long as
    a part's way or, if that is longer, as a host's connection is busy with one message of each round."""
    if p == 1:
        return 0.0
    part, adds = size / p, (p - 1) * size / p * adding(c, p)
    if p <= c.replicas_per_host:
        return 2 * (p - 1) * within(c, p).seconds(part) + adds
    leaving = 2 * (p - 1) * hosts_of(c, p) / p
    way = leaving * between(c).seconds(part) + (2 * (p - 1) - leaving) * within(c, p).seconds(part) + adds
    wire = between(c).seconds(2 * (p - 1) * part)
    return max(way, wire)


def exchange_link(c, p, distance):
    """Returns the link of replicas whose ranks are `distance` apart, if all of them exchange at once."""
    return within(c, p) if distance < c.replicas_per_host else between(c, min(p, c.replicas_per_host))


def _halvings(c, size, p, block):
    """Returns the seconds to scatter sums within a block of a power of two, and to gather them."""
    scatter = gather = 0.0
    distance = 1
    while distance < block:
        part = size / (2 * distance)
        link = exchange_link(c, p, distance).seconds(part)
        scatter += link + part * adding(c, p)
        gather += link
        distance *= 2
    return scatter, gather


def blocks_of(p):
    """Returns the powers of two that make p, the largest first."""
    return [1 << bit for bit in reversed(range(p.bit_length())) if p >> bit & 1]


def tree(c, size, p):
    """Halving and doubling: 2 log2(p) messages, of half the bytes to the neighbour, of fewer to those farther off. A smaller
    block sends its sums to the next larger one and has the result from it."""
    if p == 1:
        return 0.0
    blocks = blocks_of(p)
    times = [_halvings(c, size, p, block) for block in blocks]
    ready = times[-1][0]
    for i in reversed(range(len(blocks) - 1)):
        link = exchange_link(c, p, blocks[i])
        arrived = ready + link.seconds(size / blocks[i + 1])
        ready = max(times[i][0], arrived) + size / blocks[i] * adding(c, p)
    end = 0.0
    for i, block in enumerate(blocks):
        sent = size / block * exchange_link(c, p, block).byte_seconds if i + 1 < len(blocks) else 0.0
        end = max(end, ready + sent + times[i][1])
        if i + 1 < len(blocks):
            ready += exchange_link(c, p, block).seconds(size / blocks[i + 1])
    return end


def hierarchical(c, size, p):
    """The replicas of a host scatter their sums among them in a ring, equal places of all hosts sum their part as the faster of
    ring and tree, and each host gathers the parts."""
    group = min(p, c.replicas_per_host)
    local = (group - 1) * (2 * within(c, p).seconds(size / group) + size / group * adding(c, p))
    return local + min(tier(c, size, p) for tier in (tier_ring, tier_tree))


def tier_ring(c, size, p):
    hosts, group = hosts_of(c, p), min(p, c.replicas_per_host)
    if hosts == 1:
        return 0.0
    part = size / group / hosts
    return (hosts - 1) * (2 * between(c, group).seconds(part) + part * adding(c, p))


def tier_tree(c, size, p):
    hosts, group = hosts_of(c, p), min(p, c.replicas_per_host)
    alone = _OnHostsOfOne(c, group, p)
    return tree(alone, size / group, hosts)


class _OnHostsOfOne:
    """Constants seen by one of `group` equal places of each host."""

    def __init__(self, c, group, p):
        self.replicas_per_host = 1
        self.cores_per_host = 1.0
        self.latency_seconds = c.latency_seconds
        self.bandwidth_bytes_per_second = c.bandwidth_bytes_per_second / group
        self.local_latency_seconds, self.local_bandwidth_bytes_per_second = 0.0, 1.0  # nobody is local
        self.reduce_bytes_per_second = 1 / adding(c, p)


ALGORITHMS = {"ring": ring, "tree": tree, "hierarchical": hierarchical}


def chosen(c, size, p, reduction):
    """Returns the name of the algorithm: itself, or the fastest for "best"."""
    return min(ALGORITHMS, key=lambda name: ALGORITHMS[name](c, size, p)) if reduction == "best" else reduction


def _interpolated(points, size):
    """Between measured points on logarithmic axes; beyond them in proportion to the bytes, below them constant."""
    points = sorted(points)
    if size <= points[0][0]:
        return points[0][1]
    if size >= points[-1][0]:
        return points[-1][1] * size / points[-1][0]
    (x0, y0), (x1, y1) = next(pair for pair in zip(points, points[1:]) if pair[1][0] >= size)
    share = math.log(size / x0) / math.log(x1 / x0)
    return y0 * (y1 / y0)**share


def seconds(c, size, p, reduction):
    """Returns the time of one sum over p replicas: what was measured for that number, else the formula's."""
    if p == 1 or size <= 0:
        return 0.0
    for workers, points in c.measured_sums:
        if workers == p:
            return _interpolated(points, size)
    copies = 2 * size * crowding(c, p) / c.copy_bytes_per_second
    return ALGORITHMS[chosen(c, size, p, reduction)](c, size, p) + copies
