"""PyTorch's record scripts on this GPU and data: compiled beside the tests, run between two halves of our seeds."""
import os

from gpu_checks.machine import Missing, torch_python
from gpu_checks.readers import record_runs
from gpu_checks.runner import waited_for

ORACLE = "cifar10_recipe_torch.py"


def running_torch(check, name, *words, **how):
    """A task: a Python with PyTorch, in the caller's own environment: it finds its CUDA libraries itself. What PyTorch compiles
    is kept for this check."""
    compiled = {f"{compiler}_CACHE_DIR": str(check.machine.work / "compiled" / compiler) for compiler in ("TORCHINDUCTOR", "TRITON")}
    own = {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")} | compiled
    return check.running(name, [torch_python(), "-u", *words], environment=own, **how)


def exported(check):
    """A task that gives the folder with cifar10/train.pt and test.pt, made from the archive's images as `headrace convert` packs
    them: the plain recipe's script needs a zstd command else."""
    folder, packed = check.machine.work / "torch", check.machine.work / "cifar10.records"
    if (folder / "cifar10/test.pt").exists():
        return folder
    script = need_peers(check) / ORACLE
    if not script.exists():
        raise Missing(f"no {ORACLE} in {script.parent}")
    outcome, _ = check.headrace("pack-records", "convert", "--data", check.machine.need_data(), "--to", packed)
    if not outcome.why:
        outcome = yield from running_torch(check, "export", check.machine.root / "bench/peers/recipe_on_records.py", script, "--data",
                                           packed, "--export", folder / "cifar10")
    if outcome.why:
        raise Missing(f"export: {outcome.why}")
    return folder


def scripts_of(check):
    scripts = sorted(path for path in need_peers(check).glob("*.py") if path.name != ORACLE)
    if not scripts:
        raise Missing(f"no record script (*.py beside {ORACLE}) in {check.machine.peers}")
    return scripts


def compiling(check):
    """A task for beside other work: each script's first run, which compiles for minutes. What fails here fails in records()."""
    try:
        folder = yield from exported(check)
        for script in scripts_of(check):
            yield from running_torch(check, f"compile-{script.stem}", script, folder=folder,
                                     enough=lambda output: len(record_runs(output)) > 0)
    except Missing:
        pass


def need_peers(check):
    if check.machine.peers is None:
        raise Missing("no scripts to compare with: give --peers FOLDER")
    return check.machine.peers


def records(check):
    """Each record script as it is, until it has done as many runs as are wanted."""
    folder, scripts = waited_for(exported(check)), scripts_of(check)
    result, failed = {}, []
    for left, script in zip(range(len(scripts), 0, -1), scripts):
        runs_of = lambda output: {"runs": record_runs(output)[:check.record_runs]}
        with check.runner.at_most(check.runner.left() / left):
            outcome = waited_for(running_torch(check, f"record-{script.stem}", script, folder=folder,
                                               enough=lambda output: len(runs_of(output)["runs"]) == check.record_runs,
                                               partial=lambda output: {"scripts": result | {script.stem: runs_of(output)}}))
        result[script.stem] = runs_of(outcome.output) | {"seconds": outcome.seconds}
        if (runs := len(result[script.stem]["runs"])) < check.record_runs:
            failed.append(f"{script.stem}: {runs} of {check.record_runs} runs; {outcome.why or outcome.ending()}")
        check.record({"scripts": result})
    return {"scripts": result} | ({"failed": "; ".join(failed)} if failed else {})
