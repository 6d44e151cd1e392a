"""Wrong calls, in the package's own words: what was given, what is expected, what to write.

speak() wraps what a module offers. A call that succeeds goes straight through. Where one fails by a TypeError or the like, its
arguments are compared with the annotations of the function, or with the signature that the extension has for it: the first that
does not fit is named. What a user's own function raises passes unchanged.
"""

from __future__ import annotations

import collections.abc
import difflib
import functools
import inspect
import os
import re
import sys
import types
import typing
from typing import Any

import numpy as np

from ._errors import ConfigError, HeadraceError

_PACKAGES = (os.path.dirname(__file__) + os.sep, os.path.dirname(np.__file__) + os.sep)
_LIBRARY = (*_PACKAGES, os.path.dirname(os.__file__) + os.sep, "<")  # Python's own, too
_NATIVE_TEXT = "incompatible function arguments"
_FAILURES = (TypeError, ValueError, AttributeError, OverflowError, RuntimeError)
_MODULES = ("jax", "keras", "torch", "train")
_MADE_BY, _WRAPPED = ("__init__", "__new__"), ("__init__", "__new__", "__or__")
_NATIVE_FUNCTIONS = ("nb_func", "nb_method")
_MAX_SHOWN = 60  # letters of a value in a message
_MAX_LOOKED_AT = 100  # items of a sequence
_WORDS: dict[Any, str] = {
    int: "a whole number", float: "a number", str: "a string", bool: "True or False", bytes: "bytes", type(None): "None",
    os.PathLike: "a path", np.ndarray: "an array", collections.abc.Callable: "a function",
    collections.abc.Mapping: "a dict"}


class ArgumentError(ConfigError, TypeError):
    """A ConfigError that is what Python raises for wrong arguments, too."""


ArgumentError.__name__, ArgumentError.__qualname__, ArgumentError.__module__ = "ConfigError", "ConfigError", "headrace"


def speak(namespace: dict[str, Any], names: typing.Iterable[str]) -> None:
    """Makes these functions and the methods of these classes say what is wrong with a call, and the module and the classes
    answer to names of other libraries."""
    makers = [namespace[name] for name in names]  # of what no constructor makes
    for name in names:
        value = namespace[name]
        if isinstance(value, type):
            _speak_for_class(value, makers)
        elif _is_function(value):
            namespace[name] = _wrapped(value, f"{name}()")
            home = sys.modules.get(value.__module__)
            if getattr(home, value.__name__, None) is value and isinstance(value, types.FunctionType):
                setattr(home, value.__name__, namespace[name])  # the same object wherever it is imported from
    namespace["__getattr__"] = lambda name: _no_attribute(namespace["__name__"], name, namespace)


def _is_function(value):
    return isinstance(value, types.FunctionType) or type(value).__name__ in _NATIVE_FUNCTIONS


def _speak_for_class(kind, makers):
    if issubclass(kind, BaseException) or "__getattr__" in vars(kind):
        return
    native = type(kind).__name__.startswith("nb_type")
    if native:
        from ._native import refuse_construction
        constructor = vars(kind).get("__init__") if _is_function(vars(kind).get("__init__")) else None
        signature = constructor and _signature(constructor)
        if constructor is not None:
            del kind.__init__
        refuse_construction(kind, constructor, functools.partial(_refuse_construction, kind, signature, makers))
    for name, member in list(vars(kind).items()):
        function = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
        if not _is_function(function) or (name.startswith("_") and (name not in _WRAPPED or native and name in _MADE_BY)):
            continue
        if name == "__new__":  # of a NamedTuple, which says no module
            function.__module__ = kind.__module__
        wrapped = _wrapped(function, f"{kind.__name__ if name in _MADE_BY else f'{kind.__name__}.{name}'}()")
        is_static = isinstance(member, staticmethod) or type(member).__name__ == "nb_func"
        setattr(kind, name, staticmethod(wrapped) if is_static else classmethod(wrapped) if function is not member else wrapped)
    setattr(kind, "__getattr__", lambda self, name: _no_attribute(kind.__name__, name, dir(kind)))


