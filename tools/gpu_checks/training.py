"""Parts that train: an epoch, steps with and without input, recipes over the seeds."""
import statistics

RECIPE = "cifar10-fast"
REPLAYED = 8  # batches that --headspace replays
POLL, POLLED = "HEADRACE_CUDA_POLL_US", (0, 1_000_000_000)  # waits that sleep at once, and that never do
REHEARSED = {"epochs": 2, "global_batch": 40, "steps_per_epoch": 2}
SATURATION = ("input_stall_fraction", "exposed_copy_fraction", "device_idle_fraction", "host_us_per_step")


def train(check, name, recipe=RECIPE, how=(), **options):
    """`headrace train` on the check's device; options: stop_after_steps=60 for --stop-after-steps 60. A rehearsal trains
    little, whatever they say."""
    options = {"devices": check.machine.device, "verbose": 0} | options | (REHEARSED if check.machine.rehearsal else {})
    words = [word for key, value in options.items() for word in ("--" + key.replace("_", "-"), str(value))]
    return check.headrace(name, "train", "--recipe", recipe, "--data", check.machine.need_data(), *words, **dict(how))


def steady(lines):
    """Medians over the epochs after the first, which warms up."""
    epochs = [line for line in lines if "epoch" in line][1:]
    figures = {}
    for key in ("examples_per_second", *SATURATION):
        values = [line[key] for line in epochs if line.get(key) is not None]
        figures[key] = statistics.median(values) if values else None
    return figures | {"epochs": len(epochs)}


def steps(check):
    """Training where input costs nothing (the same batches again and again), and as it is, also with other waits."""
    alone, replayed = train(check, "step-only", epochs=8, headspace=REPLAYED)
    result = {"step_only": steady(replayed), "end_to_end": steady([])}
    check.record(result)
    whole, fed = train(check, "end-to-end", epochs=8)
    result["end_to_end"] = steady(fed)
    for microseconds in POLLED:
        check.record(result)
        _, lines = train(check, f"polled-{microseconds}", how={"environment": {POLL: str(microseconds)}}, epochs=4)
        result.setdefault("polled_us", {})[str(microseconds)] = steady(lines)
    rates = [result[key]["examples_per_second"] for key in ("end_to_end", "step_only")]
    result["share_of_step_only"] = rates[0] / rates[1] if all(rates) else None
    failed = alone.why or whole.why or ("" if all(rates) else "an epoch is missing in its lines")
    return result | ({"failed": failed} if failed else {})


def epoch(check):
    """One epoch in bf16 and its evaluation: whether a training on this GPU comes to its end at all."""
    outcome, lines = train(check, "epoch", epochs=1, precision="bf16")
    last = next((line for line in lines if line.get("final")), None)
    failed = outcome.why or ("" if last else "its lines hold no end")
    return {"final": last} | ({"failed": failed} if failed else {})


def seed_runs(lines):
    """Of `headrace train --runs`: seed, accuracy and seconds on the recipe's clock of each run that came to its end."""
    return [{"seed": line.get("seed"), "accuracy": line["test_accuracy"], "seconds": line["train_seconds"],
             "weights_sha256": line.get("weights_sha256")} for line in lines
            if line.get("final") and line.get("train_seconds") is not None]


def seeds(half):
    """The recipe over some of the seeds, 0: the first eight of thirteen, 1: the others; what it is compared with runs in
    between. One process trains them all: libraries, kernels and their choice are there from the second on."""
    def part(check):
        middle = -(-check.seeds * 8 // 13)
        wanted = range(middle) if half == 0 else range(middle, check.seeds)
        if not wanted:
            return {"runs": [], "wanted": 0, "skipped": "there is no seed for it"}
        so_far = lambda lines: {"runs": seed_runs(lines), "wanted": len(wanted)}
        outcome, lines = train(check, f"{RECIPE}-{half}", RECIPE, {"partial": so_far}, seed=wanted[0], runs=len(wanted))
        result = so_far(lines)
        missing = len(wanted) - len(result["runs"])
        why = outcome.why or (f"its lines hold no train_seconds of {missing} runs" if missing else "")
        return result | ({"failed": f"{len(result['runs'])} of {len(wanted)} runs; {why}"} if why else {})
    return part
