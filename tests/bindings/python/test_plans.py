"""Datasets: fluent, immutable, the same plan as in C++."""

import pickle

import numpy as np
import pytest

import headrace as hr


def labels_of(dataset, **options):
    with hr.Loader(dataset, **options) as loader:
        return np.concatenate([batch["label"].numpy() for batch in loader]).tolist()


def test_lengths(data):
    assert len(data) == data.records == 100 and data.batch_size is None
    assert len(data.batch(16)) == 7 and data.batch(16).batch_size == 16
    assert len(data.batch(16, drop_remainder=True)) == 6
    assert len(data.repeat(3).batch(16)) == 19


def test_methods_return_new_plans(data):
    before = data.fingerprint
    data.shuffle(1).batch(3)
    assert data.fingerprint == before and len(data) == 100


@pytest.mark.parametrize("change, expected", [
    (lambda data: data.take(3), [0, 1, 2]),
    (lambda data: data.skip(97), [7, 8, 9]),
    (lambda data: data.shard(40, 1), [1, 1, 1]),
    (lambda data: data.take(4).without_shard(2, 0), [1, 3]),
    (lambda data: data.shard_for_worker(50, 49), [9, 9]),
    (lambda data: data.filter(labels=[3]).take(2), [3, 3]),
    (lambda data: data.filter(lambda sample: sample["label"] > 7).take(4), [8, 9, 8, 9]),
    (lambda data: data.take(2).concatenate(data.skip(98)), [0, 1, 8, 9]),
    (lambda data: hr.interleave(data.take(2), data.skip(98)), [0, 8, 1, 9]),
    (lambda data: data.take(2).repeat(2), [0, 1, 0, 1]),
])
def test_stages(data, change, expected):
    assert labels_of(change(data).batch(3)) == expected


def test_mix_is_exact(data):
    mixed = hr.mix(data.take(10), data.skip(90), weights=[1, 1], seed=1)
    assert sorted(labels_of(mixed.batch(4))) == sorted([*range(10), *range(10)])


def test_zip_joins_fields(data):
    other = hr.from_arrays({"weight": np.arange(100, dtype=np.float32)}, name="weights")
    joined = hr.zip(data, other).batch(100)
    assert list(joined.fields) == ["image", "label", "weight"]
    np.testing.assert_array_equal(hr.Loader(joined).next()["weight"].numpy(), np.arange(100))


def test_shuffle_is_each_epoch_another(data):
    plan = data.shuffle(5).batch(100)
    first, second = [batch.records.tolist() for batch in hr.Loader(plan, epochs=2).all_epochs()]
    assert first != second and sorted(first) == sorted(second) == list(range(100))
    fixed = data.shuffle(5, reshuffle_each_epoch=False).batch(100)
    first, second = [batch.records.tolist() for batch in hr.Loader(fixed, epochs=2).all_epochs()]
    assert first == second


def test_unbatch(images):
    records = hr.from_arrays({"image": images.reshape(10, 10, 8, 8, 3)})
    np.testing.assert_array_equal(hr.Loader(records.unbatch().batch(100)).next()["image"].numpy(), images)


def first_values(plan):
    return [batch["x"].numpy().tolist() for batch in hr.Loader(plan)]


def counting(*bounds):
    return hr.from_arrays({"x": np.arange(*bounds)})


def test_stages_after_batch_count_batches():
    plan = counting(10).batch(4)
    assert first_values(plan.skip(1)) == [[4, 5, 6, 7], [8, 9]]
    assert first_values(plan.take(1).repeat(2).map(lambda sample: {"x": sample["x"] * 2})) == [[0, 2, 4, 6]] * 2
    assert first_values(plan.shard(2, 1).cache().unbatch().batch(3)) == [[4, 5, 6], [7]]
    assert sorted(map(len, first_values(plan.shuffle(1)))) == [2, 4, 4]
    assert plan.take(2).records == 8 and len(plan.take(2)) == 2
    with pytest.raises(hr.ConfigError, match="put filter.. before batch"):
        plan.filter(lambda sample: True).explain()


