"""Parts that measure others on this GPU and data: PyTorch's record scripts, ResNet-18, the plain recipe, a DataLoader + DDP
loop; and libtorch fed by Headrace."""
import os
import shutil

from gpu_checks.machine import Missing, torch_python
from gpu_checks.readers import json_lines, record_runs
from gpu_checks.training import REPLAYED, steady, train

ORACLE = "cifar10_recipe_torch.py"
RESNET_BATCH = 512


def run_torch(check, name, *words, **how):
    """A Python with PyTorch, in the caller's own environment: it finds its CUDA libraries itself."""
    own = {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
    return check.run(name, [torch_python(), "-u", *words], environment=own, **how)


def rehearsed(check, *words):
    """What a script is told in a rehearsal."""
    return words if check.machine.rehearsal else ()


def on_records(check, name, *words, **how):
    """The plain recipe's script on the archive's images, as `headrace convert` packs them: it needs no zstd command."""
    script, packed = need_peers(check) / ORACLE, check.machine.work / "cifar10.records"
    if not script.exists():
        raise Missing(f"no {ORACLE} in {script.parent}")
    if not packed.exists():
        outcome, _ = check.headrace("pack-records", "convert", "--data", check.machine.need_data(), "--to", packed)
        if outcome.why:
            raise Missing(f"convert: {outcome.why}")
    return run_torch(check, name, check.machine.root / "bench/peers/recipe_on_records.py", script, "--data", packed, *words, **how)


def exported(check):
    """The folder with cifar10/train.pt and test.pt, made from the archive."""
    folder = check.machine.work / "torch"
    if not (folder / "cifar10/test.pt").exists():
        outcome = on_records(check, "export", "--export", folder / "cifar10")
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
    ours, lines = train(check, "resnet18-steps", "cifar10-resnet18", global_batch=RESNET_BATCH, epochs=5, steps_per_epoch=60,
                        headspace=REPLAYED)
    check.record({"headrace": steady(lines)})
    script = check.machine.root / "bench/peers/resnet18_torch.py"
    theirs = run_torch(check, "resnet18-torch", script, "--batch", str(RESNET_BATCH),
                       *rehearsed(check, "--batch", "1", "--steps", "1", "--repeats", "1", "--plain"))
    found = json_lines(theirs.output)
    result = {"headrace": steady(lines), "torch": found[-1] if found else None}
    rates = [(one or {}).get("examples_per_second") for one in (result["headrace"], result["torch"])]
    result["ratio"] = rates[0] / rates[1] if all(rates) else None
    failed = ours.why or theirs.why or ("" if all(rates) else "a rate is missing in their lines")
    return result | ({"failed": failed} if failed else {})


def oracle(check):
    """The plain recipe in PyTorch, once: what accuracy these files allow."""
    outcome = on_records(check, "oracle", *rehearsed(check, "--steps", "1"))
    lines = json_lines(outcome.output)
    return {"line": lines[-1] if lines else None} | ({"failed": outcome.why} if outcome.why else {})


def baseline(check):
    """The same net fed by a DataLoader and wrapped in DistributedDataParallel, as it is commonly written."""
    folder = exported(check)
    script = check.machine.root / "bench/peers/cifar_ddp_torch.py"
    words = rehearsed(check, "--epochs", "1", "--batch", "40", "--steps", "1", "--workers", "1") or ["--compile"]
    outcome = run_torch(check, "ddp", script, "--data", folder / "cifar10", *words,
                        partial=lambda output: {"lines": json_lines(output)})
    lines = json_lines(outcome.output)
    return {"lines": lines} | ({"failed": outcome.why} if outcome.why else {})


def libtorch(check):
    """Builds the libtorch example against the bundle's libraries and trains with it: its tensors are batches in the GPU's memory."""
    tools = [shutil.which("cmake"), shutil.which("c++")]
    if not all(tools):
        return {"skipped": "no cmake or no C++ compiler on this machine"}
    prefix, images = check.machine.root / "prefix", check.machine.need_data().parent / "mnist"
    if not prefix.exists() or not images.exists():
        return {"skipped": f"no {prefix if images.exists() else images}: pack it with tools/bundle"}
    torch = run_torch(check, "libtorch-where", "-c", "import torch; print(torch.utils.cmake_prefix_path)").output.split()
    build, source = check.machine.work / "libtorch", check.machine.root / "bindings/cpp/examples/libtorch"
    steps = {"configure": [tools[0], "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix};{torch[-1]}"],
             "build": [tools[0], "--build", build],
             "train": [build / "libtorch_train", images, "cpu" if check.machine.rehearsal else check.machine.device]}
    for name, command in steps.items():
        outcome = check.run(f"libtorch-{name}", command, environment={"HEADRACE_CUDA_MODULE": str(check.machine.module())})
        if outcome.why:
            return {"failed": f"{name}: {outcome.why}"}
    return {"accuracy": float(outcome.output.split("test accuracy ")[-1])}
