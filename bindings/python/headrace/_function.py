"""Python callables as operations and filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _native
from ._calls import require_function
from ._errors import config_error
from ._fields import Field, FieldLike, declared, dtype_name, from_native, numpy_dtype
from ._plan_parts import MAKERS, Part
from ._records import as_array, exact_array, typed_array


# For outputs whose length differs from record to record.
_ADVICE = ('pad it to one length in the function; or make it in from_function() or from_generator(), with '
           'fields={{"{name}": ("{dtype}", (None,))}}, before padded_batch(); or make and pad it in '
           'hr.function(..., batched=True), after batch()')


def name_of(function: Any) -> str:
    """What a callable is called, where nobody says: its module and qualified name."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    module = getattr(function, "__module__", None)
    return name if module in (None, "__main__") else f"{module}.{name}"


class Function:
    """A Python callable as an operation, for Dataset.map().

    Per sample, the default: `function` is given the sample as a dict of NumPy arrays, its own copies, and returns a
    dict of the fields that it replaces or adds (of one input also the array alone). It runs on the engine's threads,
    one at a time under the GIL (side by side on a free-threaded Python), and must depend on its input alone; what it
    raises is its record's fault, for `on_error` to deal with. With random=True it is called as function(sample, rng),
    with a numpy.random.Generator that is the record's in this pass, whoever runs it and when.

    With batched=True, after batch(): it is given the fields of a whole batch and may change their shapes. It runs in
    the thread that takes the batch.

    `name` and `version` are part of every fingerprint: change `version` with the function. `outputs` declares what a
    function per sample returns; without it the function is tried on the first record. `inputs` are the fields that it
    is given; None: all.
    """

    def __init__(self, function: Callable[..., Mapping[str, ArrayLike]], *, name: str | None = None, version: int = 1,
                 inputs: Sequence[str] | None = None, outputs: Mapping[str, FieldLike] | None = None,
                 random: bool = False, batched: bool = False) -> None:
        require_function(function, "map():")
        if batched and random:
            raise config_error("a function of whole batches has no random numbers of its own",
                               "draw them from a generator that you seed with batch position, or work per sample")
        self._function = function
        self._name = name_of(function) if name is None else name
        self._version = int(version)
        self._inputs = None if inputs is None else tuple([inputs] if isinstance(inputs, str) else inputs)
        self._outputs = outputs
        self._random = random
        self.batched = batched

    @property
    def name(self) -> str:
        return self._name

    @property
    def version(self) -> int:
        return self._version

    def __repr__(self) -> str:
        kind = ", whole batches" if self.batched else ""
        return f"function('{self._name}', version={self._version}{kind})"

    # ------------------------------------------------------------------------------------------------ per sample

    def operation(self, fields: Mapping[str, Field], first_sample: Callable[[], Any]) -> Part:
        """The operation on samples of these fields; first_sample() gives the arrays of one to try it on."""
        inputs = [fields[name] for name in self._input_names(fields)]
        return self._operation_of(inputs, self._output_fields(inputs, first_sample))

    def _operation_of(self, inputs, outputs):
        names = [field.name for field in inputs]
        dtypes = [numpy_dtype(field) for field in outputs]

        def call(arrays, key):
            made = self._call(dict(zip(names, arrays)), key)
            return [exact_array(_made(made, field.name, self), field, dtype, repr(self), _ADVICE)
                    for field, dtype in zip(outputs, dtypes)]

        given, gives = ([field.native() for field in several] for several in (inputs, outputs))
        held = _native.PlanFunction(call)
        native = _native.python_operation(self._name, self._version, given, gives, self._random, held)
        return Part("operation", self._name, self._function, {
            "name": self._name, "version": self._version, "inputs": given, "outputs": gives, "random": self._random}, native, held)

    def _input_names(self, fields):
        if self._inputs is None:
            return list(fields)
        for name in self._inputs:
            if name not in fields:
                raise config_error(f"{self!r}: there is no field '{name}'", f"fields: {', '.join(fields)}")
        return self._inputs

    def _output_fields(self, inputs, first_sample):
        if self._outputs is not None:
            outputs = [declared(name, what) for name, what in self._outputs.items()]
            for field in outputs:
                if field.encoded or None in field.shape:
                    raise config_error(f"{self!r}: output '{field.name}' differs in length from record to record", _ADVICE.format(
                        name=field.name, dtype=field.dtype))
            return outputs
        sample = first_sample()
        made = self._call({field.name: sample[field.name] for field in inputs}, (0, 0))
        arrays = {name: as_array(value) for name, value in made.items()}
        return [Field(name, dtype_name(array.dtype, name), array.shape) for name, array in arrays.items()]

    def _call(self, sample, key):
        if self._random:
            made = self._function(sample, np.random.Generator(np.random.Philox(key=np.array(key, dtype=np.uint64))))
        else:
            made = self._function(sample)
        if hasattr(made, "keys"):
            return made
        if made is None:
            raise TypeError(f"{self!r} returned None: return a dict of the fields that it changes")
        if len(sample) == 1:
            return {next(iter(sample)): made}
        raise TypeError(f"{self!r} returned {type(made).__name__}: return a dict of the fields that it changes")

    # ------------------------------------------------------------------------------------------------ whole batches

    def batch_part(self) -> Part:
        """A function of whole batches, for the plan's JSON."""
        inputs = None if self._inputs is None else list(self._inputs)
        return Part("batch_function", self._name, self._function,
                    {"name": self._name, "version": self._version, "inputs": inputs}, None)

    def on_batch(self, batch):
        """The batch that the function makes of this one."""
        arrays = {name: tensor.numpy() for name, tensor in batch.items()}
        given = arrays if self._inputs is None else {name: arrays[name] for name in self._inputs}
        made = self._function(dict(given))
        if not hasattr(made, "keys"):
            raise TypeError(f"{self!r} returned {type(made).__name__}: return a dict of the fields that it changes")
        arrays.update({name: as_array(value) for name, value in made.items()})
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"{self!r}: fields have different numbers of examples: {lengths}")
        fields = []
        for name, array in arrays.items():
            dtype, array = typed_array(array, name, repr(self))
            fields.append((Field(name, dtype, array.shape).native(), array))
        return _native.with_fields(batch, fields)


def _operation_again(function, *, name, version, inputs, outputs, random):
    return Function(function, name=name, version=version, random=random)._operation_of(
        [from_native(field) for field in inputs], [from_native(field) for field in outputs])


def _batch_function_again(function, *, name, version, inputs):
    return Function(function, name=name, version=version, inputs=inputs, batched=True).batch_part()


def batch_function_of(part: Part) -> Function:
    """The function that batch_part() is of."""
    return Function(part.function, batched=True, **part.options)


MAKERS["operation"] = _operation_again
MAKERS["batch_function"] = _batch_function_again


def _made(made, name, function):
    if name not in made:
        raise ValueError(f"{function!r} returned no '{name}'; it returned {', '.join(made)}")
    return made[name]


function = Function
