"""The parts of a check in their order, the calls that they are grouped into, and the time of each.

Calls `first` and `second` fit a GPU that is lent for fifteen minutes. Times follow from the call's minutes (--minutes) and the parts that
were chosen: each has its weight's share, and what one leaves over is shared by those after it.
"""
import dataclasses
import typing

from gpu_checks import benchmarks, cores, correctness, device, photographs, profile, records, training
from gpu_checks.check import Check

LAST_SECONDS = 15  # of a check, for what is still to be stopped, and for packing the logs


@dataclasses.dataclass(frozen=True)
class Part:
    """function(check) returns its figures; a key `failed` says why the part failed, `skipped` why it was not run."""
    name: str
    weight: float  # its share of the time, beside those of the other parts: seconds of a usual call
    file: str  # of the output folder, without .json
    function: typing.Callable[[Check], dict]
    what: str


PARTS = (
    Part("device", 15, "device", device.device, "the GPU, its driver, what Headrace sees of them"),
    Part("conformance", 25, "tests", correctness.conformance, "the suites of the GPU's kernels"),
    Part("epoch", 25, "training", training.epoch, "one epoch of cifar10-fast in bf16"),
    Part("tests", 150, "tests", correctness.tests, "all suites on one replica; meanwhile the record scripts compile"),
    Part("pairs", 35, "tests", correctness.pairs, "tests that never passed on two replicas of one GPU"),
    Part("memcheck", 40, "tests", correctness.sanitizer("memcheck"), "compute-sanitizer on the kernels' short tests"),
    Part("racecheck", 30, "tests", correctness.sanitizer("racecheck"), "the same"),
    Part("cifar10-fast", 35, "training", training.seeds(0), "the first eight of thirteen seeds, in one process"),
    Part("steps", 50, "benchmarks", training.steps, "steps with input and without: stall, copies, idle and host time"),
    Part("profile", 50, "benchmarks", profile.profile, "every kernel of one step: time, bytes, share of its floor"),
    Part("record", 100, "training", records.records, "PyTorch's record scripts"),
    Part("cifar10-fast-again", 25, "training", training.seeds(1), "the other seeds"),
    Part("cores", 80, "benchmarks", cores.cores, "the engine on 1 to 16 threads of the host, beside bare libjpeg"),
    Part("photographs", 45, "benchmarks", photographs.photographs,
         "photographs into the GPU, decoded on either side, for consumers of .8 and .99 of the rate"),
    # Of no call: chosen by --parts.
    Part("two-replicas", 200, "tests", correctness.two_replicas, "all suites on two replicas that share the GPU"),
    Part("shards", 30, "tests", correctness.shards, "virtual shards: the same weights on one replica, two, and all GPUs"),
    Part("kernels", 120, "benchmarks", benchmarks.kernels, "each kernel against the machine's own floors"),
    Part("synccheck", 25, "tests", correctness.sanitizer("synccheck"), "compute-sanitizer, as above"),
    Part("input", 30, "benchmarks", benchmarks.input_rate, "the engine alone, into the GPU"))


@dataclasses.dataclass(frozen=True)
class Call:
    minutes: float
    parts: tuple[str, ...]


CALLS = {
    "smoke": Call(1.5, ("device", "conformance", "epoch")),
    "first": Call(9.5, ("device", "tests", "cifar10-fast", "steps", "profile", "record", "cifar10-fast-again", "cores",
                        "photographs")),
    "second": Call(2.5, ("device", "conformance", "pairs", "memcheck", "racecheck"))}


def chosen(names):
    """The parts of these names in their order, with `device`, which every check begins with."""
    return [part for part in PARTS if part.name == "device" or part.name in names]


def limit(parts, seconds):
    """Of the first of `parts`, where `seconds` are left for all of them."""
    return seconds * parts[0].weight / sum(part.weight for part in parts)


def text(title, parts, minutes):
    """A plan for people: each part with the time it has at least."""
    seconds = 60 * minutes - LAST_SECONDS
    total = sum(part.weight for part in parts)
    lines = [f"{title}: at most {minutes:g} minutes"]
    lines += [f"  {part.name:<20} {seconds * part.weight / total:>6.1f} s  {part.what}" for part in parts]
    return "\n".join(lines) + f"\n  {'to stop and to pack':<20} {LAST_SECONDS:>6.1f} s\n"
