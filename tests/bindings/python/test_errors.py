"""The exceptions and texts of C++."""

import ast
import importlib
import inspect
import pathlib
import pickle
import re
import subprocess

import numpy
import pytest

import headrace as hr
from headrace import _calls, _other_names, train

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
    (lambda data: data.map(hr.to_layout("first")), 'one of "channels_last", "channels_first"'),
    (lambda data: data.map(hr.cast("float64")), "float64"),
    (lambda data: hr.resize((1, 2)), "size = (1, 2) is"),
    (lambda data: hr.random_affine(translate=[0, 0, 0]), "translate = [0, 0, 0] is not 2 numbers"),
    (lambda data: hr.random_affine(shear=[1, 2, 3]), "is not 2 or 4 numbers"),
    (lambda data: hr.random_affine(scale=1.5), "scale = 1.5 is not 2 numbers"),
    (lambda data: hr.random_rotation([1, 2, 3]), "degrees = [1, 2, 3]"),
    (lambda data: hr.gaussian_blur(sigma=[1]), "sigma = [1]"),
    (lambda data: hr.random_resized_crop(8, area=[1]), "area = [1]"),
    (lambda data: hr.random_erasing(ratio=2), "ratio = 2"),
    (lambda data: hr.Loader(hr.from_arrays({"x": numpy.zeros((2,) * 7)}).batch(2)), "an array of 7 axes"),
    (lambda data: hr.from_function(lambda i: {"x": numpy.zeros((2,) * 7)}, 3), "an array of 7 axes"),
    (lambda data: hr.from_arrays({"x": numpy.array([1, 2**63], numpy.uint64)}), "numbers beyond int64: 9223372036854775808"),
    (lambda data: next(iter(data.batch(1).map(hr.function(lambda b: {"x": numpy.full(1, 2**63, numpy.uint64)}, batched=True)))),
     "numbers beyond int64"),
    (lambda data: data.map(hr.function(lambda s: {}, outputs={"ids": ("int64", (None,))})),
     "'ids' differs in length from record to record (pad it to one length"),
    (lambda data: data.batch(0), "at least one example"),
    (lambda data: data.shard(2, 2), "must be below"),
    (lambda data: data.repeat(0), "at least one pass"),
    (lambda data: data.filter(), "a function or labels"),
    (lambda data: data.map(3), "map(): 3 is an int (give a function)"),
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


@pytest.fixture(scope="module")
def model():
    return train.Strategy("cpu", announce=False).build(lambda g: g.dense(g.flatten(g.input("image", (8, 8, 3))), 3))


def other(name, module="torchvision.transforms.v2", **members):
    """An object of another library's class."""
    return type(name, (), {"__module__": module, "__call__": lambda self, sample: sample} | members)()


