"""Parts that train to the end: cifar10-fast, the record scripts of PyTorch, a DataLoader + DDP baseline, on one GPU and data."""
import os

from gpu_checks.benchmarks import REPLAYED, steady, train
from gpu_checks.machine import Missing, torch_python
from gpu_checks.readers import json_lines, record_runs

ORACLE = "cifar10_recipe_torch.py"
RESNET_BATCH = 512


def seed_runs(lines):
    """Of `headrace train --runs`: seed, accuracy and seconds on the recipe's clock of each run that came to its end."""
    return [{"seed": line.get("seed"), "accuracy": line["test_accuracy"], "seconds": line["train_seconds"],
             "weights_sha256": line.get("weights_sha256")} for line in lines
            if line.get("final") and line.get("train_seconds") is not None]


def seeds(half, recipe="cifar10-fast"):
    """The recipe over half the seeds, 0: the first, 1: the others; what it is compared with runs in between. One process
    trains them all: libraries, kernels and their choice are there from the second on."""
    def part(check):
        middle = (check.seeds + 1) // 2
        wanted = range(middle) if half == 0 else range(middle, check.seeds)
        if not wanted:
            return {"runs": [], "wanted": 0, "skipped": "there is no seed for it"}
        so_far = lambda lines: {"runs": seed_runs(lines), "wanted": len(wanted)}
        outcome, lines = train(check, f"{recipe}-{half}", "--seed", str(wanted[0]), "--runs", str(len(wanted)), recipe=recipe,
                               partial=so_far)
        result = so_far(lines)
        missing = len(wanted) - len(result["runs"])
        why = outcome.why or (f"its lines hold no train_seconds of {missing} runs" if missing else "")
        return result | ({"failed": f"{len(result['runs'])} of {len(wanted)} runs; {why}"} if why else {})
    return part


def run_torch(check, name, *words, **how):
    """A Python with PyTorch, in the caller's own environment: it finds its CUDA libraries itself."""
    own = {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
    return check.run(name, [torch_python(), "-u", *words], environment=own, **how)


def exported(check):
    """The folder with cifar10/train.pt and test.pt, made from the archive by the oracle."""
    folder = check.machine.work / "torch"
    if not (folder / "cifar10/test.pt").exists():
        script = need_peers(check) / ORACLE
        if not script.exists():
            raise Missing(f"no {ORACLE} in {script.parent}: it turns the archive into train.pt and test.pt")
        outcome = run_torch(check, "export", script, "--data", check.machine.need_data(), "--export", folder / "cifar10")
        if outcome.why:
            raise Missing(f"export: {outcome.why}")
    return folder


def need_peers(check):
    if check.machine.peers is None:
        raise Missing("no scripts to compare with: give --peers FOLDER")
    return check.machine.peers


def records(check):
    """Each record script as it is, until it has done as many runs as are wanted."""
    folder = exported(check)
    scripts = sorted(path for path in need_peers(check).glob("*.py") if path.name != ORACLE)
    if not scripts:
        raise Missing(f"no record script (*.py beside {ORACLE}) in {need_peers(check)}")
    result, failed = {}, []
    for left, script in zip(range(len(scripts), 0, -1), scripts):
        runs_of = lambda output: {"runs": record_runs(output)[:check.record_runs]}
        with check.runner.at_most(check.runner.left() / left):
            outcome = run_torch(check, f"record-{script.stem}", script, folder=folder,
                                enough=lambda output: len(runs_of(output)["runs"]) == check.record_runs,
                                partial=lambda output: {"scripts": result | {script.stem: runs_of(output)}})
        result[script.stem] = runs_of(outcome.output) | {"seconds": outcome.seconds}
        if (runs := len(result[script.stem]["runs"])) < check.record_runs:
            failed.append(f"{script.stem}: {runs} of {check.record_runs} runs; {outcome.why or outcome.ending()}")
        check.record({"scripts": result})
    return {"scripts": result} | ({"failed": "; ".join(failed)} if failed else {})


def resnet(check):
    """ResNet-18's steps on batches that are there already: ours, and PyTorch's compiled, channels-last, in bf16."""
    ours, lines = train(check, "resnet18-steps", "--global-batch", str(RESNET_BATCH), "--epochs", "5", "--steps-per-epoch",
                        "60", "--headspace", str(REPLAYED), recipe="cifar10-resnet18")
    check.record({"headrace": steady(lines)})
    script = check.machine.root / "bench/peers/resnet18_torch.py"
    theirs = run_torch(check, "resnet18-torch", script, "--batch", str(RESNET_BATCH))
    found = json_lines(theirs.output)
    result = {"headrace": steady(lines), "torch": found[-1] if found else None}
    rates = [(one or {}).get("examples_per_second") for one in (result["headrace"], result["torch"])]
    result["ratio"] = rates[0] / rates[1] if all(rates) else None
    failed = ours.why or theirs.why or ("" if all(rates) else "a rate is missing in their lines")
    return result | ({"failed": failed} if failed else {})


def oracle(check):
    """The plain recipe in PyTorch, once: what accuracy these files allow."""
    script = need_peers(check) / ORACLE
    if not script.exists():
        raise Missing(f"no {ORACLE} in {script.parent}")
    outcome = run_torch(check, "oracle", script, "--data", check.machine.need_data())
    lines = json_lines(outcome.output)
    return {"line": lines[-1] if lines else None} | ({"failed": outcome.why} if outcome.why else {})


def baseline(check):
    """The same net fed by a DataLoader and wrapped in DistributedDataParallel, as it is commonly written."""
    folder = exported(check)
    script = check.machine.root / "bench/peers/cifar_ddp_torch.py"
    outcome = run_torch(check, "ddp", script, "--data", folder / "cifar10", "--compile",
                        partial=lambda output: {"lines": json_lines(output)})
    lines = json_lines(outcome.output)
    return {"lines": lines} | ({"failed": outcome.why} if outcome.why else {})
