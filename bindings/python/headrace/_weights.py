"""The names of the tensors in a file of weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ._errors import config_error

Rename: TypeAlias = Mapping[str, str | None] | Callable[[str], str | None] | None


def renaming(rename: Rename) -> Callable[[str], str] | None:
    """The function of a tensor's name that gives the one to look for, empty to leave it out."""
    if rename is None:
        return None

    def renamed(name: str) -> str:
        found = rename.get(name, name) if isinstance(rename, Mapping) else rename(name)
        if found is not None and not isinstance(found, str):
            raise config_error(f"rename gave {found!r} for '{name}'", "give a name, or None to leave the tensor out")
        return found or ""

    return renamed
