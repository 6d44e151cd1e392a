"""Google Benchmark's programs: the parts `kernels`, a process a group, bf16 first, against floors that are measured once, and
`input`, the engine into the GPU."""
from gpu_checks.readers import benchmark_rows, cut_json

EPILOGUES = "^(conv_epilogue|dense_epilogue|whitening)"
# Patterns of names, what counts most first; no name fits two of them.
GROUPS = (("conv-bf16", "^conv3x3/bf16/"),
          ("norm-bf16", "^(max_pool_)?batch_norm[a-z_]*_bf16/"),
          ("muon", "^muon/"),
          ("epilogue-bf16", f"{EPILOGUES}/bf16/"),
          ("elementwise-bf16", "^(relu|gelu|silu|max_pool|shift_images)_bf16/"),
          ("dense-bf16", "^dense/bf16/"),
          ("updates", "^(adam|sgd_momentum)/"),
          ("conv-f32", "^conv3x3/f32/"),
          ("dense-f32", "^dense/f32/"),
          ("epilogue-f32", f"{EPILOGUES}/f32/"),
          ("norm-f32", "^(max_pool_)?batch_norm(_(relu|gelu|silu)(_apart|_fused)?)?/"))
OTHERS = ("others", "-" + "|".join(f"({pattern})" for _, pattern in GROUPS))  # what fits none
FLOORS = ("floor_gb_per_s", "floor_f32_gflop_per_s", "floor_bf16_gflop_per_s")


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


def floors_flag(context):
    """For the groups after the one that measured them; nothing where it did not come so far."""
    values = [context.get(name) for name in FLOORS]
    return [f"--floors={','.join(map(str, values))}"] if all(values) else []


def kernels(check):
    """A group that crashes or hangs costs its share of the time and no other group's rows."""
    groups = (*GROUPS, OTHERS)
    result, failed = {"context": {}, "benchmarks": []}, []
    for left, (name, pattern) in zip(range(len(groups), 0, -1), groups):
        with check.runner.at_most(check.runner.left() * 2 / (left + 1)):
            one = google_benchmark(check, "kernels_bench", f"--benchmark_filter={pattern}", *floors_flag(result["context"]),
                                   name=f"kernels-{name}", before=result["benchmarks"])
        result = {"context": result["context"] or one["context"], "benchmarks": result["benchmarks"] + one["benchmarks"]}
        if one.get("failed"):
            failed.append(f"{name}: {one['failed']}")
        check.record(result)
    return result | ({"failed": "; ".join(failed)} if failed else {})


def copy_rate(check):
    """Bytes a second of a large copy on this GPU, which every kernel's bytes are held against: of the part `kernels`, or
    measured now; None where that fails."""
    context = (check.results.get("kernels") or {}).get("context") or {}
    if not context.get(FLOORS[0]):
        context = google_benchmark(check, "kernels_bench", "--benchmark_filter=^scale_u8", name="floors")["context"]
    return 1e9 * float(context[FLOORS[0]]) if context.get(FLOORS[0]) else None
