"""The part that feeds photographs into the GPU: how many a second, and how long consumers wait for them."""
from gpu_checks.machine import Missing
from gpu_checks.readers import final_stage

BATCH = 256
SHARES = (0.8, 0.99)  # of the engine's rate that a consumer asks for


def about(check):
    """The words of `bench` and `explain`."""
    if check.machine.photographs is None:
        raise Missing("no photographs: give --photographs ARCHIVE, here or to tools/bundle")
    batch = 16 if check.machine.rehearsal else BATCH
    return batch, ["--pipeline", "jpeg-train", "--data", check.machine.photographs, "--devices", check.machine.device,
                   "--global-batch", str(batch)]


def photographs(check):
    """jpeg-train into the GPU's memory: as fast as it goes, then with consumers that take most of it."""
    batch, words = about(check)
    outcome, lines = check.headrace("bench-photographs", "bench", "input", *words, "--seconds", "5", "--warm-up", "10")
    rate = lines[-1].get("images_per_second") if lines else None
    if outcome.why or not rate:
        return {"failed": outcome.why or "bench input gave no rate"}
    result, failed = {"bench": lines[-1], "images_per_second": rate, "input_stall_fraction": {}, "explain": {}}, []
    for share in SHARES:
        check.record(result)
        outcome, lines = check.headrace(f"explain-photographs-{share}", "explain", *words, "--seconds", "4", "--warm-up", "10",
                                        "--consumer-us", str(round(1e6 * batch / (share * rate))))
        consumer = final_stage(lines)
        result["explain"][str(share)] = lines
        result["input_stall_fraction"][str(share)] = consumer and max(0.0, 1 - consumer["occupancy"])
        if outcome.why or consumer is None:
            failed.append(f"at {share}: {outcome.why or 'explain told nothing of its consumer'}")
    return result | ({"failed": "; ".join(failed)} if failed else {})
