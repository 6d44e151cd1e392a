"""Parts that measure: kernels against the machine's own floors, input into the GPU, steps with and without input."""
import statistics

from gpu_checks.readers import benchmark_rows

RECIPE = "cifar10-fast"
REPLAYED = 8  # batches that --headspace replays
SATURATION = ("input_stall_fraction", "exposed_copy_fraction", "device_idle_fraction", "host_us_per_step")


def google_benchmark(check, program, *options):
    report = f"{program}.json"
    outcome = check.run(program, [check.machine.program(program), f"--device={check.machine.device}",
                                  f"--benchmark_out={check.runner.logs / report}", "--benchmark_out_format=json",
                                  "--benchmark_min_time=0.05", *options])
    context, rows = benchmark_rows(check.report(report))
    failed = outcome.why or next((f"{row['name']}: {row['error']}" for row in rows if "error" in row), "")
    return {"context": context, "benchmarks": rows} | ({"failed": failed} if failed else {})


def kernels(check):
    return google_benchmark(check, "kernels_bench")


def input_rate(check):
    """The engine alone, its batches left in the GPU's memory: the ceiling of any training."""
    data = check.machine.need_data()
    outcome, lines = check.headrace("bench-input", "bench", "input", "--pipeline", "cifar-train", "--data", data,
                                    "--devices", check.machine.device, "--cache", "memory", "--seconds", "4")
    result = google_benchmark(check, "input_bench", "--benchmark_filter=^cifar_train/")
    result |= {"headrace_bench_input": lines[-1] if lines else None}
    return result | ({"failed": outcome.why} if outcome.why else {})


def train(check, name, *options, recipe=RECIPE, **how):
    return check.headrace(name, "train", "--recipe", recipe, "--data", check.machine.need_data(), "--devices",
                          check.machine.device, "--verbose", "0", *options, **how)


def steady(lines):
    """Medians over the epochs after the first, which warms up."""
    epochs = [line for line in lines if "epoch" in line][1:]
    figures = {}
    for key in ("examples_per_second", *SATURATION):
        values = [line[key] for line in epochs if line.get(key) is not None]
        figures[key] = statistics.median(values) if values else None
    return figures | {"epochs": len(epochs)}


def steps(check):
    """Training where input costs nothing (the same batches again and again), and as it is."""
    alone, replayed = train(check, "step-only", "--epochs", "8", "--headspace", str(REPLAYED))
    whole, fed = train(check, "end-to-end", "--epochs", "8")
    result = {"step_only": steady(replayed), "end_to_end": steady(fed)}
    rates = [result[key]["examples_per_second"] for key in ("end_to_end", "step_only")]
    result["share_of_step_only"] = rates[0] / rates[1] if all(rates) else None
    failed = alone.why or whole.why or ("" if all(rates) else "an epoch is missing in its lines")
    return result | ({"failed": failed} if failed else {})
