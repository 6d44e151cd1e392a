"""Wrong programs, as people write them: each ends in an error that names the mistake, or gives what its author meant."""

import io
import os

import numpy as np
import pytest

import headrace as hr
from headrace import train

Image = pytest.importorskip("PIL.Image")


def picture(path, level=9, size=(16, 16), mode="RGB"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Image.new(mode, size, level if mode == "L" else (level, level, level)).save(path)


def folder(root, *names):
    for number, name in enumerate(names):
        picture(os.path.join(root, name), 10 * number)
    return str(root)


def vectors(records=64, features=8, classes=2):
    random = np.random.default_rng(0)
    x = random.normal(size=(records, features)).astype(np.float32)
    return {"x": x, "label": (np.arange(records) % classes).astype(np.int64)}


def batches(**changes):
    return hr.from_arrays({**vectors(), **changes}).batch(16)


def compiled(outputs=2, activation=None, data=None, **options):
    model = train.Strategy("cpu:1", announce=False).build(
        lambda g: g.dense(g.input("x"), outputs, activation=activation), data=data or batches(), seed=1)
    model.compile(**options)
    return model


def fit(data=None, compile=None, outputs=2, activation=None, **options):
    data = data or batches()
    return compiled(outputs, activation, data, **(compile or {})).fit(data, verbose=0, **options)


def images(shape=(8, 32, 32, 3), dtype=np.uint8):
    return np.zeros(shape, dtype)


def first(data):
    return next(iter(data))


def mapped(*operations, image=None, **fields):
    return first(hr.from_arrays({"image": images() if image is None else image, **fields}).map(*operations).batch(4))


# Data: what lies at a path.
PATHS = {
    "no such folder": lambda t: hr.open(t / "missing"),
    "an empty folder": lambda t: hr.open(t),
    "a split that is not there": lambda t: hr.open(folder(t, "a/1.png", "b/1.png"), split="test"),
    "columns as a text": lambda t: hr.open(folder(t, "a/1.png", "b/1.png"), columns="txt"),
    "classes_at misspelt": lambda t: hr.open(folder(t, "a/1.png", "b/1.png"), classes_at="parents"),
    "images beside masks": lambda t: hr.open(folder(t, "images/1.png", "masks/1.png")),
    "train_images and test_images": lambda t: hr.open(folder(t, "train_images/1.png", "test_images/1.png")),
    "train2017 and val2017": lambda t: hr.open(folder(t, "train2017/1.png", "val2017/1.png")),
    "trainA and trainB": lambda t: hr.open(folder(t, "trainA/1.png", "trainB/1.png", "testA/1.png", "testB/1.png")),
    "x_train and x_test": lambda t: hr.open(folder(t, "x_train/1.png", "x_test/1.png")),
    "one class": lambda t: hr.open(folder(t, "cat/1.png", "cat/2.png")),
    "images at two depths": lambda t: hr.open(folder(t, "a/1.png", "a/b/2.png", "c/1.png")),
    "a text file": lambda t: ((t / "notes.txt").write_text("hello"), hr.open(t / "notes.txt")),
    "a CSV with another separator": lambda t: ((t / "a.csv").write_text("path;label\n1.png;0\n"), hr.open(t / "a.csv")),
    "a CSV of missing images": lambda t: ((t / "a.csv").write_text("path,label\n1.png,0\n"), first(hr.open(t / "a.csv").decode().batch(1))),
    "a CSV with a label missing": lambda t: (folder(t, "1.png"), (t / "a.csv").write_text("path,label\n1.png,\n"), hr.open(t / "a.csv")),
    "a CSV of fractions as classes": lambda t: (folder(t, "1.png"), (t / "a.csv").write_text("path,label\n1.png,0.5\n"), hr.open(t / "a.csv")),
    "a CSV out of its folder": lambda t: (folder(t, "x/1.png"), os.makedirs(t / "y"),
                                          (t / "y/a.csv").write_text("path,label\n../../../../etc/hostname,0\n"), first(hr.open(t / "y/a.csv").decode().batch(1))),
    "a file that is no image": lambda t: (folder(t, "a/1.png", "b/2.png"), (t / "a/1.png").write_bytes(b"<html>404"), list(hr.open(t).decode().batch(2))),
    "a truncated image": lambda t: (folder(t, "a/1.png", "b/2.png"), os.truncate(t / "a/1.png", 40), list(hr.open(t).decode().batch(2))),
    "a URL with a password": lambda t: hr.open("https://user:secret@127.0.0.1/x.tar"),
    "an unknown scheme": lambda t: hr.open("gs://bucket/x.tar"),
    "images and masks of other numbers": lambda t: hr.zip(
        hr.open(folder(t / "a", "1.png", "2.png"), classes_at="none"), hr.open(folder(t / "b", "1.png"), classes_at="none"), suffixes=["", "_mask"]),
}

# Plans: stages and operations.
PLANS = {
    "arrays of other lengths": lambda: hr.from_arrays({"x": np.zeros(3), "label": np.zeros(4)}),
    "an array alone": lambda: hr.from_arrays(np.zeros((3, 2))),
    "a list of dicts": lambda: hr.from_arrays([{"x": 1}]),
    "text as a field": lambda: hr.from_arrays({"x": np.array(["a", "b"])}),
    "objects as a field": lambda: hr.from_arrays({"x": np.array([{}, {}])}),
    "complex numbers": lambda: hr.from_arrays({"x": np.zeros(3, complex)}),
    "a negative batch": lambda: hr.from_arrays(vectors()).batch(-4),
    "a batch as a text": lambda: hr.from_arrays(vectors()).batch("32"),
    "batched twice": lambda: first(hr.from_arrays(vectors()).batch(4).batch(2)),
    "a seed of 1.5": lambda: hr.from_arrays(vectors()).shuffle(seed=1.5),
    "cache(True)": lambda: hr.from_arrays(vectors()).cache(True),
    "decode() of arrays": lambda: first(hr.from_arrays(vectors()).decode().batch(4)),
    "a map of a text": lambda: hr.from_arrays(vectors()).map("flip"),
    "a function that returns nothing": lambda: first(hr.from_arrays(vectors()).map(lambda s: None).batch(4)),
    "a function that names no field": lambda: first(hr.from_arrays(vectors()).map(lambda s: s["y"]).batch(4)),
    "filter by a field that is not there": lambda: first(hr.from_arrays(vectors()).filter(lambda s: s["lable"] > 0).batch(4)),
    "normalize in levels": lambda: mapped(hr.normalize([125.3, 123.0, 113.9], [63.0, 62.1, 66.7])),
    "normalize with a deviation of 0": lambda: mapped(hr.normalize(0.5, 0.0)),
    "normalize with a negative deviation": lambda: mapped(hr.normalize(0.5, -1.0)),
    "two means of three channels": lambda: mapped(hr.normalize([0.5, 0.5], [0.5, 0.5])),
    "normalize twice": lambda: mapped(hr.normalize([0.5] * 4, [0.5] * 4)),
    "probability in percent": lambda: mapped(hr.flip(50)),
    "a crop beyond the image": lambda: mapped(hr.center_crop(64)),
    "channels first, flipped": lambda: mapped(hr.flip(1.0), image=images((8, 3, 32, 32))),
    "channels first, normalized": lambda: mapped(hr.normalize([0.5] * 3, [0.5] * 3), image=images((8, 3, 32, 32))),
    "channels first to channels first": lambda: mapped(hr.to_layout("channels_first"), image=images((8, 3, 32, 32))),
    "an area of 8 to 100 percent": lambda: mapped(hr.random_resized_crop(16, area=(8, 100))),
    "an area turned around": lambda: mapped(hr.random_resized_crop(16, area=(1.0, 0.1))),
    "translate in pixels": lambda: mapped(hr.random_affine(translate=[4, 4])),
    "jitter of -1": lambda: mapped(hr.color_jitter(brightness=-1)),
    "jitter of grey images": lambda: mapped(hr.color_jitter(saturation=0.5), image=images((8, 32, 32, 1))),
    "fill of two channels": lambda: mapped(hr.cutout(8, fill=[1, 2])),
    "mixup without one_hot": lambda: first(hr.from_arrays({"image": images(dtype=np.float32), "label": np.arange(8)}).batch(4).map(hr.mixup())),
    "mixup before batch": lambda: first(hr.from_arrays({"image": images(dtype=np.float32)}).map(hr.mixup()).batch(4)),
    "one_hot of too few classes": lambda: mapped(hr.one_hot(3), label=np.arange(8)),
    "boxes that are dropped, their labels not": lambda: mapped(
        hr.center_crop(8).along(boxes=["boxes"], lost_boxes="drop"), boxes=np.zeros((8, 2, 4), np.float32), labels=np.zeros((8, 2), np.int64)),
    "a misspelt operation": lambda: hr.normalise(0.5, 0.5),
    "select beyond the end": lambda: list(hr.from_arrays(vectors()).select([0, 999]).batch(1)),
    "a field of different shapes": lambda: list(hr.from_function(lambda i: {"x": np.zeros(i + 1, np.float32)}, 4).batch(2)),
}

# Loaders.
LOADERS = {
    "no such device": lambda: hr.Loader(batches(), devices="gpu"),
    "a device twice": lambda: hr.Loader(batches(), devices="cpu:0,0"),
    "cuda that is not there": lambda: hr.Loader(batches(), devices="cuda:99"),
    "epochs=-1": lambda: hr.Loader(batches(), epochs=-1),
    "epochs=1.5": lambda: hr.Loader(batches(), epochs=1.5),
    "another plan's state": lambda: hr.Loader(batches()).load_state_dict(hr.Loader(hr.from_arrays(vectors(32)).batch(4)).state_dict()),
    "a state that is none": lambda: hr.Loader(batches()).load_state_dict({"epoch": 3}),
    "a replica that is not there": lambda: next(iter(hr.Loader(batches(), devices="cpu:2").replica(2))),
    "a misspelt field": lambda: first(batches())["lable"],
    "a dataset of a list": lambda: hr.Loader([1, 2, 3]),
}

# The trainer.
TRAINING = {
    "a metric that is not known": lambda: compiled(metrics=["acuracy"]),
    "a loss by a wrong name": lambda: compiled(loss="crossentropy"),
    "softmax twice": lambda: fit(activation="softmax"),
    "sigmoid twice": lambda: fit(outputs=1, activation="sigmoid", compile={"loss": train.binary_crossentropy()}),
    "one output, sparse classes": lambda: fit(outputs=1, compile={"loss": train.sparse_categorical_crossentropy()}),
    "two outputs, binary loss, class numbers": lambda: fit(outputs=2, compile={"loss": train.binary_crossentropy()}),
    "accuracy of a regression": lambda: fit(batches(label=np.random.rand(64, 1).astype(np.float32)), {"loss": train.mean_squared_error(), "metrics": ["accuracy"]}, 1),
    "labels beyond the classes": lambda: fit(batches(label=np.arange(64))),
    "labels from 1": lambda: fit(batches(label=(np.arange(64) % 2 + 1).astype(np.int64))),
    "labels of -1": lambda: fit(batches(label=np.full(64, -1))),
    "regression onto a broadcast": lambda: fit(batches(label=np.random.rand(64).astype(np.float32)), {"loss": train.mean_squared_error(), "metrics": []}, 3),
    "NaN in the data": lambda: fit(batches(x=np.full((64, 8), np.nan, np.float32)), epochs=1),
    "no validation, but its loss is watched": lambda: fit(epochs=2, callbacks=[train.early_stopping("val_loss")]),
    "a monitor that does not exist": lambda: fit(epochs=2, validation=batches(), callbacks=[train.early_stopping("val_acc")]),
    "best of a metric that does not exist": lambda: fit(epochs=1, checkpoints=train.Checkpoints("unused", best="auc")),
    "fit of a plan without batches": lambda: fit(hr.from_arrays(vectors()), epochs=1) and None,
    "other features than at build": lambda: compiled().fit(hr.from_arrays(vectors(features=9)).batch(16), verbose=0),
    "an input that is no field": lambda: train.Strategy("cpu:1", announce=False).build(lambda g: g.dense(g.input("image"), 2), data=batches()),
    "a dropout of 50": lambda: train.Strategy("cpu:1", announce=False).build(lambda g: g.dense(g.dropout(g.input("x"), 50), 2), data=batches()),
    "fit before compile": lambda: train.Strategy("cpu:1", announce=False).build(lambda g: g.dense(g.input("x"), 2), data=batches()).fit(batches()),
    "another strategy's model": lambda: train.Trainer(compiled(), train.Strategy("cpu:2", announce=False).distribute(batches())),
    "a variable that is not there": lambda: compiled().write_variable("dense_7/weights", np.zeros((8, 2), np.float32)),
    "freeze after compile": lambda: compiled().freeze("dense_that_is_not_there"),
    "a custom metric watched without a direction": lambda: fit(
        compile={"metrics": [lambda t, p: p.argmax(1) == t]}, epochs=2, validation=batches(), callbacks=[train.early_stopping("val_<lambda>")]),
}


def must_raise(program):
    with pytest.raises((hr.HeadraceError, AttributeError, TypeError, KeyError, IndexError)) as caught:
        program()
    said = str(caught.value)
    assert said and "bug in Headrace" not in said and "incompatible function arguments" not in said and "nanobind" not in said


@pytest.mark.parametrize("name", PATHS)
def test_a_wrong_path_is_named(name, tmp_path):
    must_raise(lambda: PATHS[name](tmp_path))


@pytest.mark.parametrize("name", [*PLANS, *LOADERS, *TRAINING])
def test_a_wrong_program_is_named(name):
    must_raise({**PLANS, **LOADERS, **TRAINING}[name])