@pytest.mark.parametrize("indices", [
    [7, 0, 7], (7, 0, 7), np.array([7, 0, 7]), np.array([7, 0, 7], np.uint8), np.array([9, 7, 0, 0, 0, 7])[[1, 2, 5]],
    range(7, -1, -7), [],
])
def test_select_takes_lists_ranges_and_arrays(indices):
    expected = np.arange(10)[np.asarray(indices, int)].tolist()
    assert sum(first_values(counting(10).select(indices).batch(2)), []) == expected
    assert counting(10).select(indices).records == len(expected)


def test_select_stands_where_other_stages_do():
    assert first_values(counting(10).skip(2).select([1, 7]).batch(2)) == [[3, 9]]
    assert first_values(counting(10).batch(4).select([2, 0, 2])) == [[8, 9], [0, 1, 2, 3], [8, 9]]
    chosen = np.random.default_rng(0).permutation(100)[:80]
    plan = counting(100).select(chosen).shuffle(1).batch(20)
    assert sorted(sum(first_values(plan), [])) == sorted(chosen.tolist())
    assert plan.fingerprint == counting(100).select(chosen.tolist()).shuffle(1).batch(20).fingerprint
    assert "select(1, 7)  [on indices]" in counting(10).select([1, 7]).explain()


@pytest.mark.parametrize(("indices", "message"), [
    (np.arange(10) > 3, r"select\(\) of a mask.*flatnonzero"),
    ([True, False], "of a mask"),
    ([0.0, 1.0], r"select\(\) of float64 \(2,\)"),
    ([[0, 1]], r"select\(\) of int64 \(1, 2\)"),
    (["a"], r"select\(\) of <U1"),
    (3, r"select\(\) of int"),
    ({1, 2}, r"select\(\) of set"),
    ([3, -1], "number -1, at place 1 of the list, is negative"),
])
def test_select_refuses_what_are_no_numbers(indices, message):
    with pytest.raises(hr.ConfigError, match=message):
        counting(10).select(indices)


def test_select_names_the_first_number_out_of_range():
    with pytest.raises(hr.ConfigError, match="number 10, at place 2 of the list, is out of range: there are 10"):
        len(counting(10).select([0, 9, 10, 11]))

    def stream():
        yield {"x": np.int64(0)}

    with pytest.raises(hr.ConfigError, match="a stream has no record numbers"):
        hr.from_generator(stream, fields={"x": ("int64", ())}).select([0]).explain()


def test_take_and_skip_of_all():
    assert sum(first_values(counting(5).take(-1).batch(2)), []) == list(range(5))
    assert counting(5).take(-1).fingerprint == counting(5).fingerprint
    assert counting(5).skip(-1).records == 0 and len(counting(5).batch(2).skip(-1)) == 0
    for call in ("take", "skip"):
        with pytest.raises(hr.ConfigError, match=rf"{call}\(-2\) \(count from 0; {call}\(-1\) {call}s all\)"):
            getattr(counting(5), call)(-2)


def test_windows():
    assert first_values(counting(7).window(3, shift=2).batch(2)) == [[[0, 1, 2], [2, 3, 4]], [[4, 5, 6]]]
    assert first_values(counting(5).window(2, drop_remainder=False).skip(2).padded_batch(1)) == [[[4, 0]]]
    with pytest.raises(hr.ConfigError, match="shift=0"):
        counting(5).window(2, shift=0)


def test_combinations_of_mapped_datasets():
    tens = counting(3).map(lambda sample: {"x": sample["x"] * 10}).cache()
    assert first_values(hr.concatenate(tens, counting(2)).batch(5)) == [[0, 10, 20, 0, 1]]
    batch = next(iter(hr.Loader(hr.zip(tens, counting(5, 8), suffixes=["", "_2"]).batch(3))))
    assert batch["x"].numpy().tolist() == [0, 10, 20] and batch["x_2"].numpy().tolist() == [5, 6, 7]


