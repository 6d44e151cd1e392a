"""The family of exceptions, with the texts of C++. The extension raises them through make()."""

from __future__ import annotations

from typing import Any


class HeadraceError(Exception):
    """Says what was wrong, where, and what to do next. str() is "message (hint)", as in C++."""

    code: str  # "invalid_argument", "not_found", "timeout", "cancelled", ...
    message: str
    hint: str

    def __init__(self, text: str = "", *, code: str = "internal", message: str | None = None, hint: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.message = text if message is None else message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args, self.__dict__)


class ConfigError(HeadraceError, ValueError):
    """What was asked for cannot be: a wrong option, an unknown name, shapes that do not match."""

    def __init__(self, text: str = "", *, code: str = "invalid_argument", message: str | None = None,
                 hint: str = "") -> None:
        super().__init__(text, code=code, message=message, hint=hint)


class DataError(HeadraceError, OSError):
    """The input is missing, unreadable or malformed."""

    def __init__(self, text: str = "", *, code: str = "data_corrupt", message: str | None = None, hint: str = "",
                 source: str = "", record: int | None = None, offset: int | None = None) -> None:
        super().__init__(text, code=code, message=message, hint=hint)
        self.source = source
        self.record = record
        self.offset = offset


class DeviceError(HeadraceError, RuntimeError):
    """A device call failed."""

    def __init__(self, text: str = "", *, code: str = "device", message: str | None = None, hint: str = "",
                 device: str = "") -> None:
        super().__init__(text, code=code, message=message, hint=hint)
        self.device = device


_KINDS = {kind.__name__: kind for kind in (HeadraceError, ConfigError, DataError, DeviceError)}
for _kind in _KINDS.values():
    _kind.__module__ = "headrace"
del _kind


def make(kind, code, text, message, hint, where):
    return _KINDS[kind](text, code=code, message=message, hint=hint, **where)


def config_error(message: str, hint: str = "") -> ConfigError:
    """As ConfigError(message, hint) in C++."""
    return ConfigError(f"{message} ({hint})" if hint else message, message=message, hint=hint)


def _again(kind, args, state):
    error = kind(*args)
    error.__dict__.update(state)
    return error
