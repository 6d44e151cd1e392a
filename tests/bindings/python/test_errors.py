"""The exceptions and texts of C++."""

import ast
import pathlib
import pickle
import re
import subprocess

import pytest

import headrace as hr
from headrace import train

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_the_family():
    assert issubclass(hr.ConfigError, (hr.HeadraceError, ValueError)) and issubclass(hr.ConfigError, ValueError)
    assert issubclass(hr.DataError, hr.HeadraceError) and issubclass(hr.DataError, OSError)
    assert issubclass(hr.DeviceError, hr.HeadraceError) and issubclass(hr.DeviceError, RuntimeError)


def test_a_text_is_message_and_hint(data):
    with pytest.raises(hr.ConfigError) as caught:
        hr.Loader(data)
    assert str(caught.value) == "the plan has no batches (end it with Dataset.batch())"
    assert caught.value.message == "the plan has no batches" and caught.value.code == "invalid_argument"
    assert caught.value.hint == "end it with Dataset.batch()"


def test_the_text_is_the_commands(command, tmp_path):
    missing = tmp_path / "nothing"
    printed = subprocess.run([command, "doctor", "--data", missing], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT).stdout
    with pytest.raises(hr.HeadraceError) as caught:
        hr.open(missing)
    assert caught.value.message in printed


def test_data_errors_say_where(tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "dog").mkdir()
    (tmp_path / "cat" / "a.png").write_bytes(b"\x89PNG\r\n\x1a\nand then nothing")
    (tmp_path / "dog" / "b.png").write_bytes(b"\x89PNG\r\n\x1a\nand then nothing")
    plan = hr.open(tmp_path).decode().map(hr.center_crop(4)).batch(1)
    with pytest.raises(hr.DataError) as caught:
        hr.Loader(plan).next()
    assert caught.value.record == 0 and str(tmp_path) in caught.value.source
    assert "cat/a.png" in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.record) == (hr.DataError, str(caught.value), 0)


@pytest.mark.parametrize("wrong, message", [
    (lambda data: hr.open("/nowhere", split="validation"), 'split = "validation" is not known'),
    (lambda data: data.map(hr.to_layout("first")), 'one of "channels_first", "channels_last"'),
    (lambda data: data.map(hr.cast("float64")), "float64"),
    (lambda data: hr.resize([3]), "size = [3] is not 2 numbers"),
    (lambda data: hr.resize((1, 2, 3)), "give a list of 2"),
    (lambda data: hr.random_affine(translate=[0, 0, 0]), "translate = [0, 0, 0] is not 2 numbers"),
    (lambda data: hr.random_affine(shear=[1, 2, 3]), "is not 2 or 4 numbers"),
    (lambda data: hr.random_affine(scale=1.5), "scale = 1.5 is not 2 numbers"),
    (lambda data: hr.random_rotation([1, 2, 3]), "degrees = [1, 2, 3]"),
    (lambda data: hr.gaussian_blur(sigma=[1]), "sigma = [1]"),
    (lambda data: hr.random_resized_crop(8, area=[1]), "area = [1]"),
    (lambda data: hr.random_erasing(ratio=2), "ratio = 2"),
    (lambda data: hr.Loader(hr.from_arrays({"x": np.zeros((2,) * 7)}).batch(2)), "an array of 7 axes"),
    (lambda data: hr.from_function(lambda i: {"x": np.zeros((2,) * 7)}, 3), "an array of 7 axes"),
    (lambda data: hr.from_arrays({"x": np.array([1, 2**63], np.uint64)}), "numbers beyond int64: 9223372036854775808"),
    (lambda data: next(iter(data.batch(1).map(hr.function(lambda b: {"x": np.full(1, 2**63, np.uint64)}, batched=True)))),
     "numbers beyond int64"),
    (lambda data: data.map(hr.function(lambda s: {}, outputs={"ids": ("int64", (None,))})),
     "'ids' differs in length from record to record"),
    (lambda data: data.batch(0), "at least one example"),
    (lambda data: data.shard(2, 2), "must be below"),
    (lambda data: data.repeat(0), "at least one pass"),
    (lambda data: data.filter(), "a function or labels"),
    (lambda data: data.map(3), "cannot be called"),
    (lambda data: hr.Loader(data.batch(2), on_error="ignore"), "ignore"),
    (lambda data: hr.Loader(data.batch(2), world=(2, 5)), "world of 2"),
    (lambda data: hr.Loader(data.batch(2)).next(3), "there are 1 replicas"),
    (lambda data: hr.Loader(data.batch(2), threads=-1), "threads"),
    (lambda data: hr.Loader(data.batch(2), treads=1), "no option 'treads': did you mean 'threads'?"),
    (lambda data: hr.Loader(data.batch(2), threads="two"), "threads = 'two' is of the wrong type"),
    (lambda data: hr.concatenate(data, 3), "was given int"),
    # Options as Python has them.
    (lambda data: hr.Loader(data.batch(2), threads=3, cpu_budget=2), "threads=3 is more than cpu_budget=2"),
    (lambda data: hr.Loader(data.batch(2), memory_budget_bytes=1), "memory_budget_bytes=1 does not hold"),
    (lambda data: hr.Loader(data.batch(2), convert="device"), "leave it at convert='auto'"),
])
def test_what_is_wrong_is_named(data, wrong, message):
    with pytest.raises(hr.ConfigError) as caught:
        wrong(data)
    assert message in str(caught.value)


