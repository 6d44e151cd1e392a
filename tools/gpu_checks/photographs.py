"""The part that feeds photographs into the GPU: how many a second if the host or the GPU decodes them, that both give the same
stream, and how long consumers wait where both may."""
from gpu_checks.machine import Missing
from gpu_checks.readers import final_stage

BATCH = 256
SHARES = (0.8, 0.99)  # of the faster side's rate that a consumer asks for
DECODERS = ("host", "device")


def about(check):
    """The words of `bench` and `explain`."""
    if check.machine.photographs is None:
        raise Missing("no photographs: give --photographs ARCHIVE, here or to tools/bundle")
    batch = 16 if check.machine.rehearsal else BATCH
    return batch, ["--pipeline", "jpeg-train-float", "--data", check.machine.photographs, "--devices", check.machine.device,
                   "--global-batch", str(batch)]


def photographs(check):
    """Rates and digests of either side, then consumers that take most of what the faster one makes."""
    batch, words = about(check)
    result, failed = {"bench": {}, "images_per_second": {}, "digest": {}, "input_stall_fraction": {}, "explain": {}}, []
    for decoder in DECODERS:
        option = [] if check.machine.rehearsal else ["--decode", decoder]  # a CPU has no choice
        outcome, lines = check.headrace(f"digest-photographs-{decoder}", "digest", *words, "--epochs", "2", *option)
        result["digest"][decoder] = lines[-1] if lines else None
        failed += [f"digest, {decoder}: {outcome.why}"] if outcome.why else []
        outcome, lines = check.headrace(f"bench-photographs-{decoder}", "bench", "input", *words, "--seconds", "3", "--warm-up", "4",
                                        *option)
        result["bench"][decoder] = lines[-1] if lines else None
        result["images_per_second"][decoder] = rate = lines[-1].get("images_per_second") if lines else None
        failed += [f"{decoder}: {outcome.why or 'bench input gave no rate'}"] if outcome.why or not rate else []
        check.record(result)
    if len(set(map(str, result["digest"].values()))) > 1:
        failed.append("the GPU's decoding gives another stream than the host's")
    rate = max(filter(None, result["images_per_second"].values()), default=None)
    for share in SHARES if rate else ():
        outcome, lines = check.headrace(f"explain-photographs-{share}", "explain", *words, "--seconds", "3", "--warm-up", "6",
                                        "--consumer-us", str(round(1e6 * batch / (share * rate))))
        consumer = final_stage(lines)
        result["explain"][str(share)] = lines
        result["input_stall_fraction"][str(share)] = consumer and max(0.0, 1 - consumer["occupancy"])
        if outcome.why or consumer is None:
            failed.append(f"at {share}: {outcome.why or 'explain told nothing of its consumer'}")
        check.record(result)
    return result | ({"failed": "; ".join(failed)} if failed else {})