def _refuse_construction(kind, signature, makers, args, kwargs):
    """Raises why the extension made no object of a class: its constructor's arguments, or who makes one if it has none."""
    called = f"{kind.__name__}()"
    if signature is not None:
        raise _in_own_words(signature, called, (None, *args), kwargs, TypeError(_NATIVE_TEXT))
    found = [f"{each.__name__}()" for each in makers if _is_function(each) and _returns(each, kind)]
    found += [f"{owner.__name__}.{name}()" for owner in makers if isinstance(owner, type)
              for name, each in vars(owner).items() if _is_function(each) and name[0] != "_" and _returns(each, kind)]
    raise _error(f"{called} makes no {kind.__name__}",
                 f"use what {', '.join(found[:4])} {'return' if len(found) > 1 else 'returns'}" if found else "use what you are handed")


def _returns(function, kind):
    signature = _signature(inspect.unwrap(function))
    return signature is not None and _evaluated(signature.return_annotation, _Names(inspect.unwrap(function))) is kind


def _no_attribute(owner, name, known):
    if name.startswith("_"):
        raise AttributeError(f"{owner} has no attribute '{name}'")
    if owner == "headrace" and name in _MODULES:  # while it is imported, too
        raise AttributeError(f"headrace.{name} is not imported: import headrace.{name}")
    from ._other_names import answer
    said = answer(name)
    hint = f". {name}: {said}" if said else _close(name, [each for each in known if not each.startswith("_")])
    raise AttributeError(f"{owner} has no '{name}'{hint}")


def _wrapped(function, called):
    if hasattr(function, "__wrapped__"):
        return function
    ahead = inspect.isgeneratorfunction(function) or function.__name__ == "__new__"  # what would fail later

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            if ahead and (wrong := _in_own_words(function, called, args, kwargs)) is not None:
                raise wrong
            result = function(*args, **kwargs)
            if result is not NotImplemented:
                return result
            wrong = _error(f"{called[:-2]}: {_short(args[1])} is {type_words(args[1])}", _remedy(args[1], type(args[0])))
        except HeadraceError as error:
            wrong = _better(function, called, args, kwargs, error)
            if wrong is None:
                raise
        except _FAILURES as error:
            wrong = _in_own_words(function, called, args, kwargs, error) if _is_ours(error) else None
            if wrong is None:
                raise
        try:
            raise wrong
        finally:
            del wrong  # its traceback holds this frame

    return call


def _is_ours(error):
    """Whether the call itself failed, or the package or the extension within it: not what a user's function did."""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(_LIBRARY) or ("-packages" in file and not file.startswith(_PACKAGES)):
            return False
        trace = trace.tb_next
    return True


# ------------------------------------------------------------------------------------------------------------ what is wrong


def _in_own_words(function, called, args, kwargs, error=None):
    signature = _signature(function)
    if signature is not None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as misfit:
            return _misfit(function, signature, called, args, kwargs, str(misfit))
        if (wrong := _wrong_argument(function, signature, bound, called)) is not None:
            return wrong
    if _NATIVE_TEXT not in str(error) and "bad_cast" not in str(error):
        return None
    if signature is not None and (wrong := _out_of_range(bound, called)) is not None:
        return wrong
    given = ", ".join([_short(value) for value in args] + [f"{name}={_short(value)}" for name, value in kwargs.items()])
    return _error(f"{called} cannot be called with ({given})", f"help({called[:-2]}) says what it takes")


def _better(function, called, args, kwargs, error):
    """An error of the package said better: an option of another library, another library's object or a lone string."""
    from ._other_names import answer
    if not isinstance(error, ConfigError) or isinstance(error, ArgumentError):
        return None
    signature = _signature(function)
    for name in kwargs:
        if f"has no option '{name}'" in error.message:
            known = [*(_keywords(signature) if signature else ()), *re.findall(r"\w+", error.hint.removeprefix("there are "))]
            return _no_option(called, name, known, error.hint)
    for value in _flat((*args, *kwargs.values())):
        if isinstance(value, str) and f"'{value}' is not known" in error.message and (said := answer(value)):
            return _error(error.message, f"write {said}")
    try:
        bound = signature.bind(*args, **kwargs)
    except (AttributeError, TypeError):  # no signature, or another one
        return None
    if "is of the wrong type" in error.message:
        return _wrong_argument(function, signature, bound, called)
    names = _Names(function)
    for name, value in bound.arguments.items():
        words = _words(_evaluated(signature.parameters[name].annotation, names))
        lone = isinstance(value, str) and "a list" in words and f"{name} = " not in error.message
        if lone or answer(value) and ("headrace" in words or "a function" in words):
            return _wrong_argument(function, signature, bound, called, name)
    return None


