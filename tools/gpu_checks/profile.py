"""The part `profile`: every kernel of one training step of cifar10-fast, with its time, its bytes and its share of its floor."""
import glob

from gpu_checks.benchmarks import RECIPE, REPLAYED
from gpu_checks.kernels import copy_rate
from gpu_checks.machine import find_tool
from gpu_checks.profilers import READ, TIME, WRITTEN, ncu_kernels, nsys_kernels, step_table

# How convolutions choose their kernels (HEADRACE_CUDA_MATH).
MODES = tuple((mode, {"HEADRACE_CUDA_MATH": mode}) for mode in ("default", "tuned", "fastest"))
# An epoch is one step; the third is recorded, on batches that are there already.
STEP = ("--epochs", "4", "--steps-per-epoch", "1", "--headspace", str(REPLAYED), "--profile-epoch", "3", "--verbose", "0")


def train_words(check):
    return ("train", "--recipe", RECIPE, "--data", check.machine.need_data(), "--devices", check.machine.device, *STEP)


def by_ncu(check, tool, name, environment):
    """Kernels of the step, or why there are none. Clocks are left alone and caches as the kernel before left them."""
    table = check.runner.logs / f"{name}.csv"
    outcome, _ = check.headrace(name, *train_words(check), environment=environment, before=(
        tool, "--profile-from-start", "off", "--graph-profiling", "node", "--clock-control", "none", "--cache-control", "none",
        "--csv", "--page", "raw", "--print-units", "base", "--metrics", f"{TIME},{READ},{WRITTEN}", "--log-file", table))
    kernels = ncu_kernels(check.text(table.name))
    said = [line for line in check.text(table.name).splitlines() if line.startswith("==ERROR==")]
    return kernels, "" if kernels else "; ".join(said) or outcome.why or "it recorded no kernel"


def by_nsys(check, tool, name, environment):
    report = check.runner.logs / f"{name}.nsys-rep"
    outcome, _ = check.headrace(name, *train_words(check), environment=environment, before=(
        tool, "profile", "--trace", "cuda", "--sample", "none", "--cpuctxsw", "none", "--cuda-graph-trace", "node",
        "--capture-range", "cudaProfilerApi", "--capture-range-end", "stop", "--force-overwrite", "true", "--output", report))
    if outcome.why:
        return [], outcome.why
    listed = check.run(f"{name}-trace", [tool, "stats", "--report", "cuda_gpu_trace", "--format", "csv", report])
    kernels = nsys_kernels(listed.output)
    return kernels, "" if kernels else listed.why or "it recorded no kernel"


def profilers():
    """Those of this machine, the one that says most first."""
    found = [(find_tool("ncu", *sorted(glob.glob("/opt/nvidia/nsight-compute/*"), reverse=True)), by_ncu),
             (find_tool("nsys", *sorted(glob.glob("/opt/nvidia/nsight-systems/*/bin"), reverse=True)), by_nsys)]
    return [(tool, function) for tool, function in found if tool]


def profile(check):
    tools = profilers()
    if not tools:
        return {"skipped": "neither ncu nor nsys on this machine, on PATH or in CUDA's folders"}
    check.machine.need_data()
    rate = copy_rate(check)
    result, failed = {"copy_gb_per_s": rate and rate / 1e9, "steps": {}}, []
    for left, (mode, environment) in zip(range(len(MODES), 0, -1), MODES):
        whys = []
        with check.runner.at_most(check.runner.left() / left):
            for tool, function in tools:
                kernels, why = function(check, tool, f"profile-{mode}-{function.__name__}", environment)
                if kernels:
                    result["steps"][mode] = {"tool": str(tool)} | step_table(kernels, rate)
                    break
                whys.append(f"{tool}: {why}")
        if mode not in result["steps"]:
            failed.append(f"{mode}: {'; '.join(whys)}")
        check.record(result)
    return result | ({"failed": "; ".join(failed)} if failed else {})
