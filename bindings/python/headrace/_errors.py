"""The family of exceptions, with the texts of C++. The extension raises them through make()."""


class HeadraceError(Exception):
    """Says what was wrong, where, and what to do next. str() is "message (hint)", as in C++."""

    def __init__(self, text="", *, code="internal", message=None, hint=""):
        super().__init__(text)
        self.code = code
        self.message = text if message is None else message
        self.hint = hint

    def __reduce__(self):
        return _again, (type(self), self.args, self.__dict__)


class ConfigError(HeadraceError, ValueError):
    """What was asked for cannot be: a wrong option, an unknown name, shapes that do not match."""

    def __init__(self, text="", *, code="invalid_argument", message=None, hint=""):
        super().__init__(text, code=code, message=message, hint=hint)


class DataError(HeadraceError, OSError):
    """The input is missing, unreadable or malformed."""

    def __init__(self, text="", *, code="data_corrupt", message=None, hint="", source="", record=None, offset=None):
        super().__init__(text, code=code, message=message, hint=hint)
        self.source = source
        self.record = record
        self.offset = offset


class DeviceError(HeadraceError, RuntimeError):
    """A device call failed."""

    def __init__(self, text="", *, code="device", message=None, hint="", device=""):
        super().__init__(text, code=code, message=message, hint=hint)
        self.device = device


_KINDS = {kind.__name__: kind for kind in (HeadraceError, ConfigError, DataError, DeviceError)}
for _kind in _KINDS.values():
    _kind.__module__ = "headrace"
del _kind


def make(kind, code, text, message, hint, where):
    return _KINDS[kind](text, code=code, message=message, hint=hint, **where)


def config_error(message, hint=""):
    """As ConfigError(message, hint) in C++."""
    return ConfigError(f"{message} ({hint})" if hint else message, message=message, hint=hint)


def _again(kind, args, state):
    error = kind(*args)
    error.__dict__.update(state)
    return error
