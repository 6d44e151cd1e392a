"""Python callables as operations, filters and sources."""

import threading

import numpy as np
import pytest

import headrace as hr


def brighter(sample):
    return {"image": np.minimum(sample["image"].astype(np.int32) + 10, 255).astype(np.uint8)}


def test_a_function_per_sample(data, images):
    batch = hr.Loader(data.map(brighter).batch(20)).next()
    np.testing.assert_array_equal(batch["image"].numpy(), np.minimum(images[:20].astype(int) + 10, 255))


def test_its_outputs_are_inferred_or_declared(data, images):
    def summed(sample):
        return {"sum": np.float32(sample["image"].sum()), "image": sample["image"][:4] / np.float32(2)}

    inferred = data.map(summed)
    declared = data.map(hr.function(summed, outputs={"sum": "float32", "image": ("float32", (4, 8, 3))}))
    assert inferred.fields["image"] == hr.Field("image", "float32", (4, 8, 3))
    assert inferred.fingerprint != data.fingerprint
    for plan in (inferred, declared):
        batch = hr.Loader(plan.batch(100)).next()
        np.testing.assert_allclose(batch["sum"].numpy(), images.sum(axis=(1, 2, 3)))


def test_of_one_input_the_array_is_enough(data, images):
    plan = data.map(hr.function(lambda sample: sample["image"][::-1], inputs=["image"], name="upside down"))
    np.testing.assert_array_equal(hr.Loader(plan.batch(5)).next()["image"].numpy(), images[:5, ::-1])


def test_the_stream_is_the_same_for_any_threads(data):
    plan = data.shuffle(1).map(hr.flip()).map(hr.function(noise, random=True)).batch(16)
    digests = {hr.Loader(plan, epochs=2, threads=threads, devices=devices).digest()
               for threads in (1, 3) for devices in ("cpu", "cpu:2")}
    assert len(digests) == 1
    first, second = [batch["image"].numpy().copy() for batch in hr.Loader(
        data.map(hr.function(noise, random=True)).batch(100), epochs=2).all_epochs()]
    assert (first != second).any(), "each pass draws anew"


def test_a_thread_of_the_engine_is_one_thread_of_python():
    own = threading.local()

    def calls_so_far(index):
        own.calls = getattr(own, "calls", 0) + 1
        return {"calls": np.int64(own.calls)}

    batch = hr.Loader(hr.from_function(calls_so_far, 400).batch(400), reader_threads=2).next()
    assert batch["calls"].numpy().max() >= 100


def noise(sample, rng):
    return {"image": rng.integers(0, 256, sample["image"].shape, dtype=np.uint8)}


def test_name_and_version_are_the_streams_identity(data):
    prints = {data.map(hr.function(brighter, name=name, version=version)).fingerprint
              for name in ("a", "b") for version in (1, 2)}
    assert len(prints) == 4
    assert data.map(brighter).fingerprint == data.map(brighter).fingerprint


def test_a_function_of_whole_batches(data, images):
    def flatten(fields):
        return {"image": fields["image"].reshape(len(fields["image"]), -1), "mean": fields["image"].mean(axis=(1, 2, 3))}

    plan = data.batch(30).map(hr.function(flatten, batched=True, name="flatten"))
    loader = hr.Loader(plan)
    batches = list(loader)
    assert [batch["image"].shape for batch in batches] == [(30, 192)] * 3 + [(10, 192)]
    assert batches[0]["mean"].dtype == "float32" and batches[3].last_of_epoch
    np.testing.assert_array_equal(batches[0]["image"].numpy(), images[:30].reshape(30, -1))
    assert batches[0].records.tolist() == list(range(30))
    (function, (calls, examples, ns)), = loader.function_times()
    assert function.name == "flatten" and (calls, examples) == (4, 100) and ns > 0
    assert "flatten" in plan.explain() and "us a batch" in plan.explain(seconds=0.2)
    digests = {hr.Loader(plan, devices=devices).digest() for devices in ("cpu", "cpu:3")}
    assert len(digests) == 1 and hr.Loader(data.batch(30)).digest() not in digests


@pytest.mark.parametrize("threads", [1, 3])
def test_outputs_of_any_length_are_padded_as_the_advice_says(threads):
    def ids(batch):
        return {"ids": np.where(np.arange(batch["n"].max()) < batch["n"][:, None], 7, 0)}

    def padded(data):
        return [batch["ids"].numpy().tolist() for batch in hr.Loader(data, epochs=1, threads=threads)]

    numbers = hr.from_arrays({"n": np.arange(1, 5)}).batch(2)
    made = hr.from_function(lambda i: {"ids": np.full(i + 1, 7)}, 4, fields={"ids": ("int64", (None,))})
    assert padded(numbers.map(hr.function(ids, batched=True))) == [[[7, 0], [7, 7]], [[7, 7, 7, 0], [7] * 4]]
    assert padded(made.padded_batch(2)) == [[[7, 0, 0, 0], [7, 7, 0, 0]], [[7, 7, 7, 0], [7] * 4]]
    with pytest.raises(hr.DataError, match=r"shape \(2,\), not \(1.*: pad it .*\"ids\": \(\"int64\", \(None,\)\).* batched=True\), after batch"):
        padded(hr.from_arrays({"n": np.arange(1, 5)}).map(lambda s: {"ids": np.full(s["n"], 7)}).batch(2))


