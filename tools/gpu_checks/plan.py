"""The parts of a check in their order, the calls that they are grouped into, and the time of each.

A call fits a command of ten minutes, unpacking included. Times follow from the call's minutes (--minutes) and the parts that
were chosen: each has its weight's share, and what one leaves over is shared by those after it.
"""
import dataclasses
import typing

from gpu_checks import benchmarks, correctness, device, peers, photographs, profile, training
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
    Part("device", 25, "device", device.device, "the GPU, its driver, what Headrace sees of them"),
    Part("conformance", 35, "tests", correctness.conformance, "the suites of the GPU's kernels"),
    Part("epoch", 25, "training", training.epoch, "one epoch of cifar10-fast in bf16"),
    Part("tests", 200, "tests", correctness.tests, "the suites of kernels and streams; the floors on one replica, then on two"),
    Part("shards", 30, "tests", correctness.shards, "virtual shards: the same weights on one replica, two, and all GPUs"),
    Part("kernels", 120, "benchmarks", benchmarks.kernels, "each kernel against the machine's own floors"),
    Part("memcheck", 80, "tests", correctness.sanitizer("memcheck"), "compute-sanitizer on the kernels' short tests"),
    Part("racecheck", 45, "tests", correctness.sanitizer("racecheck"), "the same"),
    Part("synccheck", 25, "tests", correctness.sanitizer("synccheck"), "the same"),
    Part("cifar10-fast", 60, "training", training.seeds(0), "the first half of the seeds, in one process"),
    Part("profile", 150, "benchmarks", profile.profile, "every kernel of one step: time, bytes, share of its floor"),
    Part("steps", 60, "benchmarks", training.steps, "steps with input and without"),
    Part("record", 600, "training", peers.records, "PyTorch's record scripts"),
    Part("cifar10-fast-again", 60, "training", training.seeds(1), "the other half of the seeds"),
    Part("cifar10-fast-b", 45, "training", training.seeds(0, "cifar10-fast-b"), "the later recipe over the first half"),
    Part("input", 30, "benchmarks", benchmarks.input_rate, "the engine alone, into the GPU"),
    Part("photographs", 45, "benchmarks", photographs.photographs, "JPEGs into the GPU"),
    Part("resnet18", 80, "benchmarks", peers.resnet, "steps of ResNet-18 against compiled PyTorch's"),
    Part("oracle", 30, "training", peers.oracle, "the plain recipe in PyTorch, once"),
    Part("ddp", 40, "training", peers.baseline, "a DataLoader + DDP loop"),
    Part("libtorch", 60, "training", peers.libtorch, "libtorch trained on the loader's batches, without a copy"))


@dataclasses.dataclass(frozen=True)
class Call:
    minutes: float
    parts: tuple[str, ...]


CALLS = {
    "smoke": Call(1.5, ("device", "conformance", "epoch")),
    "correctness": Call(8.5, ("device", "tests", "shards", "kernels", "memcheck", "racecheck", "synccheck")),
    "seeds": Call(8.0, ("device", "cifar10-fast", "profile", "steps", "cifar10-fast-again", "cifar10-fast-b", "input",
                        "photographs")),
    "records": Call(9.0, ("device", "cifar10-fast", "record", "cifar10-fast-again")),
    "peers": Call(4.0, ("device", "resnet18", "oracle", "ddp", "libtorch"))}


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
