"""What explain() adds to the engine's own text: functions of whole batches, and a measured run."""

import time

_SHARE_OF_WARM_UP = 0.3


def explain_functions(functions):
    return "".join(f"map {function!r}: Python, in the thread that takes the batch\n" for function in functions)


def measure(dataset, devices, seconds, seed, threads):
    """Runs the plan and says what each stage cost."""
    from ._loader import Loader
    with Loader(dataset, devices=devices, epochs=None, seed=seed, threads=threads) as loader:
        _run(loader, _SHARE_OF_WARM_UP * seconds)
        before = loader._native.stats()
        loader.reset_function_times()
        _run(loader, (1 - _SHARE_OF_WARM_UP) * seconds)
        interval = loader._native.stats().since(before)
        lines = [*_stage_table(interval.to_dict()), *_function_lines(loader)]
        lines += [f"{what}: {value}, {reason}" for what, value, reason in loader.choices()]
        lines += [interval.to_dict()["summary"], *interval.judged()]
    return "\n" + "\n".join(lines) + "\n"


def _run(loader, seconds):
    """Takes batches for so long; at least one, and no more than there are."""
    end = time.monotonic() + seconds
    replicas = range(loader.replicas)
    while True:
        if any(loader.next(replica) is None for replica in replicas) or time.monotonic() >= end:
            return


def _stage_table(stats):
    yield f"{'stage':<48} {'threads':>7} {'items':>10} {'ns an item':>12} {'occupancy':>9} {'wait p50 us':>11}"
    for stage in stats["stages"]:
        yield (f"{stage['name'][:48]:<48} {stage['threads']:>7} {stage['items']:>10} {stage['ns_per_item']:>12.0f} "
               f"{100 * stage['occupancy']:>8.1f}% {stage['wait_p50_us']:>11.1f}")


def _function_lines(loader):
    for function, (calls, examples, ns) in loader.function_times():
        yield (f"{repr(function)[:48]:<48} {1:>7} {examples:>10} {ns / max(examples, 1):>12.0f}    in the consumer's "
               f"thread, {1e-3 * ns / max(calls, 1):.1f} us a batch")
