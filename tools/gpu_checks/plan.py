"""The parts of a check in their order, what counts most first, and the time of each and of all."""
from gpu_checks import benchmarks, correctness, device, photographs, training
from gpu_checks.parts import Part

MINUTES = 9.8  # for all of it: no more than the limits together, so that no part lives at another's expense
PARTS = (Part("device", 15, "device", device.device),
         Part("tests", 70, "tests", correctness.tests),
         Part("kernels", 40, "benchmarks", benchmarks.kernels),
         Part("input", 20, "benchmarks", benchmarks.input_rate),
         Part("steps", 30, "benchmarks", benchmarks.steps),
         Part("cifar10-fast", 45, "training", training.seeds(0)),
         Part("record", 115, "training", training.records),
         Part("cifar10-fast-again", 45, "training", training.seeds(1)),
         Part("cifar10-fast-b", 38, "training", training.seeds(0, "cifar10-fast-b")),
         Part("resnet18", 50, "benchmarks", training.resnet),
         Part("photographs", 25, "benchmarks", photographs.photographs),
         Part("memcheck", 25, "tests", correctness.sanitizer("memcheck")),
         Part("racecheck", 15, "tests", correctness.sanitizer("racecheck")),
         Part("synccheck", 10, "tests", correctness.sanitizer("synccheck")),
         Part("oracle", 20, "training", training.oracle),
         Part("ddp", 25, "training", training.baseline))