def test_combinations_of_batched_datasets():
    twos, threes = counting(5).batch(2), counting(10, 13).batch(3)
    assert first_values(hr.interleave(twos, threes)) == [[0, 1], [10, 11, 12], [2, 3], [4]]
    assert first_values(hr.concatenate(twos, threes).skip(2).unbatch().batch(9)) == [[4, 10, 11, 12]]
    assert len(hr.mix(twos, threes)) == 4 and hr.mix(twos, threes).batch_size == 3
    batch = next(iter(hr.Loader(hr.zip(twos, counting(10, 15).batch(2), suffixes=["", "_2"]).skip(2))))
    assert batch["x"].numpy().tolist() == [4] and batch["x_2"].numpy().tolist() == [14]
    with pytest.raises(hr.ConfigError, match="and that of .* has none"):
        len(hr.concatenate(twos, counting(3)))


def test_padded_batch():
    rows = [np.arange(n, dtype=np.int32) for n in (1, 3, 2)]
    plan = hr.from_function(lambda i: {"tokens": rows[i]}, 3, fields={"tokens": ("int32", (None,))}).padded_batch(3)
    batch = hr.Loader(plan).next()
    assert batch["tokens"].numpy().tolist() == [[0, 0, 0], [0, 1, 2], [0, 1, 0]]
    assert batch["tokens_length"].numpy().tolist() == [1, 3, 2]


def bucketed(count):
    rows = [np.full(i * 3 % 7, i, np.int32) for i in range(count)]
    return hr.from_function(lambda i: {"x": np.int64(i), "tokens": rows[i]}, count,
                            fields={"x": ("int64", ()), "tokens": ("int32", (None,))})


def test_bucket_by_length():
    plan = bucketed(10).bucket_by_length("tokens", [2, 4], [4, 2, 1], pad={"tokens": (0, 255)})
    seen = [(batch["x"].numpy().tolist(), batch["tokens"].shape, batch["tokens_length"].numpy().tolist()) for batch in plan]
    assert seen == [([2], (1, 6), [6]), ([4], (1, 6), [5]), ([1, 6], (2, 4), [3, 4]), ([0, 3, 5, 7], (4, 2), [0, 2, 1, 0]),
                    ([9], (1, 6), [6]), ([8], (1, 4), [3])]
    assert plan.batch_size == 4 and len(plan) == 6 and plan.records == 10
    assert plan.fields["tokens"].shape == (None,)
    last = list(plan)[-1]["tokens"].numpy()
    assert last.tolist() == [[8, 8, 8, -1]]
    assert len(bucketed(10).bucket_by_length("tokens", [2, 4], 3, drop_remainder=True)) == 3
    kept = [batch["tokens"].numpy().copy() for batch in hr.Loader(plan, threads=1)]  # any number at a time
    assert [rows.shape for rows in kept] == [shape for _, shape, _ in seen]


def test_ragged_batch():
    plan = bucketed(7).ragged_batch(4)  # lengths 0, 3, 6, 2, 5, 1, 4
    first, second = (batch for batch in hr.Loader(plan))
    assert first.ragged == ("tokens",) and first.rows == 4 and second.examples == 3
    assert first["tokens"].shape == (11,) and first["tokens"].numpy().tolist() == [1] * 3 + [2] * 6 + [3] * 2
    assert first["tokens_offsets"].numpy().tolist() == [0, 0, 3, 9, 11]
    assert second["tokens_offsets"].numpy().tolist() == [0, 5, 6, 10]
    assert second.padded("tokens_offsets").shape == (5,)
    assert "fields=[(field=tokens, max_length=6)]" in bucketed(7).ragged_batch(4, max_length={"tokens": 6}).explain()
    assert [batch["x"].numpy().tolist() for batch in plan.unbatch().ragged_batch(7)] == [list(range(7))]
    with pytest.raises(hr.ConfigError, match="own loop"):
        plan.map(lambda sample: sample)


