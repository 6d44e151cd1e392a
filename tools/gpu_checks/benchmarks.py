"""Google Benchmark's programs, and the part that measures input into the GPU."""
from gpu_checks.readers import benchmark_rows, cut_json


def google_benchmark(check, program, *options, name=None, before=()):
    """Its context and rows, as many as it came to write. before: rows of the same part that are saved with them."""
    report = f"{name or program}.json"

    def read():
        return benchmark_rows(cut_json(check.text(report)))

    outcome = check.run(name or program, [check.machine.program(program), f"--device={check.machine.device}",
                                          f"--benchmark_out={check.runner.logs / report}", "--benchmark_out_format=json",
                                          f"--benchmark_min_time={0.0001 if check.machine.rehearsal else 0.05}", *options],
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
