"""The constants that a prediction starts from: a JSON file in which each has its value and where it comes from.

  {"name": "CIFAR CNN on hosts of two cores", "constants": {"step_seconds": {"value": 0.18, "from": "measured: ..."}, ...}}

README.md has what each means. Unknown names, values out of range and values without an origin are refused.
"""
import dataclasses
import json
import math

MANY = 1e30  # what does not limit


class ConstantsError(Exception):
    """What is wrong with a file, for people."""


@dataclasses.dataclass(frozen=True)
class Constants:
    """A default of None is a constant that must be given. Seconds, bytes, shares from 0 to 1."""
    # One replica that trains alone.
    step_seconds: float = None
    examples_per_step: float = None
    backward_share: float = 2 / 3
    update_share: float = 0.0
    core_seconds_per_step: float = 0.0
    # What is summed.
    gradient_bytes: float = None
    bucket_bytes: float = 8 * 2**20
    buckets: tuple = ()  # (bytes, share of the backward pass after which they are ready)
    overlap: bool = False
    reduction: str = "tree"
    # Hosts and their network.
    replicas_per_host: int = 1
    cores_per_host: float = MANY
    latency_seconds: float = None
    bandwidth_bytes_per_second: float = None
    local_latency_seconds: float = 0.0
    local_bandwidth_bytes_per_second: float = MANY
    reduce_bytes_per_second: float = MANY
    copy_bytes_per_second: float = MANY
    measured_sums: tuple = ()  # (workers, ((bytes, seconds), ...))
    # How unequal steps are.
    jitter_sigma: float = 0.0
    straggler_probability: float = 0.0
    straggler_factor: float = 1.0
    # Input.
    input_examples_per_second: float = MANY
    bytes_per_example: float = 0.0
    store_bytes_per_second: float = MANY
    cached_share: float = 0.0
    # Failures.
    worker_mtbf_seconds: float = MANY
    checkpoint_seconds: float = 0.0
    checkpoint_interval_seconds: float = 0.0  # 0: the best one
    restart_seconds: float = 0.0


SHARES = {"backward_share", "update_share", "straggler_probability", "cached_share"}
POSITIVE = {"step_seconds", "examples_per_step", "gradient_bytes", "bucket_bytes", "replicas_per_host", "cores_per_host",
            "bandwidth_bytes_per_second", "local_bandwidth_bytes_per_second", "reduce_bytes_per_second", "copy_bytes_per_second",
            "input_examples_per_second", "store_bytes_per_second", "worker_mtbf_seconds"}
REDUCTIONS = ("ring", "tree", "hierarchical", "best")


def frozen(value):
    return tuple(frozen(each) for each in value) if isinstance(value, list) else value


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _check(name, value):
    if name == "reduction":
        fits, rule = value in REDUCTIONS, "one of " + ", ".join(REDUCTIONS)
    elif name == "overlap":
        fits, rule = isinstance(value, bool), "true or false"
    elif name in ("buckets", "measured_sums"):
        fits, rule = isinstance(value, tuple) and all(isinstance(each, tuple) and len(each) == 2 for each in value), "a list of pairs"
    elif name in SHARES:
        fits, rule = _is_number(value) and 0 <= value <= 1, "a share from 0 to 1"
    elif name in POSITIVE:
        fits, rule = _is_number(value) and value > 0, "a number above 0"
    else:
        fits, rule = _is_number(value) and value >= 0, "a number of at least 0"
    if not fits:
        raise ConstantsError(f"{name} is {value!r}: it must be {rule}")


def made(**values):
    """Returns checked constants. Throws ConstantsError."""
    fields = {field.name: field for field in dataclasses.fields(Constants)}
    for name, value in values.items():
        if name not in fields:
            raise ConstantsError(f"no constant is called '{name}'; there are {', '.join(fields)}")
        _check(name, value)
    missing = [name for name, field in fields.items() if field.default is None and name not in values]
    if missing:
        raise ConstantsError("not given: " + ", ".join(missing))
    constants = Constants(**values)
    if constants.backward_share + constants.update_share > 1:
        raise ConstantsError("backward_share and update_share are more than the step")
    return constants


def read(path):
    """Returns the name of the file's case and its constants. Throws ConstantsError and OSError."""
    try:
        with open(path, encoding="utf-8") as file:
            said = json.load(file)
        entries = said["constants"].items()
        without = [name for name, entry in entries if not str(entry.get("from", "")).strip()]
        values = {name: frozen(entry["value"]) for name, entry in entries}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConstantsError(f"{path}: not a file of constants ({type(error).__name__}: {error})") from error
    if without:
        raise ConstantsError(f"{path}: 'from' must say where these were measured or taken from: {', '.join(without)}")
    try:
        return said.get("name", str(path)), made(**values)
    except ConstantsError as error:
        raise ConstantsError(f"{path}: {error}") from error


def changed(c, assignments):
    """Returns the constants with those of "NAME=VALUE" in place of theirs. Throws ConstantsError."""
    values = {field.name: getattr(c, field.name) for field in dataclasses.fields(Constants)}
    for assignment in assignments:
        name, _, text = assignment.partition("=")
        try:
            values[name] = frozen(json.loads(text))
        except ValueError:
            values[name] = text  # a reduction
    return made(**values)