def test_ragged_text():
    texts = ["one", "", "three"]
    plan = hr.from_function(lambda i: {"text": np.frombuffer(texts[i].encode(), np.uint8)}, 3, fields={"text": ("uint8", (None,))})
    [batch] = hr.Loader(plan.ragged_batch(3))
    assert batch.text("text") == texts


def test_bucket_by_length_refuses_what_follows_by_sample():
    plan = bucketed(10).bucket_by_length("tokens", [2], 3)
    with pytest.raises(hr.ConfigError, match="batched=True"):
        plan.map(lambda sample: {"x": sample["x"]})
    with pytest.raises(hr.ConfigError, match="padded_batch"):
        plan.unbatch().explain()
    lengths = plan.map(hr.function(lambda batch: {"x": batch["x"] + batch["tokens"].shape[1]}, batched=True))
    assert [batch["x"].numpy().tolist() for batch in lengths][0] == [6 + 1, 6 + 2, 6 + 4]


def test_a_function_needs_a_record_to_be_tried_on():
    for empty in (counting(5).take(0), bucketed(5).take(0)):
        with pytest.raises(hr.ConfigError, match="outputs="):
            empty.map(lambda sample: {"x": sample["x"]})


def test_enumerate():
    assert [batch["index"].numpy().tolist() for batch in counting(5).skip(2).enumerate().batch(2)] == [[0, 1], [2]]
    plan = counting(3, 8).enumerate("n").filter(lambda sample: sample["n"] % 2 == 0, processed=True).batch(5)
    assert first_values(plan) == [[3, 5, 7]]
    plan = counting(4).repeat(2).enumerate().map(lambda sample: {"x": sample["x"] + 10 * sample["index"]}).batch(8)
    assert first_values(plan) == [[0, 11, 22, 33, 40, 51, 62, 73]]


def test_caches_are_filled_once(data, tmp_path):
    for cache in (hr.Cache(), hr.Cache(tmp_path)):
        plan = data.map(hr.cast("float32")).cache(cache).shuffle(1).batch(10)
        expected = hr.Loader(data.map(hr.cast("float32")).shuffle(1).batch(10), epochs=2).digest()
        assert hr.Loader(plan, epochs=2).digest() == expected
        assert cache.counters["records"] == 100


def test_explain_names_every_stage(data):
    text = data.shuffle(3).map(hr.flip(), hr.cutout(2)).batch(16).prefetch(3).explain()
    for word in ("arrays", "shuffle", "flip", "cutout", "batch", "prefetch"):
        assert word in text
    assert "cpu:0" in data.batch(4).explain(devices="cpu") or data.batch(4).explain(devices="cpu")


def test_explain_measures(augmented):
    text = augmented.explain(seconds=0.3)
    assert "ns an item" in text and "bound" in text and "images/s" in text


def test_fields(data):
    assert data.fields["image"] == hr.Field("image", "uint8", (8, 8, 3))
    planes = data.map(hr.normalize(0.5, 0.5), hr.to_layout("channels_first"))
    assert planes.fields["image"] == hr.Field("image", "float32", (3, 8, 8), layout="channels_first")
    assert "-> image float32 (3, 8, 8), channels first\n" in planes.batch(1).explain()
    again = planes.map(hr.to_layout("channels_last"))
    assert again.fields["image"].layout == next(iter(hr.Loader(again.batch(1)).fields.values())).layout == "channels_last"
    assert "-> image float32 (8, 8, 3), channels last\n" in again.batch(1).explain()
    made = hr.from_function(lambda i: {"image": np.zeros((5, 8, 9), np.uint8)}, 2, fields={
        "image": hr.Field("", "uint8", (5, 8, 9), layout="channels_first")}).map(hr.to_layout("channels_last"))
    assert made.fields["image"].shape == (8, 9, 5)