def test_that_changes_nothing_has_the_digest_of_the_plan(data):
    plan = data.shuffle(3).map(hr.normalize(0.5, 0.5)).batch(30)
    same = plan.map(hr.function(lambda fields: {}, batched=True, name="nothing"))
    assert hr.Loader(same).digest() == hr.Loader(plan).digest()


def test_its_state_is_of_its_functions(data):
    def plan(version):
        return data.batch(30).map(hr.function(lambda fields: {}, batched=True, name="nothing", version=version))

    state = hr.Loader(plan(1)).state_dict()
    hr.Loader(plan(1), start=state)
    with pytest.raises(hr.ConfigError, match="nothing:1"):
        hr.Loader(plan(2), start=state)


def test_where_functions_stand(data):
    batched = hr.function(lambda fields: {}, batched=True, name="all")
    with pytest.raises(hr.ConfigError, match="after batch"):
        data.map(batched)
    with pytest.raises(hr.ConfigError, match="put shuffle\\(\\) before it"):
        data.batch(3).map(batched).shuffle(1)
    with pytest.raises(hr.ConfigError):
        data.map(hr.function(noise, random=True)).cache().batch(4).explain()


def test_what_it_raises_is_the_cause(data):
    def fails(sample):
        if sample["label"] == 7:
            raise LookupError("no seven")
        return {}

    plan = data.map(hr.function(fails, outputs={"image": ("uint8", (8, 8, 3))}, inputs=["label"])).batch(4)
    with pytest.raises(hr.DataError) as caught:
        hr.Loader(data.map(hr.function(always_fails, outputs={"x": "int64"})).batch(4)).next()
    assert "LookupError: 'always'" in str(caught.value) or "LookupError: always" in str(caught.value)
    assert "test_functions.py" in str(caught.value) and "always_fails" in str(caught.value)
    assert isinstance(caught.value.__cause__, LookupError) and caught.value.__cause__.__traceback__
    with pytest.raises(hr.HeadraceError, match="returned no 'image'"):
        hr.Loader(plan).next()


def always_fails(sample):
    raise LookupError("always")


@pytest.mark.parametrize("made, message", [
    ({"image": np.zeros((2, 2), np.uint8)}, r"has shape \(2, 2\), not \(8, 8, 3\)"),
    ({"image": np.full((8, 8, 3), 0.5)}, "round it yourself"),
    ({"image": np.full((8, 8, 3), 300)}, "numbers beyond uint8"),
    (None, "returned None"),
])
def test_wrong_results_are_named(data, made, message):
    plan = data.map(hr.function(lambda sample: made, name="wrong", outputs={"image": ("uint8", (8, 8, 3))})).batch(4)
    with pytest.raises(hr.DataError, match=message) as caught:
        hr.Loader(plan).next()
    assert "function('wrong', version=1)" in str(caught.value)


def test_a_filter_sees_what_the_source_holds_or_what_was_made(data):
    raw = data.map(hr.cast("float32")).filter(lambda sample: sample["image"].dtype == np.uint8, name="raw")
    made = data.map(hr.cast("float32")).filter(lambda sample: sample["image"].dtype == np.float32, processed=True)
    assert len(raw) == len(made) == 100
    assert len(data.filter(lambda sample: sample["label"] == 3)) == 10


def test_a_filter_that_raises_makes_bad_records(data):
    def judge(sample):
        if sample["label"] == 3:
            raise ValueError("not this one")
        return sample["label"] > 3

    plan = data.filter(judge).batch(100)
    assert len(data.filter(judge)) == 70, "60 that it keeps, 10 that it could not judge"
    with pytest.raises(hr.DataError, match="not this one"):
        hr.Loader(plan).next()
    batch = hr.Loader(plan, on_error="skip", max_bad_share=1).next()
    assert batch.examples == 60 and {bad.record % 10 for bad in batch.bad_records} == {3}


# --- sources


def test_from_function(images):
    data = hr.from_function(lambda i: (images[i], i), 100)
    assert data.fields["image"] == hr.Field("image", "uint8", (8, 8, 3)) and data.fields["label"].dtype == "int64"
    batch = hr.Loader(data.shuffle(1).batch(50), threads=3).next()
    np.testing.assert_array_equal(batch["image"].numpy(), images[batch["label"].numpy()])


def test_from_torch_dataset(images, labels):
    class Photographs:
        classes = list("abcdefghij")

        def __len__(self):
            return 100

        def __getitem__(self, index):
            return images[index], labels[index]

    data = hr.from_torch_dataset(Photographs())
    assert data.classes == list("abcdefghij")
    assert hr.Loader(data.batch(100)).digest() == hr.Loader(
        hr.from_function(lambda i: {"image": images[i], "label": labels[i]}, 100).batch(100)).digest()
    with pytest.raises(hr.ConfigError, match="from_generator"):
        hr.from_torch_dataset(iter([1]))