def _flat(values):
    return [each for value in values for each in (value if isinstance(value, (list, tuple)) else (value,))]


def _wrong_argument(function, signature, bound, called, only=None):
    names = _Names(function)
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        if only not in (None, name) or parameter.annotation is parameter.empty or parameter.kind is parameter.VAR_KEYWORD:
            continue
        kind = _evaluated(parameter.annotation, names)
        for each in value if parameter.kind is inspect.Parameter.VAR_POSITIONAL else (value,):
            if not _fits(each, kind):
                return _error(f"{called}: {name} = {_short(each)} is {type_words(each)}", _remedy(each, kind))
    return None


def _remedy(value, kind):
    from ._other_names import answer
    words = _words(kind)
    if "headrace.Dataset" in words:
        return "make one with headrace.open(), from_arrays(), from_function() or from_torch_dataset()"
    listed = "a list" in words and not isinstance(value, (list, tuple)) and (not isinstance(value, str) or "a string" in words)
    said = next(filter(None, map(answer, _flat([value]))), "") if "headrace" in words or "a function" in words else ""
    if said:
        return f"write [{said}]" if listed else f"write {said}"
    return f"give a list: [{_short(value)}]" if listed and _fits([value], kind) else f"give {words}" if words else ""


def _out_of_range(bound, called):
    for name, value in bound.arguments.items():
        if isinstance(value, int) and not isinstance(value, bool) and (value < 0 or value >= 1 << 63):
            what = "is negative" if value < 0 else "is too large"
            return _error(f"{called}: {name} = {_short(value)} {what}", "give a whole number from 0 on" if value < 0 else "")
    return None


def _misfit(function, signature, called, args, kwargs, misfit):
    """Arguments that the function does not have, or lacks; `misfit` is how Python says it."""
    known = _keywords(signature)
    open_ended = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in signature.parameters.values())
    if unknown := [name for name in kwargs if name not in known and not open_ended]:
        return _no_option(called, unknown[0], known, f"there are {', '.join(known)}" if known else "leave it out")
    if misfit != "too many positional arguments":
        return _error(f"{called}: {misfit}", f"help({called[:-2]}) says what it takes")
    places = [name for name, each in signature.parameters.items() if each.kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if (wrong := _wrong_argument(function, signature, signature.bind_partial(*args[:len(places)]), called)) is not None:
        return wrong
    own = [name for name in places if name in known]
    rest = ", ".join(f"{name}=" for name in known if name not in own)
    return _error(f"{called} takes {', '.join(own) or 'nothing'} by position; {len(args) - len(places) + len(own)} given",
                  f"name the others: {rest}" if rest else "")


def _no_option(called, name, known, otherwise):
    from ._other_names import keyword
    said, close = keyword(name, known), _close(name, known)
    return _error(f"{called} has no option '{name}'{'' if said else close}", said or otherwise)


def _close(name, known):
    found = difflib.get_close_matches(name, known, 1)
    return f": did you mean '{found[0]}'?" if found else ""


def _keywords(signature):
    return [each.name for each in signature.parameters.values() if each.name not in ("self", "_cls") and
            each.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)]


def _error(message, hint=""):
    return ArgumentError(f"{message} ({hint})" if hint else message, message=message, hint=hint)


# ------------------------------------------------------------------------------------------------------------- signatures


def _signature(function):
    """Of the extension's functions their text: "adam(learning_rate: float = 0.001, *, beta1: float = 0.9) -> Optimizer"."""
    if isinstance(function, inspect.Signature):
        return function
    if isinstance(function, types.FunctionType):
        return inspect.signature(function)
    texts = [line for line in (function.__doc__ or "").splitlines() if line.startswith(f"{function.__name__}(")]
    if len(texts) != 1:  # overloads
        return None
    made = {}
    try:
        exec(f"from __future__ import annotations\ndef {re.sub(r'= <[^>]*>', '= ...', texts[0])}: pass", made)
    except Exception:  # noqa: BLE001  a default that is no Python
        return None
    return inspect.signature(made[function.__name__])


