"""Plans with Python functions as JSON: by module and name."""

import json
import os
import pickle

import numpy as np
import pytest

import headrace as hr
from importable_functions import halved, is_even, jittered, mean_of_batch, ones_of_batch, record, records, summed


def local(sample):
    return {"x": sample["x"]}


def full_plan():
    return (hr.from_function(record, 40).filter(is_even).shuffle(3)
            .map(halved, hr.function(jittered, random=True), hr.function(summed, inputs=["x"], version=2))
            .batch(8).map(hr.function(mean_of_batch, batched=True), hr.function(ones_of_batch, batched=True),
                          hr.function(ones_of_batch, batched=True)).prefetch(2))


def batches_of(plan):
    with hr.Loader(plan, epochs=1 if plan.streamed else 2) as loader:
        return [{name: tensor.numpy().copy() for name, tensor in batch.items()} for batch in loader.all_epochs()]


def same(a, b):
    first, second = batches_of(a), batches_of(b)
    return len(first) == len(second) > 0 and all(
        x.keys() == y.keys() and all(np.array_equal(x[name], y[name]) for name in x) for x, y in zip(first, second))


def test_functions_travel_by_name():
    plan = full_plan()
    text = plan.to_json()
    again = hr.Dataset.from_json(text, allow_imports=True)
    assert same(plan, again) and again.to_json() == text
    assert json.loads(text)["python"][0]["function"] == "importable_functions:record"
    assert batches_of(again)[0]["count"].tolist() == [2] * 8  # the same function twice
    assert same(plan, pickle.loads(pickle.dumps(plan)))


@pytest.mark.parametrize("in_memory", [False, True])
def test_generators_and_combinations(in_memory):
    streamed = hr.from_generator(records, in_memory=in_memory).map(halved).batch(8)
    assert same(streamed, hr.Dataset.from_json(streamed.to_json(), allow_imports=True))
    if in_memory:
        return
    left, right = hr.from_function(record, 6, name="left").map(halved), hr.from_function(record, 6, name="right").map(halved)
    for joined in (left.concatenate(right), hr.interleave(left, right), hr.mix(left, right, seed=1),
                   hr.zip(left, right, suffixes=["", "_2"]), hr.from_function(record, 6).window(2)):
        plan = joined.batch(4)
        assert same(plan, hr.Dataset.from_json(plan.to_json(), allow_imports=True))


def test_another_process_reads_it(python, tmp_path):
    plan = full_plan()
    (tmp_path / "plan.json").write_text(plan.to_json())
    program = f"""
        import headrace as hr
        plan = hr.Dataset.from_json(open({str(tmp_path / "plan.json")!r}).read(), allow_imports=True)
        print(hr.Loader(plan).digest())
    """
    here = os.path.dirname(__file__)
    done = python(program, env={**os.environ, "PYTHONPATH": here})
    assert done.stdout.strip() == hr.Loader(plan).digest(), done.stdout
    done = python(program)
    assert "'importable_functions:record' cannot be imported" in done.stdout and "PYTHONPATH" in done.stdout


def test_nothing_is_imported_unasked():
    text = full_plan().to_json()
    with pytest.raises(hr.ConfigError, match="importable_functions:record.*allow_imports=True"):
        hr.Dataset.from_json(text)
    plain = hr.from_function(record, 4).batch(2)
    with pytest.raises(hr.ConfigError, match="is not there"):
        hr.Dataset.from_json(plain.to_json().replace(":record", ":recorded"), allow_imports=True)
    with pytest.raises(hr.ConfigError, match="what is not known"):
        hr.Dataset.from_json(plain.to_json().replace('"anonymous"', '"unknown"'), allow_imports=True)
    with pytest.raises(hr.ConfigError, match="of the kind 'other'"):
        hr.Dataset.from_json(plain.to_json().replace('"kind": "function"', '"kind": "other"'), allow_imports=True)


def test_functions_that_cannot_be_found_again_are_refused(monkeypatch):
    data = hr.from_function(record, 4)

    def inner(sample):
        return {"x": sample["x"]}

    class Callable:
        def __call__(self, sample):
            return {"x": sample["x"]}

    for function, why in ((lambda sample: {"x": sample["x"]}, "it is a lambda"), (inner, "defined within a function"),
                          (Callable(), "has no name")):
        for plan in (data.map(function), data.filter(function), data.batch(2).map(hr.function(function, batched=True))):
            with pytest.raises(hr.ConfigError, match=f"{why}.*top of a module"):
                plan.to_json()
            with pytest.raises(hr.ConfigError):
                pickle.dumps(plan)
    monkeypatch.setattr(local, "__module__", "__main__")
    with pytest.raises(hr.ConfigError, match="in the program that was started"):
        data.map(local).to_json()
    monkeypatch.setattr(local, "__module__", "importable_functions")
    with pytest.raises(hr.ConfigError, match="importable_functions:local is something else"):
        data.map(local).to_json()


def test_names_tell_functions_apart():
    data = hr.from_function(record, 4).map(summed)
    twice = data.map(hr.function(halved, inputs=["x"]), hr.function(halved, inputs=["x", "sum"])).batch(2)
    with pytest.raises(hr.ConfigError, match="two functions of the plan are called 'importable_functions.halved'"):
        twice.to_json()
    named = data.map(hr.function(halved, inputs=["x"]), hr.function(halved, inputs=["x", "sum"], name="second")).batch(2)
    assert same(named, hr.Dataset.from_json(named.to_json(), allow_imports=True))
    same_twice = data.map(halved, halved).batch(2)
    assert same(same_twice, hr.Dataset.from_json(same_twice.to_json(), allow_imports=True))
