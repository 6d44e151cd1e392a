"""The part `kernels`: kernels_bench in a process a group, bf16 first, against floors that are measured once."""
from gpu_checks.benchmarks import google_benchmark

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
