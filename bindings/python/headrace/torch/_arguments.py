"""What the arguments of a DataLoader mean, and which of them are refused."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils import data as torch_data
from torch.utils.data.distributed import DistributedSampler

from headrace import Dataset
from headrace._errors import config_error
from headrace._native import launched_process

_SEED_BITS = 63


def require_types(**given: Any) -> None:
    """ConfigError for the first argument that is not what its name takes."""
    for name, value in given.items():
        what, is_right = _TYPES[name]
        if not is_right(value):
            raise config_error(f"{name} = {value!r}", f"{name} is {what}")


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


_SWITCH = ("True or False", lambda value: value in (True, False))
_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "batch_size": ("a whole number, or None", lambda value: value is None or _is_whole(value)),
    "shuffle": ("True, False or None", lambda value: value is None or value in (True, False)),
    "num_workers": ("a whole number", _is_whole),
    "collate_fn": ("a function of a list of samples", lambda value: value is None or callable(value)),
    "pin_memory": _SWITCH,
    "drop_last": _SWITCH,
    "timeout": ("a number of seconds", _is_number),
    "generator": ("a torch.Generator", lambda value: value is None or isinstance(value, torch.Generator)),
    "prefetch_factor": ("a whole number, or None", lambda value: value is None or _is_whole(value)),
    "persistent_workers": ("True, False or None", lambda value: value is None or value in (True, False)),
    "in_order": _SWITCH,
    "seed": ("a whole number, or None", lambda value: value is None or _is_whole(value)),
    "fields": ("a list of names", lambda value: value is None or not isinstance(value, str)),
    "copy": ("True, False or None", lambda value: value is None or value in (True, False)),
    "even_shares": ("'off', 'repeat' or 'drop'", lambda value: value in ("off", "repeat", "drop")),
}


def refuse(*, worker_init_fn: Any, multiprocessing_context: Any, pin_memory_device: str) -> None:
    """ConfigError for what the engine does not do, saying what does it."""
    if worker_init_fn is not None:
        raise config_error("worker_init_fn is not supported: there are threads in place of worker processes",
                           "random operations have their seed from generator or seed; initialise the rest once, before "
                           "the loop")
    if multiprocessing_context is not None:
        raise config_error("multiprocessing_context is not supported: there are threads in place of worker processes",
                           "leave it out")
    if pin_memory_device:
        raise config_error(f"pin_memory_device '{pin_memory_device}' is not supported",
                           "say device= for batches in the memory of that device")


def require_alone(batch_sampler: Any, *, batch_size: Any, shuffle: bool | None, sampler: Any, drop_last: bool) -> None:
    """ConfigError where a batch_sampler and what else makes batches are given."""
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise config_error("batch_sampler beside batch_size, shuffle, sampler or drop_last",
                           "the batch_sampler says all of it: leave the others out")


def wanted_collate(collate_fn: Callable[[Any], Any] | None, dataset: Any, *, batch_size: Any, fields: Any) -> Callable[[list[Any]], Any] | None:
    """What is called with the samples of a batch; None for what the engine does itself."""
    default = collate_fn is None or collate_fn is torch_data.default_collate
    if isinstance(dataset, Dataset):
        if default:
            return None
        if dataset._native.is_ragged():
            raise config_error("collate_fn after ragged_batch(), whose batches have no rows to take apart",
                               "collate in your loop: x[x_offsets[i]:x_offsets[i + 1]] is a row")
        return collate_fn
    if fields is not None and not (default and batch_size is not None):
        raise config_error("fields beside collate_fn over a torch Dataset", "collate_fn says what a batch is: leave it out")
    if batch_size is None:
        convert = torch_data.default_convert if collate_fn is None else collate_fn
        return lambda samples: convert(samples[0])
    if fields is None:
        return torch_data.default_collate if default else collate_fn
    return lambda samples: _chosen(torch_data.default_collate(samples), fields)


def _chosen(batch: Any, fields: Any) -> tuple[Any, ...]:
    """These fields of a batch of a torch Dataset, whose items are to have names for them."""
    there = list(batch) if isinstance(batch, Mapping) else list(getattr(batch, "_fields", ()))
    for name in fields:
        if name not in there:
            raise config_error(f"the items have no field '{name}'",
                               "there are " + ", ".join(map(repr, there)) if there else
                               "they are neither dicts nor namedtuples: leave fields out")
    return tuple(batch[name] if isinstance(batch, Mapping) else getattr(batch, name) for name in fields)


def require_counts(*, num_workers: int, timeout: float, prefetch_factor: int | None) -> None:
    if num_workers < 0:
        raise config_error(f"num_workers = {num_workers}", "say how many threads, or 0 for the engine's own choice")
    if timeout < 0:
        raise config_error(f"timeout = {timeout}", "say seconds, or 0 for the engine's own 120")
    if prefetch_factor is not None and prefetch_factor < 1:
        raise config_error(f"prefetch_factor = {prefetch_factor}", "say 1 or more batches a worker, or None")


def is_own_sampler(sampler: Any) -> bool:
    """Whether its indices are its own affair: a sampler that is none of those that the engine does itself."""
    if sampler is None or type(sampler) in (torch_data.SequentialSampler, DistributedSampler):
        return False
    plain = type(sampler) is torch_data.RandomSampler and not sampler.replacement
    return not (plain and sampler.num_samples == len(sampler.data_source))


def wants_shuffle(shuffle: bool | None, sampler: Any) -> bool:
    if sampler is None:
        return bool(shuffle)
    if shuffle:
        raise config_error("shuffle=True beside a sampler", "the sampler gives the order: leave one of them out")
    return type(sampler) is torch_data.RandomSampler or getattr(sampler, "shuffle", False) is True


def place_in_world(rank: int | None, world_size: int | None, sampler: Any) -> tuple[int, int]:
    """This process's number and how many there are. `sampler`: or batch_sampler."""
    if rank is None and world_size == 1:
        rank = 0
    if (rank is None) != (world_size is None):
        raise config_error("rank and world_size go together", "give both or neither")
    if rank is None or world_size is None:
        rank, world_size = _found_world(sampler)
    elif world_size > 1 and is_own_sampler(sampler):
        raise config_error(f"rank and world_size beside a {type(sampler).__name__}",
                           "which records are this process's is what the sampler says: leave rank and world_size out")
    if world_size < 1 or not 0 <= rank < world_size:
        raise config_error(f"rank {rank} of world_size {world_size}", "rank is one of 0 .. world_size - 1")
    return rank, world_size


