"""The part `shards`: with virtual shards the weights are the same bits on one replica, two that share a GPU, and all GPUs."""
from gpu_checks.training import train

RECIPE = "cifar10-cnn"
STEPS = 60
SHARDS = 8  # virtual ones, as of --deterministic: as many replicas at most


def placements(device, two_replicas, gpus):
    """What trains: the device, two replicas on it, and each power of two of GPUs that there is."""
    found = [device, two_replicas]
    numbers = [name.removeprefix("cuda:") for name in gpus]
    count = 2
    while count <= min(len(numbers), SHARDS):
        found.append("cuda:" + ",".join(numbers[:count]))
        count *= 2
    return found


def shards(check):
    """A short training of each, whose weights are compared with those of the first."""
    gpus = check.results["device"].get("devices", [])
    specs = placements(check.machine.device, check.machine.two_replicas(), gpus)
    result, failed = {"gpus": len(gpus), "weights_sha256": {}, "shard_price": {}}, []
    for left, spec in zip(range(len(specs), 0, -1), specs):
        with check.runner.at_most(check.runner.left() / left):
            outcome, lines = train(check, f"shards-{spec.replace(':', '_').replace(',', '_')}", RECIPE, devices=spec,
                                   virtual_shards=SHARDS, stop_after_steps=STEPS)
        last = next((line for line in lines if line.get("final")), {})
        weights = result["weights_sha256"][spec] = last.get("weights_sha256")
        result["shard_price"][spec] = last.get("shard_price")
        first = result["weights_sha256"][specs[0]]
        if weights is None:
            failed.append(f"{spec}: {outcome.why or 'it told no weights'}")
        elif first not in (None, weights):
            failed.append(f"{spec}: its weights differ from those of {specs[0]}")
        check.record(result)
    return result | ({"failed": "; ".join(failed)} if failed else {})
