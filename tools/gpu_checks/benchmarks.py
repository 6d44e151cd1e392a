"""Parts that measure: input into the GPU, steps with and without input."""
import statistics

from gpu_checks.readers import benchmark_rows, cut_json

RECIPE = "cifar10-fast"
REPLAYED = 8  # batches that --headspace replays
SATURATION = ("input_stall_fraction", "exposed_copy_fraction", "device_idle_fraction", "host_us_per_step")


def google_benchmark(check, program, *options, name=None, before=()):
    """Its context and rows, as many as it came to write. before: rows of the same part that are saved with them."""
    report = f"{name or program}.json"

    def read():
        return benchmark_rows(cut_json(check.text(report)))

    outcome = check.run(name or program, [check.machine.program(program), f"--device={check.machine.device}",
                                          f"--benchmark_out={check.runner.logs / report}", "--benchmark_out_format=json",
                                          "--benchmark_min_time=0.05", *options],
                        partial=lambda _: {"context": read()[0], "benchmarks": [*before, *read()[1]]})
    context, rows = read()
    failed = outcome.why or next((f"{row['name']}: {row['error']}" for row in rows if "error" in row), "")
    return {"context": context, "benchmarks": rows} | ({"failed": failed} if failed else {})


def input_rate(check):
    """The engine alone, its batches left in the GPU's memory: the ceiling of any training."""
    data = check.machine.need_data()
    outcome, lines = check.headrace("bench-input", "bench", "input", "--pipeline", "cifar-train", "--data", data,
                                    "--devices", check.machine.device, "--cache", "memory", "--seconds", "4", "--warm-up", "10")
    ours = {"headrace_bench_input": lines[-1] if lines else None}
    check.record(ours)
    result = google_benchmark(check, "input_bench", "--benchmark_filter=^cifar_train/") | ours
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
    result = {"step_only": steady(replayed), "end_to_end": steady([])}
    check.record(result)
    whole, fed = train(check, "end-to-end", "--epochs", "8")
    result["end_to_end"] = steady(fed)
    rates = [result[key]["examples_per_second"] for key in ("end_to_end", "step_only")]
    result["share_of_step_only"] = rates[0] / rates[1] if all(rates) else None
    failed = alone.why or whole.why or ("" if all(rates) else "an epoch is missing in its lines")
    return result | ({"failed": failed} if failed else {})