@pytest.mark.parametrize("call, message", [
    # Types: what was given, what is expected, what to write.
    ("data.shuffle(-1)", "shuffle.seed: -1 where a whole number from 0 to"),
    ("data.shard(-1, 2)", "shard.count: -1 where a whole number"),
    ("data.shuffle('a')", 'shuffle.seed: "a" where a whole number'),
    ("data.batch(2.5)", "batch.global_batch: 2.5 where a whole number"),
    ("data.batch()", "Dataset.batch(): missing a required argument: 'global_batch' (help(Dataset.batch) says what it takes)"),
    ("data.batch(2, True)", "Dataset.batch() takes global_batch by position; 2 given (name the others: drop_remainder=)"),
    ("data.padded_batch(2, pad=3)", "pad = 3 is an int (give a dict or None)"),
    ("data.filter(3)", "filter(): 3 is an int (give a function)"),
    ("hr.random_erasing(fill='random')", "random_erasing(): fill = 'random' is a str (give a number or a list, each a number or an array)"),
    ("hr.normalize('imagenet', 1)", "normalize(): mean = 'imagenet' is a str (give a number"),
    ("hr.random_resized_crop(224, area=.5)", "area = 0.5 is not 2 numbers"),
    ("hr.pad_crop(32, padding=4)", 'pad_crop(): padding = 4 is an int (give "zero" or "reflect")'),
    ("hr.Loader(data.batch(2), epochs='x')", "Loader(): epochs = 'x' is a str (give a whole number or None)"),
    ("hr.Loader(data.batch(2), world=3)", "world = 3 is an int (give (a whole number, a whole number) or a headrace.Workers"),
    ("hr.Dataset.from_json(3)", "Dataset.from_json(): text = 3 is an int (give a string)"),
    ("hr.from_arrays([1, 2])", "from_arrays() takes a dict of arrays"),
    ("hr.Field('x', 'int64')", "Field(): missing a required argument: 'shape'"),
    ("hr.flip() | 'x'", "Operations.__or__: 'x' is a str (give a headrace.Operations)"),
    ("train.adam('fast')", "adam(): learning_rate = 'fast' is a str (give a headrace.train.Schedule or a number)"),
    ("train.huber(1)", "huber() takes nothing by position; 1 given"),
    ("train.Strategy(4)", "Strategy(): devices = 4 is an int (give a string)"),
    ("model.fit(numpy.zeros(3), [1])", "Model.fit(): train = ndarray(3,) is a ndarray (make one with headrace.open(), from_arrays()"),
    ("model.fit(data.batch(2), epochs='3')", "epochs = '3' is of the wrong type"),
    ("model.strategy.build(lambda g: g.dense(g.input('x', (3,)), '10'))", "Graph.dense(): units = '10' is a str (give a whole number)"),
    # Parts that were not made, or are other libraries'.
    ("model.compile('adam')", "Model.compile(): optimizer = 'adam' is a str (write train.adam())"),
    ("model.compile(train.adam)", "optimizer = adam is a function, not what it returns (write train.adam())"),
    ("model.compile(other('AdamW', 'torch.optim.adamw'))", "(write train.adamw())"),
    ("model.compile(loss=other('CrossEntropyLoss', 'torch.nn'))", "(write train.sparse_categorical_crossentropy())"),
    ("model.compile(metrics='accuracy')", "Model.compile(): metrics = 'accuracy' is a str (write [train.accuracy()])"),
    ("model.compile(metrics=train.accuracy())", "metrics = Metric(accuracy) is a Metric (give a list: [Metric(accuracy)])"),
    ("model.compile(metrics=['acc'])", "metric 'acc' is not known (write train.accuracy())"),
    ("data.map(hr.flip)", "map(): flip is a function, not what it returns (write headrace.flip())"),
    ("data.map(other('RandomHorizontalFlip'))", "is a RandomHorizontalFlip of torchvision (write flip())"),
    ("data.map(other('GaussianNoise'))", "is a GaussianNoise of torchvision (call it in a function: lambda sample: {...})"),
    # Options of other libraries, and mistyped ones.
    ("model.fit(data.batch(2), validation_data=data)", "Model.fit() has no option 'validation_data' (validation_data: validation)"),
    ("model.fit(data, batch_size=3)", "(batch_size: data.batch(global_batch) says it)"),
    ("data.batch(batch_size=3)", "Dataset.batch() has no option 'batch_size' (batch_size: global_batch)"),
    ("data.shuffle(buffer_size=3)", "(buffer_size: shuffle(seed) permutes all records and needs no buffer)"),
    ("hr.Loader(data.batch(2), num_workers=3)", "Loader() has no option 'num_workers' (num_workers: threads)"),
    ("hr.Loader(data.batch(2), treads=3)", "Loader() has no option 'treads': did you mean 'threads'?"),
    ("hr.random_resized_crop(224, scale=(.1, 1))", "(scale: area)"),
    ("train.adam(lr=.1)", "adam() has no option 'lr' (lr: learning_rate)"),
    ("train.early_stopping(paitence=3)", "early_stopping() has no option 'paitence': did you mean 'patience'?"),
    ("train.Checkpoints('x', save_best=True)", "Checkpoints() has no option 'save_best'"),
    ("model.strategy.build(lambda g: g.conv(g.input('x', (8, 8, 3)), 3, kernel_size=3))", "(kernel_size: kernel)"),
])
def test_wrong_calls_are_told_in_our_words(data, model, call, message):
    with pytest.raises(hr.ConfigError) as caught:
        eval(call, {"hr": hr, "train": train, "numpy": numpy, "other": other}, {"data": data, "model": model})
    assert message in str(caught.value) and "incompatible function" not in str(caught.value)


@pytest.mark.parametrize("name, message", [
    ("hr.RandomHorizontalFlip", "headrace has no 'RandomHorizontalFlip'. RandomHorizontalFlip: flip()"),
    ("hr.random_flip_left_right", "random_flip_left_right: flip()"),
    ("hr.RandomResizedCropAndInterpolation", "random_resized_crop(size)"),
    ("hr.random_resize_crop", "headrace has no 'random_resize_crop': did you mean 'random_resized_crop'?"),
    ("train.EarlyStopping", "headrace.train has no 'EarlyStopping'. EarlyStopping: train.early_stopping()"),
    ("data.as_numpy_iterator", "Dataset has no 'as_numpy_iterator'. as_numpy_iterator: Loader(data)"),
    ("data.shufle", "Dataset has no 'shufle': did you mean 'shuffle'?"),
    ("model.train_on_batch", "Model has no 'train_on_batch'. train_on_batch: train.Trainer(model)"),
])
def test_names_of_other_libraries_answer(data, model, name, message):
    with pytest.raises(AttributeError) as caught:
        eval(name, {"hr": hr, "train": train}, {"data": data, "model": model})
    assert message in str(caught.value)


def test_what_the_answers_name_is_there():
    owners = {"headrace": hr, "train": train, "Dataset": hr.Dataset, "Model": train.Model, "Graph": train.Graph}
    for said in _other_names.PARTS.values():
        for owner, name in re.findall(r"(?:(?<![\w.])(headrace|train|Dataset|Model|Graph)\.)?\b([a-zA-Z_]\w+)\(", said):
            assert name in ("len", "next", "iter") or hasattr(owners.get(owner, hr), name) or name == "DataLoader", said