def _found_world(sampler: Any) -> tuple[int, int]:
    if type(sampler) is DistributedSampler:
        return sampler.rank, sampler.num_replicas
    if is_own_sampler(sampler):
        return 0, 1  # which indices are this process's is what the sampler says
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    launched = launched_process()
    if launched is None:
        return 0, 1
    rank, workers, text = launched
    if rank is None or workers is None:
        raise config_error(f"this process is {text}", "give rank and world_size; world_size=1 gives it all the data")
    return rank, workers


def seed_of(seed: int | None, generator: torch.Generator | None, sampler: Any, world_size: int) -> int:
    if seed is not None and generator is not None:
        raise config_error("seed beside generator", "give one of them")
    if seed is not None:
        return int(seed)
    if type(sampler) is DistributedSampler:
        return sampler.seed
    if generator is None and not is_own_sampler(sampler):
        generator = getattr(sampler, "generator", None)
    if generator is None and world_size > 1:
        return 0
    return int(torch.randint(2**_SEED_BITS - 1, (), dtype=torch.int64, generator=generator))


def followed_epoch(sampler: Any) -> int | None:
    """The epoch that a DistributedSampler was set to: who gave one goes on saying set_epoch() to it."""
    return sampler.epoch if type(sampler) is DistributedSampler else None


def one_device(device: str | torch.device) -> torch.device:
    """With its number: of Headrace "cuda" means every GPU."""
    device = torch.device(device)
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device
