"""Parts that check results: unit and conformance tests on the GPU, compute-sanitizer on its kernels' conformance tests, and
`shards`: with virtual shards the weights are the same bits on one replica, two that share a GPU, and all GPUs."""
import re

from gpu_checks.machine import find_tool
from gpu_checks.records import compiling
from gpu_checks.runner import together
from gpu_checks.test_runs import SHARDS, filtered, plans_apart, run_tests, short_tests
from gpu_checks.training import train

KERNELS = "kernels"  # the block of the list that the sanitizers run
SLOWED = 40  # a test under compute-sanitizer takes up to so many times as long
SHARDED_RECIPE = "cifar10-cnn"
SHARDED_STEPS = 60
VIRTUAL_SHARDS = 8  # virtual ones, as of --deterministic: as many replicas at most


def tests(check):
    """On one replica, while the record scripts compile: these take five of the processors."""
    return run_tests(check, beside=[compiling(check)] if check.machine.peers else [])


def two_replicas(check):
    return run_tests(check, replicas=2)


def pairs(check):
    return run_tests(check, "pairs", replicas=2)


def conformance(check):
    return run_tests(check, KERNELS)


def sanitizer_errors(text):
    """The number of errors compute-sanitizer counts in its last line; None when it did not come so far."""
    found = re.findall(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)", text)
    return sum(int(number) for number in found[-1] if number) if found else None


def sanitizer_findings(text):
    """The number of findings printed so far: all there is of one that was stopped."""
    return len(re.findall(r"^========= (?:Invalid|Misaligned|Error:|Warning:|Race|Barrier|Divergent|Program hit)", text,
                          re.MULTILINE))


def sanitizer(tool):
    """The part that runs the short ones of the kernels' tests that passed under compute-sanitizer's `tool`."""
    def part(check):
        program = find_tool("compute-sanitizer", "/usr/local/cuda/compute-sanitizer", "/opt/nvidia/compute-sanitizer")
        if program is None:
            return {"skipped": "no compute-sanitizer on this machine"}
        # Tests provoke errors of the API to see them handled; those are no findings.
        words = [program, "--tool", tool, "--error-exitcode", "86", "--print-limit", "20",
                 *(["--report-api-errors", "no"] if tool == "memcheck" else [])]
        run = check.tests.get(f"{KERNELS}@{check.machine.device}")
        short = short_tests(run.verdicts.values(), check.runner.left() * SHARDS / SLOWED) if run else []
        if not short:
            return {"failed": "no test is short enough for it, or none passed: the part `tests` has to run before"}
        shares = [short[number::SHARDS] for number in range(min(SHARDS, len(short)))]
        result, failed = {"tests": len(short), "passed": 0, "errors": 0}, []

        def shard(number, names):
            name = f"{tool}-{number}"
            folder = check.machine.work / "shards" / name
            flags = filtered(folder, names)
            outcome = yield from check.running(name, [*words, run.program, flags], folder=folder,
                                               environment=plans_apart(check))
            errors = sanitizer_errors(outcome.output)
            found = sanitizer_findings(outcome.output) if errors is None else errors
            result["passed"] += len(re.findall(r"^\[       OK \]", outcome.output, re.MULTILINE))
            result["errors"] += found
            if found:
                failed.append(f"{found} errors, see {name}.log")
            elif outcome.why or errors is None:
                failed.append(f"{name}: {outcome.why or 'it gave no summary'}")
            check.record(result)
        together([shard(number, names) for number, names in enumerate(shares)], SHARDS)
        return result | ({"failed": "; ".join(failed)} if failed else {})
    return part


def placements(device, two_replicas, gpus):
    """What trains: the device, two replicas on it, and each power of two of GPUs that there is."""
    found = [device, two_replicas]
    numbers = [name.removeprefix("cuda:") for name in gpus]
    count = 2
    while count <= min(len(numbers), VIRTUAL_SHARDS):
        found.append("cuda:" + ",".join(numbers[:count]))
        count *= 2
    return found


def shards(check):
    """A short training of each, whose weights are compared with those of the first."""
    gpus = check.results["device"].get("devices", [])
    specs = placements(check.machine.device, check.machine.two_replicas(), gpus)
    result, failed = {"gpus": len(gpus), "weights_sha256": {}, "shard_price": {}}, []
    for left, spec in zip(range(len(specs), 0, -1), specs):
        with check.runner.at_most(check.runner.left() / left):
            outcome, lines = train(check, f"shards-{spec.replace(':', '_').replace(',', '_')}", SHARDED_RECIPE, devices=spec,
                                   virtual_shards=VIRTUAL_SHARDS, stop_after_steps=SHARDED_STEPS)
        last = next((line for line in lines if line.get("final")), {})
        weights = result["weights_sha256"][spec] = last.get("weights_sha256")
        result["shard_price"][spec] = last.get("shard_price")
        first = result["weights_sha256"][specs[0]]
        if weights is None:
            failed.append(f"{spec}: {outcome.why or 'it told no weights'}")
        elif first not in (None, weights):
            failed.append(f"{spec}: its weights differ from those of {specs[0]}")
        check.record(result)
    return result | ({"failed": "; ".join(failed)} if failed else {})
