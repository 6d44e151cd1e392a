"""Arrays that the trainer lends to Python for one call, and what comes back."""

from __future__ import annotations

import re
import traceback

import numpy as np

from ._errors import config_error


def numpy_of(value):
    detach = getattr(value, "detach", None)  # of a torch.Tensor
    return np.asarray(value if detach is None else detach())


def store(value, target, what):
    value = numpy_of(value)
    if value.shape != target.shape:
        raise ValueError(f"{what} returned the shape {value.shape}; it is to be {target.shape}")
    np.copyto(target, value, casting="same_kind")


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def forget_locals(raised):
    """Drops the locals of the frames that raised: they may hold lent arrays, whose memory the trainer uses again."""
    chain, seen = [raised], set()
    while chain:
        error = chain.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        chain += [error.__cause__, error.__context__]


def refuse_kept(what):
    raise config_error(f"{what} kept an array that it was given", "keep a copy: the memory is used for something else")