def names_in_messages():
    """What the floors' messages hand to named(), as tests/support/message_names.h has it, but for the command's own."""
    name = re.compile(r'"([A-Z]\w+::\w+(?:\(\))?|(?:pulled|generator|convert_dataset)\(\)|split)"')
    sources = [file for floor in ("devices", "pipeline", "train") for file in (ROOT / floor).rglob("*.cpp")]
    return sorted({found for file in [*sources, *ROOT.glob("pipeline/*/*.h")] for found in name.findall(file.read_text())})


def nodes_of_the_package():
    for file in pathlib.Path(hr.__file__).parent.rglob("*.py*"):
        if file.suffix in (".py", ".pyi"):
            yield from ast.walk(ast.parse(file.read_text()))


def parameters_of_the_package():
    """Names of arguments, and of the members of NamedTuples."""
    names = set()
    for node in nodes_of_the_package():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names |= {argument.arg for argument in [*node.args.args, *node.args.kwonlyargs]}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    for called in train.__all__:  # the extension's own say theirs in their first line
        names |= set(re.findall(r"(\w+):", getattr(train, called).__doc__ or ""))
    return names


def test_every_option_that_a_message_names_is_one_of_python():
    names, known = names_in_messages(), parameters_of_the_package()
    assert len(names) > 40, "the sources were not found"
    for name in names:
        word = hr._native.words_of(name)
        if called := re.match(r"(Dataset|headrace)\.(\w+)", word):
            assert hasattr({"Dataset": hr.Dataset, "headrace": hr}[called[1]], called[2]), (name, word)
        elif word != "len(Dataset)":
            assert word in known | {""}, (name, word)


def test_every_option_in_a_text_of_the_package_is_one():
    known, looked_at = parameters_of_the_package(), 0
    for node in nodes_of_the_package():
        if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in ("config_error", "ValueError", "TypeError"):
            continue
        parts = [part for argument in node.args for part in ast.walk(argument) if isinstance(part, ast.Constant)]
        text = " ".join(part.value for part in parts if isinstance(part.value, str))
        for option in re.findall(r"\b([a-z_]+) ?=(?!=)", text):
            looked_at += 1
            assert option in known, text
    assert looked_at > 10, "the texts were not found"


def test_what_python_has_not_is_not_advised(data, tmp_path):
    with pytest.raises(hr.ConfigError, match="JSON cannot hold") as caught:
        data.batch(2).to_json()
    assert caught.value.hint == ""
    text = '{"headrace_plan": 1, "source": {"named": "x"}, "stages": []}'
    with pytest.raises(hr.ConfigError) as caught:
        hr.Dataset.from_json(text)
    assert "Options" not in str(caught.value) and "Parts" not in str(caught.value)


def test_unknown_devices_are_named(data):
    with pytest.raises(hr.DeviceError, match="tpu: not supported") as caught:
        hr.Loader(data.batch(2), devices="tpu")
    assert caught.value.device == "tpu" and caught.value.code == "unsupported"


def test_time_outs_name_who_is_waited_for():
    import threading
    import numpy as np
    release = threading.Event()

    def slow(index):
        release.wait(20)
        return {"x": np.int64(index)}

    loader = hr.Loader(hr.from_function(slow, 4, fields={"x": "int64"}, name="slow").batch(2), stall_timeout_seconds=0.3)
    with pytest.raises(hr.HeadraceError, match="was not there after 0.3 s") as caught:
        loader.next()
    assert caught.value.code == "timeout"
    release.set()
