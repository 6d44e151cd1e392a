"""headrace.keras.PyDataset, where Keras is installed, without its trainer: examples/keras_fit.py has that."""

import importlib.util
import os

import numpy as np
import pytest

import headrace as hr

if importlib.util.find_spec("torch"):  # TensorFlow's libraries do not share a process with PyTorch's
    os.environ.setdefault("KERAS_BACKEND", "torch")
pytest.importorskip("keras", reason="Keras is not installed")
from headrace.keras import PyDataset  # noqa: E402


@pytest.fixture
def numbered(images):
    return hr.from_arrays({"image": images, "label": np.arange(len(images))})


def epoch_of(dataset, order=None):
    dataset.on_epoch_begin()
    labels = [dataset[i][1] for i in (order or range(len(dataset)))]
    dataset.on_epoch_end()
    return np.concatenate([np.array(part) for part in labels]).tolist()


def test_gives_every_record_once_an_epoch_whatever_the_numbers(numbered):
    ours = PyDataset(numbered.shuffle(1).batch(16))
    assert len(ours) == ours.num_batches == 7
    first, second = epoch_of(ours), epoch_of(ours, [3, 1, 0, 2, 6, 5, 4])
    assert sorted(first) == sorted(second) == list(range(100)) and first != second


def test_batches_that_keras_looks_at_first_come_again(numbered):
    plain, looked = PyDataset(numbered.shuffle(1).batch(16)), PyDataset(numbered.shuffle(1).batch(16))
    looked[0], looked[1]
    for _ in range(2):
        assert epoch_of(looked) == epoch_of(plain)


def test_an_epoch_that_was_broken_off_begins_anew(numbered):
    ours = PyDataset(numbered.batch(16))
    ours.on_epoch_begin()
    ours[0], ours[1], ours[2]
    ours.on_epoch_end()
    assert epoch_of(ours) == list(range(100))


def test_chooses_fields(numbered):
    (images,) = PyDataset(numbered.batch(10), y=None)[0]
    assert images.shape == (10, 8, 8, 3)
    parts = PyDataset(numbered.batch(10), ["image", "label"], "label", "label")[0]
    assert len(parts) == 3 and len(parts[0]) == 2
    with pytest.raises(hr.ConfigError, match="no field 'lable'"):
        PyDataset(numbered.batch(10), y="lable")
    with pytest.raises(hr.ConfigError, match="takes a batched"):
        PyDataset(numbered)


def test_it_says_what_it_gives_and_where_it_stands(numbered):
    plan = numbered.batch(16)
    ours = PyDataset(plan)
    assert repr(ours) == f"<headrace.keras.PyDataset of {plan!r}; epoch 0, 0 of 7 batches given>"
    ours[0]
    assert repr(ours).endswith("; epoch 0, 1 of 7 batches given>")
