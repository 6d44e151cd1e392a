"""What the input peers share: the options, the clock, the check, and the work where a peer has no operation of its own.

Every peer takes  --workload W --data ARCHIVE --threads N --seconds S --json -  and prints one JSON line. N is the
number of its threads or worker processes that decode and augment; the thread that takes the batches is not counted,
and is not in Headrace's --threads either. Batches are taken and dropped. With --check FOLDER it writes what it
made instead: FOLDER/<workload>-<peer>.json (shape, type, range, mean and deviation a channel) and, of jpeg-eval, the
first batch as .npy; bench/peers/agree compares.
"""
import argparse
import dataclasses
import itertools
import json
import pathlib
import time

import numpy as np

CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
AREA, RATIO, CROP, RESIZE, PAD = (0.08, 1.0), (3 / 4, 4 / 3), 224, 256, 4


@dataclasses.dataclass(frozen=True)
class Workload:
    batch: int
    check_batches: int  # taken for the check: about one pass or, where crops are drawn, enough to average


WORKLOADS = {"jpeg-train": Workload(64, 22), "jpeg-eval": Workload(64, 1), "cifar-train": Workload(512, 98),
             "cifar-jpeg": Workload(512, 98)}


def options(description, makers, more=None):
    arg = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--workload", choices=sorted(makers), required=True)
    arg.add_argument("--data", required=True, help="a tar or tar.zst of JPEGs")
    arg.add_argument("--threads", type=int, default=1)
    arg.add_argument("--seconds", type=float, default=5)
    arg.add_argument("--seed", type=int, default=0)
    arg.add_argument("--json", default="-", choices=["-"], help="one line on standard output")
    arg.add_argument("--check", metavar="FOLDER")
    if more:
        more(arg)
    opt = arg.parse_args()
    opt.batch = WORKLOADS[opt.workload].batch
    return opt


def run(peer, version, description, makers, more=None):
    """Measures or checks; makers[workload](opt) gives an endless iterator of batches of images. version: a text or,
    where it depends on them, a function of the options."""
    opt = options(description, makers, more)
    version = version(opt) if callable(version) else version
    batches = iter(makers[opt.workload](opt))
    line = check(peer, opt, batches) if opt.check else measure(opt, batches)
    if hasattr(batches, "close"):
        batches.close()  # a generator ends its threads
    print(json.dumps({"peer": peer, "workload": opt.workload, "threads": opt.threads, **line, "version": version}),
          flush=True)


def measure(opt, batches):
    start = time.perf_counter()
    for _ in range(4):
        next(batches)
    while time.perf_counter() - start < min(2.0, opt.seconds):
        next(batches)
    count, start = 0, time.perf_counter()
    while (seconds := time.perf_counter() - start) < opt.seconds:
        next(batches)
        count += 1
    return {"images_per_second": count * opt.batch / seconds, "batches": count, "seconds": seconds}


def check(peer, opt, batches):
    work = WORKLOADS[opt.workload]
    place = pathlib.Path(opt.check)
    place.mkdir(parents=True, exist_ok=True)
    count, total, squares, low, high = 0, 0.0, 0.0, np.inf, -np.inf
    for batch in itertools.islice(batches, work.check_batches):
        images = np.asarray(batch)
        shape, dtype = images.shape, images.dtype
        if opt.workload == "jpeg-eval":
            np.save(place / f"jpeg-eval-{peer}.npy", images)
        channel = 1 if opt.workload.startswith("cifar") else 3
        values = np.moveaxis(images, channel, 0).reshape(3, -1).astype(np.float64)
        count += values.shape[1]
        total, squares = total + values.sum(1), squares + (values**2).sum(1)
        low, high = min(low, values.min()), max(high, values.max())
    mean = total / count
    line = {"shape": list(shape), "dtype": str(dtype), "min": float(low), "max": float(high), "mean": mean.tolist(),
            "std": np.sqrt(squares / count - mean**2).tolist()}
    (place / f"{opt.workload}-{peer}.json").write_text(json.dumps(line) + "\n")
    return line


def orders(count, seed):
    """The indices 0 .. count-1 in a new order each pass, without end."""
    rng = np.random.default_rng(seed)
    while True:
        yield from rng.permutation(count).tolist()


def index_batches(count, batch, seed):
    """orders() in arrays of `batch`; cheap where batches are large."""
    rng = np.random.default_rng(seed)
    left = np.empty(0, np.int64)
    while True:
        while len(left) < batch:
            left = np.concatenate([left, rng.permutation(count)])
        yield left[:batch]
        left = left[batch:]


def random_window(height, width, rng):
    """(top, left, height, width) as torchvision's RandomResizedCrop draws it."""
    low, high = np.log(RATIO[0]), np.log(RATIO[1])
    for _ in range(10):
        area = height * width * rng.uniform(*AREA)
        ratio = np.exp(rng.uniform(low, high))
        w, h = round((area * ratio)**0.5), round((area / ratio)**0.5)
        if 0 < w <= width and 0 < h <= height:
            return int(rng.integers(0, height - h + 1)), int(rng.integers(0, width - w + 1)), h, w
    w, h = min(width, round(height * RATIO[1])), min(height, round(width / RATIO[0]))
    return (height - h) // 2, (width - w) // 2, h, w


def eval_size(height, width):
    """Height and width after the shorter side became 256."""
    return (RESIZE, RESIZE * width // height) if height <= width else (RESIZE * height // width, RESIZE)


def eval_corner(height, width):
    """(top, left) of the centre crop: half a pixel is rounded to even, as torchvision and Headrace do."""
    return round((height - CROP) / 2), round((width - CROP) / 2)