class _Names(dict):  # type: ignore[type-arg]
    """What an annotation may name; an unknown name is Any."""

    def __init__(self, function):
        import headrace
        super().__init__(vars(typing) | {"collections": collections, "os": os, "numpy": np, "typing": typing, "headrace": headrace})
        home = sys.modules.get(getattr(function, "__module__", "headrace._native.train"))
        self.update({} if home is None else vars(home))

    def __missing__(self, name):
        return getattr(__builtins__, name, Any) if not isinstance(__builtins__, dict) else __builtins__.get(name, Any)


def _evaluated(annotation, names):
    text = getattr(annotation, "__forward_arg__", annotation)
    try:
        return eval(text, {}, names) if isinstance(text, str) else text
    except Exception:  # noqa: BLE001  what cannot be evaluated is not judged
        return Any


# ------------------------------------------------------------------------------------------------------------------ types

_LISTS = (collections.abc.Sequence, collections.abc.Iterable, list, tuple)
_FITTING: dict[Any, Any] = {
    type(None): lambda value: value is None,
    int: lambda value: hasattr(value, "__index__"),
    float: lambda value: hasattr(value, "__float__") or hasattr(value, "__index__"),
    bool: lambda value: isinstance(value, (bool, np.bool_, int)),
    collections.abc.Mapping: lambda value: hasattr(value, "keys") and hasattr(value, "__getitem__"),
    collections.abc.Callable: lambda value: callable(value) and not _is_maker(value),
    np.ndarray: lambda value: hasattr(value, "__array__") or hasattr(value, "__dlpack__") or isinstance(value, (int, float, list, tuple)),
}


def _fits(value, kind):
    """Whether a value is of an annotation; True where the annotation does not tell."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    what = type(None) if kind is None else origin or kind
    if kind is Any or isinstance(kind, (typing.TypeVar, str, typing.ForwardRef)):
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in arguments)
    if origin is typing.Literal:
        return any(type(value) is type(each) and value == each for each in arguments)
    if what in _FITTING:
        return _FITTING[what](value)
    if what in _LISTS:
        return (hasattr(value, "__iter__") or hasattr(value, "__getitem__")) and \
            not isinstance(value, (str, bytes, collections.abc.Mapping)) and _items_fit(value, what, arguments)
    try:
        return isinstance(value, what)
    except TypeError:
        return True


def _is_maker(value):
    from ._other_names import answer
    return (inspect.isroutine(value) or isinstance(value, type)) and bool(answer(value))


def require_function(value, what):
    """ConfigError for what can be called and is no function of the user's: hr.flip without (), a transform of torchvision."""
    from ._other_names import answer, library_of
    said, library = answer(value), library_of(value)
    if callable(value) and not said and not library:
        return
    hint = f"write {said}" if said else f"call it in a function: lambda sample: {{...}}" if library else "give a function"
    raise _error(f"{what} {_short(value)} is {type_words(value)}{f' of {library}' if library else ''}", hint)


def _items_fit(value, what, arguments):
    if not arguments or not isinstance(value, (list, tuple)):
        return True
    if what is tuple and arguments[-1] is not Ellipsis:
        return len(value) == len(arguments) and all(map(_fits, value, arguments))
    return all(_fits(each, arguments[0]) for each in value[:_MAX_LOOKED_AT])


def _words(kind):
    """"a whole number or None"; "" of what says nothing."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    what = type(None) if kind is None else origin or kind
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(filter(None, map(_words, arguments))))
    if origin is typing.Literal:
        return " or ".join(f'"{each}"' if isinstance(each, str) else str(each) for each in arguments)
    if what is tuple and arguments[-1:] not in ((), (Ellipsis,)):
        return f"({', '.join(map(_words, arguments))})"
    if what in _LISTS:
        return f"a list, each {words}" if arguments and (words := _words(arguments[0])) else "a list"
    if what in _WORDS:
        return _WORDS[what]
    name, module = getattr(what, "__name__", ""), getattr(what, "__module__", "").replace("._native", "").split("._")[0]
    return f"a {module}.{name}" if name and module.startswith(("headrace", "jax", "torch")) else ""


def type_words(value):
    if inspect.isroutine(value) or isinstance(value, type):
        kind = "class" if isinstance(value, type) else "function"
        return f"a {kind}, not what it returns" if (getattr(value, "__module__", "") or "").startswith("headrace") else f"a {kind}"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _short(value):
    if inspect.isroutine(value) or isinstance(value, type):
        return getattr(value, "__name__", "it")
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{type(value).__name__}{tuple(value.shape)}"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001  a repr of the user's
        text = type(value).__name__
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN - 3] + "..."