def test_what_a_function_of_the_user_raises_stays(data):
    def wrong(sample):
        return {"image": float("x")}

    with pytest.raises(ValueError, match="could not convert") as caught:
        data.map(wrong)
    assert not isinstance(caught.value, hr.HeadraceError)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_is_its_columns(library):
    frame = pytest.importorskip(library).DataFrame({"x": [1.5, 2.5], "label": [0, 1]})
    batch = next(iter(hr.from_arrays(frame).batch(2)))
    assert batch.numpy()["x"].tolist() == [1.5, 2.5] and batch.numpy()["label"].tolist() == [0, 1]


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
        if called := re.match(r"(Dataset|Loss|headrace)\.(\w+)", word):
            owners = {"Dataset": hr.Dataset, "Loss": hr._native.train.Loss, "headrace": hr}
            assert hasattr(owners[called[1]], called[2]), (name, word)
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
    text = '{"headrace_plan": 2, "source": {"named": "x"}, "stages": []}'
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
        return {"x": numpy.int64(index)}

    loader = hr.Loader(hr.from_function(slow, 4, fields={"x": "int64"}, name="slow").batch(2), stall_timeout_seconds=0.3)
    with pytest.raises(hr.HeadraceError, match="was not there after 0.3 s") as caught:
        loader.next()
    assert caught.value.code == "timeout"
    release.set()


# ------------------------------------------------------------------------------------------- every public callable

# Words of the binding's and of C++, and Python's own that do not say what to write.
FOREIGN = re.compile(r"incompatible function arg|nanobind|no constructor|std::|headrace::|_native|nb_|bad_cast|object has no attribute|"
                     r"bug in Headrace|expected str, bytes|positional argument|unexpected keyword")
# A dict, the bases of custom parts, whose constructors are Python's, and what the package alone makes.
PYTHONS = {"CustomMetric", "History", "Layer"}
MADE_HERE = {"DistributedDataset", "Model", "Predictions", "TrainingRecord", "Update"}


@pytest.fixture(scope="module")
def objects():
    """An object of each class that has methods to call wrongly."""
    data = hr.from_arrays({"x": numpy.zeros((8, 4), numpy.float32), "label": numpy.zeros(8, numpy.int64)}).batch(4)
    loader, strategy, seen = hr.Loader(data), train.Strategy("cpu:1", announce=False), []

    def net(g):
        seen.extend([g, g.input("x")])
        return g.dense(seen[1], 2)

    model = strategy.build(net, data=data, seed=1)
    model.compile()
    batch = loader.next()
    made = [data, loader, batch, batch["x"], hr.flip(), strategy, model, train.Trainer(model, strategy.distribute(data)), train.adam(),
            train.cosine_decay(1e-3, 10), train.accuracy(), train.sparse_categorical_crossentropy()]
    return {type(each): each for each in made}


def public_callables(module, objects):
    for name in [*module.__all__, *(["open", "zip"] if module is hr else [])]:
        value = getattr(module, name)
        if not isinstance(value, type):
            yield name, value, value
        elif not issubclass(value, BaseException) and name not in PYTHONS:
            yield name, value, vars(value).get("__new__", vars(value).get("__init__"))
            for method, member in list(vars(value).items()):
                member = getattr(member, "__func__", member)
                if method[0] != "_" and inspect.isfunction(member):
                    yield f"{name}.{method}", getattr(objects.get(value, value), method), member


def wrong_calls(function):
    signature = _calls._signature(inspect.unwrap(function)) if inspect.isfunction(function) else None
    known = [] if signature is None else [each for each in signature.parameters.values() if each.name not in ("self", "_cls")]
    required = {each.name: object() for each in known if each.default is each.empty and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)}
    places = [required.pop(each.name) for each in known if each.name in required and each.kind is not each.KEYWORD_ONLY]
    yield "unknown keyword", places, {**required, "no_such_option": 1}
    if places:
        yield "missing", [], {}
        yield "objects", places, required
    for each in known:
        if each.default is not each.empty:
            yield each.name, places, {**required, each.name: object()}


@pytest.mark.parametrize("module", ["headrace", "headrace.train", "headrace.torch", "headrace.jax", "headrace.keras"])
def test_every_wrong_call_is_told_in_our_words(module, objects, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if module not in ("headrace", "headrace.train"):
        pytest.importorskip(module.partition(".")[2])  # the framework
    wrong, count = [], 0
    for name, call, function in public_callables(importlib.import_module(module), objects):
        for what, places, options in wrong_calls(function):
            if what == "objects" and name in MADE_HERE:
                continue
            count += 1
            try:
                call(*places, **options)
            except (hr.HeadraceError, TypeError) as error:
                if FOREIGN.search(str(error)):
                    wrong.append(f"{name}, {what}: {error}")
            except Exception as error:  # noqa: BLE001
                wrong.append(f"{name}, {what}: {type(error).__name__}: {error}")
            else:
                if what in ("unknown keyword", "missing", "objects"):
                    wrong.append(f"{name}, {what}: nothing is said")
    assert count >= 2 and not wrong, "\n".join(wrong)
