"""Records that Python makes: from what users return to the buffers that the extension copies."""

import numpy as np

from ._errors import config_error
from ._fields import MAX_FIELDS, Field, declared, dtype_name, encoded_image, fits, numpy_dtype, shape_text

_IMAGE_MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")


def is_encoded(value):
    return isinstance(value, (bytes, bytearray, memoryview))


def as_array(value):
    """A NumPy array of a number, a tensor of any framework, a PIL image or whatever NumPy takes."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach"):  # a torch tensor
        value = value.detach()
        return value.cpu().numpy()
    return np.asarray(value)


def as_dict(item):
    """The named fields of an item: dicts as they are, ("image", "label") of tuples of two, "image" of anything else."""
    if hasattr(item, "keys"):
        return {name: item[name] for name in item.keys()}
    if hasattr(item, "_asdict"):
        return item._asdict()
    if isinstance(item, (tuple, list)):
        if len(item) == 2:
            return {"image": item[0], "label": item[1]}
        return {f"field{number}": value for number, value in enumerate(item)}
    return {"image": item}


def fields_of(item, fields, source):
    """The fields that `fields` declares, or those that the first item has."""
    if fields is not None:
        result = [declared(name, what) for name, what in fields.items()]
    else:
        result = [_field_of(name, value, source) for name, value in as_dict(item).items()]
    if not 1 <= len(result) <= MAX_FIELDS:
        raise config_error(f"{source}: records have {len(result)} fields", f"a record has 1 to {MAX_FIELDS}")
    return result


def _field_of(name, value, source):
    if is_encoded(value):
        if not bytes(value[:8]).startswith(_IMAGE_MAGIC):
            raise config_error(f"{source}: field '{name}' is bytes that are no JPEG or PNG file",
                               "give an array, np.frombuffer(...), or say what it is with fields=")
        return encoded_image(name)
    array = as_array(value)
    if array.dtype == object or array.dtype.kind in "USV":
        raise config_error(f"{source}: field '{name}' is {type(value).__name__}, no numbers",
                           "give numbers, arrays, or bytes of JPEG and PNG files")
    return Field(name, dtype_name(array.dtype, name), array.shape)


def packer(fields, source):
    """A function from an item to a buffer for each of the fields, in their order."""
    dtypes = [None if field.encoded else numpy_dtype(field) for field in fields]

    def pack(item):
        values = item if type(item) is dict else as_dict(item)
        if values is not item and len(values) == len(fields) and not hasattr(item, "keys") and not hasattr(item, "_asdict"):
            values = dict(zip((field.name for field in fields), values.values()))
        return [_buffer(values, field, dtype, source) for field, dtype in zip(fields, dtypes)]

    return pack


def _buffer(values, field, dtype, source):
    if field.name not in values:
        raise ValueError(f"{source}: a record has no field '{field.name}'; it has {', '.join(values)}")
    value = values[field.name]
    if dtype is None:
        return value if is_encoded(value) else as_array(value)
    return exact_array(value, field, dtype, source)


def typed_array(value, field, source):
    """The array's type in the engine, and the array in C order and of it; numbers beyond int64 are refused."""
    array = as_array(value)
    dtype = dtype_name(array.dtype, field)
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise config_error(f"{source}: field '{field}' has numbers beyond int64: {array.max()}",
                           'give them as int64, array.view("int64"), or as two fields of 32 bits')
    return dtype, np.ascontiguousarray(array, dtype).reshape(array.shape)


def exact_array(value, field, dtype, source, advice=""):
    """The value in C order and of the field's type; numbers that do not fit into it are refused."""
    if type(value) is int and dtype.kind == "i" and not field.shape and -1 << 31 <= value < 1 << 31:  # labels, quickly
        return np.array(value, dtype)
    array = as_array(value)
    if array.dtype != dtype:
        if array.dtype.kind == "f" and dtype.kind in "iu":
            raise ValueError(f"{source}: field '{field.name}' is {array.dtype}, not {dtype}: round it yourself")
        wider = array.astype(dtype)
        if dtype.kind in "iu" and not np.array_equal(wider, array):
            raise ValueError(f"{source}: field '{field.name}' has numbers beyond {dtype}")
        array = wider
    if not fits(array.shape, field):
        said = f": {advice.format(name=field.name, dtype=field.dtype)}" if advice and len(array.shape) == len(field.shape) else ""
        raise ValueError(f"{source}: field '{field.name}' has shape {array.shape}, not {shape_text(field.shape)}{said}")
    return np.ascontiguousarray(array).reshape(array.shape)