def test_a_torch_dataset_of_tensors():
    torch = pytest.importorskip("torch")
    from torch.utils.data import TensorDataset
    data = hr.from_torch_dataset(TensorDataset(torch.arange(12).reshape(4, 3).float(), torch.arange(4)))
    assert hr.Loader(data.batch(4)).next()["image"].torch().tolist() == torch.arange(12).reshape(4, 3).tolist()


def test_a_generator_is_a_stream():
    opened = []

    def numbers(first=0):
        opened.append(first)
        for i in range(first, 25):
            yield {"x": np.int64(i)}

    data = hr.from_generator(numbers, fields={"x": "int64"})
    assert data.streamed
    loader = hr.Loader(data.batch(10))
    assert loader.next()["x"].numpy().tolist() == list(range(10))
    again = hr.Loader(data.batch(10), start=loader.state_dict())
    assert [batch["x"].numpy().tolist() for batch in again] == [list(range(10, 20)), list(range(20, 25))]
    assert opened == [0, 10]
    with pytest.raises(TypeError, match="no known length"):
        len(data)
    assert sum(batch.examples for batch in list(hr.Loader(data.batch(10)))) == 25


def test_a_generator_without_a_position_is_passed_over():
    data = hr.from_generator(lambda: ({"x": np.int64(i)} for i in range(25)))
    loader = hr.Loader(data.batch(10))
    loader.next()
    assert hr.Loader(data.batch(10), start=loader.state_dict()).next()["x"].numpy()[0] == 10


def test_a_generator_in_memory_is_like_any_other():
    data = hr.from_generator(lambda: ((np.full(3, i, np.float32), i) for i in range(25)), in_memory=True)
    assert len(data) == 25 and not data.streamed
    batch = hr.Loader(data.shuffle(1).batch(25)).next()
    np.testing.assert_array_equal(batch["image"].numpy()[:, 0], batch["label"].numpy())


def test_a_generator_that_raises_ends_the_stream():
    def numbers():
        yield {"x": np.int64(0)}
        yield {"x": np.int64(1)}  # held back: it may be the epoch's last
        raise OSError("the queue is gone")

    loader = hr.Loader(hr.from_generator(numbers).batch(1))
    assert loader.next().examples == 1
    with pytest.raises(hr.HeadraceError, match="the queue is gone"):
        loader.next()


def jpeg_of(value, size=16):
    Image = pytest.importorskip("PIL.Image")
    import io
    out = io.BytesIO()
    Image.fromarray(np.full((size, size, 3), value, np.uint8)).save(out, "PNG")
    return out.getvalue()


def test_encoded_images_are_bytes():
    files = [jpeg_of(value) for value in range(10)]
    for data in (hr.from_arrays({"image": files, "label": np.arange(10)}),
                 hr.from_function(lambda i: (files[i], i), 10)):
        assert data.fields["image"].encoded
        batch = hr.Loader(data.decode().map(hr.center_crop(8)).batch(10)).next()
        assert (batch["image"].numpy() == np.arange(10).reshape(10, 1, 1, 1)).all()
        seen = data.filter(lambda sample: sample["image"] == files[3])
        assert len(seen) == 1


def test_a_function_on_encoded_images_is_tried_on_the_first():
    files = [jpeg_of(value) for value in range(4)]
    data = hr.from_arrays({"image": files, "label": np.arange(4)})
    plan = data.decode(height=16, width=16).map(lambda sample: {"mean": np.float32(sample["image"].mean())}).batch(4)
    assert hr.Loader(plan).next()["mean"].numpy().tolist() == [0, 1, 2, 3]


def test_arrays_of_other_types_become_the_next_wider_one():
    data = hr.from_arrays({"image": np.zeros((4, 5, 6), bool), "label": np.arange(4, dtype=np.int16),
                           "x": np.arange(4, dtype=np.uint32), "y": np.zeros(4)})
    assert [(field.dtype, field.shape) for field in data.fields.values()] == [
        ("uint8", (5, 6, 1)), ("int64", ()), ("int64", ()), ("float32", ())]


@pytest.mark.parametrize("arrays, message", [
    ({}, "dict of arrays"), ({"a": [1, 2], "b": [1]}, "different lengths"), ({"a": ["x", "y"]}, "type str|no numbers"),
    ({"a": np.zeros(3, complex)}, "complex128")])
def test_arrays_that_cannot_be(arrays, message):
    with pytest.raises(hr.ConfigError, match=message):
        hr.from_arrays(arrays)


def test_arrays_are_not_copied(images):
    before = images.copy()
    plan = hr.from_arrays({"image": images}).batch(100)
    images[0] = 0
    np.testing.assert_array_equal(hr.Loader(plan).next()["image"].numpy()[0], images[0])
    images[:] = before