def test_iterating_a_dataset_is_one_epoch(augmented):
    assert sum(batch.examples for batch in augmented) == 100
    assert len(list(augmented)) == 7


def test_operations_join(data):
    chain = hr.flip() | hr.cast("float32") | hr.flatten()
    assert len(chain) == 3
    assert data.map(chain).fingerprint == data.map(hr.flip(), hr.cast("float32"), hr.flatten()).fingerprint


def of(array, *operations, **options):
    data = hr.from_arrays({"image": array}, **options).map(*operations)
    return next(iter(data.batch(len(array))))["image"].numpy()


@pytest.mark.parametrize("shape", [(9, 9, 13), (7, 7, 512), (2, 64, 3), (8, 8, 64), (1, 1, 3)])
def test_the_plan_says_the_layout_and_extents_do_not(shape):
    images = np.random.default_rng(0).integers(0, 256, (2, *shape), dtype=np.uint8)
    planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    means = np.arange(shape[-1]) / 1000
    wanted = (images / 255 - means).astype(np.float32)
    assert (of(images, hr.to_layout("channels_first")) == planes).all()
    assert (of(images, hr.to_layout("channels_last")) == images).all()
    assert (of(planes, hr.to_layout("channels_last"), layout="channels_first") == images).all()
    assert (of(images, hr.flip(1.0)) == images[:, :, ::-1]).all()
    assert np.allclose(of(images, hr.normalize(means, np.ones(shape[-1]))), wanted, atol=1e-6)
    normal = of(planes, hr.layout_is("channels_first"), hr.normalize(means, np.ones(shape[-1])))
    assert np.allclose(normal, wanted.transpose(0, 3, 1, 2), atol=1e-6)
    turned = hr.from_arrays({"image": images}).map(hr.to_layout("channels_first"))
    assert "channels first" in turned.batch(2).explain()
    same = turned.map(lambda sample: {"image": sample["image"]}, hr.to_layout("channels_last"))
    assert (next(iter(same.batch(2)))["image"].numpy() == images).all()


def test_a_layout_that_nothing_says_is_asked_for():
    bands = np.zeros((2, 13, 16, 16), np.float32)
    with pytest.raises(hr.ConfigError, match="nothing says where they are.*layout_is.*layout"):
        of(bands, hr.flip())
    assert of(bands, hr.to_layout("channels_last"), layout="channels_first").shape == (2, 16, 16, 13)
    planes = np.zeros((2, 3, 8, 9), np.float32)
    for operation in (hr.flip(), hr.normalize([0] * 3, [1] * 3), hr.to_layout("channels_last"), hr.cutout(2)):
        with pytest.raises(hr.ConfigError, match="nothing says where they are.*layout_is"):
            of(planes, operation)
    transposed = hr.function(lambda s: {"image": s["image"].transpose(2, 0, 1).copy()})
    with pytest.raises(hr.ConfigError, match="nothing says where they are"):
        of(np.zeros((2, 8, 9, 3), np.uint8), transposed, hr.flip())
    rows = of(np.zeros((2, 8, 9, 3), np.uint8), transposed, hr.layout_is("channels_first"), hr.to_layout("channels_last"))
    assert rows.shape == (2, 8, 9, 3)


def test_cutmix_exchanges_whole_pixels():
    images = np.zeros((4, 9, 9, 13), np.float32)
    images[1::2] = 1
    data = hr.from_arrays({"image": images, "label": np.arange(4) % 2}).map(hr.one_hot(2)).batch(4).map(hr.cutmix(1.0))
    mixed = [next(iter(hr.Loader(data, seed=seed)))["image"].numpy() for seed in range(8)]
    assert all((batch == batch[..., :1]).all() for batch in mixed)


