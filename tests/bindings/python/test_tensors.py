"""Batches as other libraries' arrays: no copy, right bytes, alive as long as anybody looks at them."""

import gc
import pickle
from collections.abc import Mapping

import numpy as np
import pytest

import headrace as hr


@pytest.fixture
def batch(data):
    return hr.Loader(data.batch(16)).next()


def test_numpy_is_the_batchs_memory(batch, images, labels):
    array = np.asarray(batch["image"])
    assert array.ctypes.data == batch["image"].data_ptr
    np.testing.assert_array_equal(array, images[:16])
    np.testing.assert_array_equal(batch.numpy()["label"], labels[:16])
    assert array.flags.writeable and array.flags.c_contiguous


def test_dlpack_is_the_batchs_memory(batch, images):
    array = np.from_dlpack(batch["image"])
    assert array.ctypes.data == batch["image"].data_ptr
    np.testing.assert_array_equal(array, images[:16])
    assert batch["image"].__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("version, name", [(None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned"),
                                           ((2, 0), "dltensor_versioned")])
def test_dlpack_speaks_the_version_that_is_asked_for(batch, version, name):
    assert f'"{name}"' in repr(batch["image"].__dlpack__(max_version=version))


def test_a_capsule_that_nobody_takes_gives_the_batch_back(data):
    loader = hr.Loader(data.batch(10).prefetch(2), epochs=20)
    for _ in range(200):
        loader.next()["image"].__dlpack__(max_version=(1, 0))


def test_dlpack_copies_where_asked(batch):
    copy = np.from_dlpack(batch["image"]) if not hasattr(np, "astype") else np.from_dlpack(batch["image"], copy=True)
    assert (copy.ctypes.data == batch["image"].data_ptr) == (not hasattr(np, "astype"))
    np.testing.assert_array_equal(copy, batch["image"].numpy())


def test_dlpack_refuses_another_device(batch):
    with pytest.raises(BufferError, match="where it is"):
        batch["image"].__dlpack__(dl_device=(2, 0))


def test_torch_is_the_batchs_memory(batch, images):
    torch = pytest.importorskip("torch")
    tensor = batch.torch()["image"]
    assert tensor.data_ptr() == batch["image"].data_ptr
    np.testing.assert_array_equal(tensor.numpy(), images[:16])
    assert batch["label"].torch().dtype == torch.int64


def test_arrays_outlive_batch_and_loader(data, images):
    loader = hr.Loader(data.batch(16))
    batch = loader.next()
    array, exported, view = np.asarray(batch["image"]), np.from_dlpack(batch["image"]), memoryview(batch["label"])
    loader.close()
    del loader, batch
    gc.collect()
    np.testing.assert_array_equal(array, images[:16])
    np.testing.assert_array_equal(exported, images[:16])
    assert view.tolist() == list(range(10)) + list(range(6))


def test_the_array_interface_follows_numpys_rules(batch):
    tensor = batch["label"]
    assert tensor.__array__().dtype == np.int64
    assert tensor.__array__(dtype=np.float32).dtype == np.float32
    assert tensor.__array__(copy=True).ctypes.data != tensor.data_ptr
    with pytest.raises(ValueError, match="without a copy"):
        tensor.__array__(dtype=np.float32, copy=False)


def test_a_batch_is_a_mapping(batch):
    assert isinstance(batch, Mapping)
    assert list(batch) == batch.keys() == ["image", "label"] and len(batch) == 2
    assert "image" in batch and "nothing" not in batch and 3 not in batch
    assert batch.get("nothing") is None and batch.get("label").shape == (16,)
    assert [tensor.shape for tensor in batch.values()] == [(16, 8, 8, 3), (16,)]
    assert {name: tensor.dtype for name, tensor in batch.items()} == {"image": "uint8", "label": "int64"}
    with pytest.raises(KeyError, match="fields: image, label"):
        batch["nothing"]


def test_a_batch_knows_where_it_stands(augmented):
    loader = hr.Loader(augmented, epochs=2)
    batches = [loader.next() for _ in range(8)]
    last, after = batches[6], batches[7]
    assert (last.epoch, last.step, last.sequence, last.last_of_epoch) == (0, 6, 6, True)
    assert (last.examples, last.rows, last.global_examples) == (4, 16, 4)
    assert last["image"].shape == (4, 8, 8, 3) and last.padded("image").shape == (16, 8, 8, 3)
    assert (after.epoch, after.step, after.sequence) == (1, 0, 7)
    assert sorted(np.concatenate([batch.records for batch in batches[:7]])) == list(range(100))


def test_a_replayed_batch_is_not_to_be_written_to(data):
    batch = hr.Loader(data.batch(10), headspace=3).next()
    assert not np.asarray(batch["image"]).flags.writeable
    with pytest.raises(BufferError):
        batch["image"].__dlpack__ and np.frombuffer(batch["image"], np.uint8).__setitem__(0, 1) or memoryview(
            batch["image"]).cast("B") and _writable(batch["image"])


def _writable(tensor):
    import ctypes
    return (ctypes.c_char * tensor.nbytes).from_buffer(tensor)


def test_every_type_is_numpys(data):
    plan = data.map(hr.cast("float32")).batch(4)
    assert hr.Loader(plan).next()["image"].numpy().dtype == np.float32
    types = {"a": np.zeros(3, np.int32), "b": np.zeros(3, np.float16), "c": np.zeros((3, 2), np.float32)}
    batch = hr.Loader(hr.from_arrays(types).batch(3)).next()
    assert {name: array.dtype.name for name, array in batch.numpy().items()} == {
        "a": "int32", "b": "float16", "c": "float32"}


def test_a_batch_is_not_pickled_by_mistake(batch):
    with pytest.raises(TypeError):
        pickle.dumps(batch)
