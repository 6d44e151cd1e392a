"""Python functions in plans: how a plan's JSON names them, by module and name, and how they are found again."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from . import _native
from ._errors import config_error

_HELD = "held"
_KEY = "python"  # beside the members that C++ knows


class Part(NamedTuple):
    """A function in a plan. The options and the function are what MAKERS makes it of again."""

    kind: str  # of MAKERS
    name: str  # by which the plan's JSON refers to it
    function: Any
    options: dict[str, Any]
    native: Any  # Operations, RecordFilter, or a Dataset of the source alone; None: it works on whole batches
    held: _native.PlanFunction | None = None  # what C++ calls, for the garbage collector


def held_alone(held: _native.PlanFunction) -> Part:
    """A function that no JSON names."""
    return Part(_HELD, "", None, {}, None, held)


# By kind, what makes a part of the function and the options. Each module adds its own.
MAKERS: dict[str, Callable[..., Part]] = {}


def import_path(function: Any) -> str:
    """"package.module:name" of a function at the top of a module that can be imported."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    why = None
    if module is None or name is None:
        why = f"a {type(function).__name__} has no name"
    elif "<" in name:
        why = "it is a lambda, or defined within a function"
    elif module == "__main__":
        why = "it is defined in the program that was started"
    elif _find(sys.modules.get(module), name) is not function:
        why = f"{module}:{name} is something else"
    if why is None:
        return f"{module}:{name}"
    raise config_error(f"a plan's JSON cannot hold the function {name or function!r}: {why}",
                       "define it at the top of a module that can be imported where the plan is read")


def imported(path: str) -> Any:
    """The function of an import_path()."""
    module, _, name = path.partition(":")
    try:
        found = _find(importlib.import_module(module), name)
    except ImportError as error:
        raise config_error(f"the plan's function '{path}' cannot be imported: {error}",
                           "make its module importable here, by installing it or by PYTHONPATH") from error
    if found is None or not callable(found):
        raise config_error(f"the plan's function '{path}' is not there", "read the plan with the module that it was written with")
    return found


def _find(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def write(native: _native.Dataset, parts: Iterable[Part]) -> str:
    """The plan's JSON, with what Python has to know of these parts."""
    parts = [part for part in parts if part.kind != _HELD]
    entries = [json.loads(json.dumps({"kind": part.kind, "function": import_path(part.function), **part.options}))
               for part in parts]
    text = native.to_json(_natives(parts, entries))
    if not entries:
        return text
    once = [entry for at, entry in enumerate(entries) if parts[at].native is None or entry not in entries[:at]]
    return json.dumps({**json.loads(text), _KEY: once}, indent=1)


def read(text: str, allow_imports: bool) -> tuple[str, _native.PlanParts, list[Part]]:
    """The JSON that C++ reads, the parts that it names, and all parts."""
    try:
        plan = json.loads(text)
        entries = plan.pop(_KEY, []) if isinstance(plan, dict) else []
    except ValueError:  # C++ says where
        entries = []
    if not entries:
        return text, _native.PlanParts(), []
    if not allow_imports:
        named = ", ".join(str(entry.get("function")) for entry in entries)
        raise config_error(f"the plan calls Python functions: {named}",
                           "give allow_imports=True where whoever wrote it may choose what is imported and run here")
    parts = [_part(dict(entry)) for entry in entries]
    return json.dumps(plan), _natives(parts, entries), parts


def _part(entry: dict[str, Any]) -> Part:
    kind, path = entry.pop("kind", None), entry.pop("function", None)
    if kind not in MAKERS or not isinstance(path, str):
        raise config_error(f"a plan's '{_KEY}' has an entry of the kind {kind!r}",
                           f"one of {', '.join(sorted(MAKERS))}, with a function")
    try:
        return MAKERS[kind](imported(path), **entry)
    except TypeError as error:
        raise config_error(f"a plan's '{_KEY}' says of {path} what is not known: {error}") from error


def _natives(parts: list[Part], entries: list[dict[str, Any]]) -> _native.PlanParts:
    natives = _native.PlanParts()
    seen: dict[tuple[str, str], dict[str, Any]] = {}
    for part, entry in zip(parts, entries):
        if part.native is None:
            continue
        what = type(part.native).__name__
        if seen.setdefault((what, part.name), entry) != entry:
            raise config_error(f"two functions of the plan are called '{part.name}' and differ in what they are given",
                               "give one of them a name of its own")
        if isinstance(part.native, _native.Operations):
            natives.add_operations(part.native)
        elif isinstance(part.native, _native.RecordFilter):
            natives.add_filter(part.native)
        else:
            natives.add_source(part.name, part.native)
    return natives