def test_masks_and_boxes_move_with_their_image(tmp_path):
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (12, 10, 14, 3), dtype=np.uint8)
    boxes = np.tile(np.array([[2, 1, 6, 5], [0, 0, 1, 1]], np.float32), (12, 1, 1))
    data = hr.from_arrays({"image": images, "seg": images[..., :1], "boxes": boxes})
    moved = data.map((hr.pad_crop(9, 3) | hr.flip() | hr.normalize(0, 1)).along(masks=["seg"], boxes=["boxes"]))
    for batch in moved.batch(4):
        arrays = batch.numpy()
        assert np.allclose(arrays["image"][..., :1] * 255, arrays["seg"], atol=1e-3)
    mirrored = next(iter(data.map(hr.flip(1).along(masks=["seg"], boxes=["boxes"])).batch(12))).numpy()
    assert (mirrored["seg"] == images[:, :, ::-1, :1]).all()
    assert (mirrored["boxes"][0] == [[8, 1, 12, 5], [13, 0, 14, 1]]).all()
    cut = hr.center_crop(8)
    assert (next(iter(data.map(cut.along(boxes=["boxes"])).batch(12))).numpy()["boxes"][0] ==
            [[0, 0, 3, 4], [0, 0, 0, 0]]).all()
    np.savez(tmp_path / "data.npz", image=images, boxes=boxes)
    plan = hr.open(tmp_path / "data.npz").map(cut.along(boxes=["boxes"], lost_boxes="drop")).batch(12)
    again = hr.Dataset.from_json(plan.to_json())
    assert again.fingerprint == plan.fingerprint and "boxes=[boxes], lost_boxes=drop" in again.explain()
    assert (next(iter(again)).numpy()["boxes"][0] == [[0, 0, 3, 4], [0, 0, 0, 0]]).all()
    cuts = (cut | hr.flip(0)).along(boxes=["boxes"], lost_boxes="drop", with_boxes=["labels"])
    varying = hr.from_function(lambda i: {"image": images[i], "boxes": boxes[i, ::-1], "labels": np.array([7, 8])}, 12,
                               fields={"image": ("uint8", (10, 14, 3)), "boxes": ("float32", (None, 4)),
                                       "labels": ("int64", (None,))})
    batch = next(iter(varying.map(cuts).padded_batch(12))).numpy()
    assert batch["labels"][0].tolist()[:1] == [8] and batch["boxes"][0, 0].tolist() == [0, 0, 3, 4]
    assert not batch["labels"][0][1:].any()
    assert batch["boxes_length"].tolist() == batch["labels_length"].tolist() == [1] * 12
    buckets = varying.map(cuts).bucket_by_length("boxes", boundaries=[1], batch_sizes=[4, 4])
    batch = next(iter(buckets)).numpy()
    assert batch["boxes"].shape == (4, 2, 4) and (batch["boxes"][:, 0] == [0, 0, 3, 4]).all() and not batch["boxes"][:, 1].any()
    assert batch["boxes_length"].tolist() == [1] * 4
    with pytest.raises(hr.ConfigError, match="'labels' int64.*may have a row for each box"):
        varying.map(cut.along(boxes=["boxes"], lost_boxes="drop")).padded_batch(1).fields
    with pytest.raises(hr.ConfigError, match="no operation of the chain moves pixels"):
        hr.normalize(0, 1).along(masks=["seg"])
    with pytest.raises(hr.ConfigError, match="lost_boxes"):
        hr.flip().along(masks=["seg"], lost_boxes="never")


def test_a_plan_travels_as_json(tmp_path, images, labels):
    np.savez(tmp_path / "data.npz", x_train=images, y_train=labels)
    plan = hr.open(tmp_path / "data.npz").shuffle(2).map(hr.flip(), hr.normalize(0.5, 0.5)).batch(8)
    again = hr.Dataset.from_json(plan.to_json())
    assert again.fingerprint == plan.fingerprint
    assert hr.Loader(again).digest() == hr.Loader(pickle.loads(pickle.dumps(plan))).digest() == hr.Loader(plan).digest()
