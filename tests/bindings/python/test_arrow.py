"""Tables that speak Arrow's C interfaces, here nanoarrow's; tests/peers has those of pyarrow, Polars, DuckDB and datasets."""

import io

import numpy as np
import pytest

import headrace as hr

na = pytest.importorskip("nanoarrow")
CArrayStream = pytest.importorskip("nanoarrow.c_array_stream").CArrayStream
Image = pytest.importorskip("PIL.Image")


def table(batches, **types):
    """A stream of batches, each a dict of lists."""
    schema = na.c_schema(na.struct(types))
    arrays = [na.c_array_from_buffers(schema, len(next(iter(batch.values()))), [None],
                                      children=[na.c_array(batch[name], types[name]) for name in types])
              for batch in batches]
    return na.ArrayStream(CArrayStream.from_c_arrays(arrays, schema))


def png(value):
    file = io.BytesIO()
    Image.new("RGB", (4, 3), (value, 0, 0)).save(file, "PNG")
    return file.getvalue()


def read(data, size=8, **options):
    return [batch.numpy() for batch in hr.Loader(data.batch(size), epochs=1, devices="cpu", **options)]


def test_a_table_is_read_by_number():
    data = hr.from_arrow(table([{"x": [1.0, 2.0], "label": [5, 6]}, {"x": [3.0], "label": [7]}], x=na.float64(), label=na.int32()))
    assert data.records == 3
    [batch] = read(data)
    assert batch["x"].dtype == np.float32 and batch["x"].tolist() == [1, 2, 3]
    assert batch["label"].dtype == np.int64 and batch["label"].tolist() == [5, 6, 7]
    assert data.columns == {"x": ("float64", "x"), "label": ("int32", "label")}
    shuffled = [label for batch in read(data.shuffle(seed=3)) for label in batch["label"]]
    assert sorted(shuffled) == [5, 6, 7]


def test_images_and_texts():
    rows = {"photo": [png(10), png(20)], "label": ["dog", "cat"], "caption": ["a", "longer"]}
    types = {"photo": na.binary(), "label": na.string(), "caption": na.string_view()}
    data = hr.from_arrow(table([rows], **types), columns=["caption:text"])
    assert data.classes == ["cat", "dog"]
    [batch] = hr.Loader(data.decode().batch(2), epochs=1, devices="cpu")
    assert batch["image"].numpy()[:, 0, 0, 0].tolist() == [10, 20]
    assert batch["label"].numpy().tolist() == [1, 0]
    assert batch.text("caption") == ["a", "longer"]
    assert hr.from_arrow(table([rows], **types), classes=["dog", "cat"]).classes == ["dog", "cat"]


def test_a_null_is_a_bad_record():
    data = hr.from_arrow(table([{"x": [1, None, 3]}], x=na.int64()))
    with pytest.raises(hr.DataError, match="column 'x' is null"):
        read(data)
    [batch] = hr.Loader(data.batch(3), epochs=1, devices="cpu", on_error="skip", max_bad_share=1.0)
    assert batch["x"].numpy().tolist() == [1, 3] and batch.bad_records[0].record == 1


def test_a_function_is_a_stream():
    opened = []

    def rows():
        opened.append(1)
        return table([{"label": [0, 1, 2]}, {"label": [3, 4]}], label=na.int64())

    data = hr.from_arrow(rows)
    for _ in range(2):
        assert [batch["label"].tolist() for batch in read(data, 2)] == [[0, 1], [2, 3], [4]]
    assert len(opened) == 2


def test_what_a_function_raises_is_passed_on():
    streams = [table([{"label": [0]}], label=na.int64())]
    data = hr.from_arrow(lambda: streams.pop())
    read(data)
    with pytest.raises(Exception, match="pop from empty list"):
        read(data)


def test_a_batch_is_an_arrow_struct_of_its_own_memory():
    image = np.arange(5 * 2 * 3 * 3, dtype=np.uint8).reshape(5, 2, 3, 3)
    data = hr.from_arrays({"image": image, "label": np.arange(5), "vector": np.ones((5, 2), np.float32)})
    [batch] = hr.Loader(data.batch(8), epochs=1, devices="cpu")
    array = na.c_array(batch)
    names = [child.name for child in array.schema.children]
    assert array.length == 5 and names == ["image", "label", "vector"]
    assert na.Array(array.child(1)).to_pylist() == [0, 1, 2, 3, 4]
    assert na.Array(array.child(2)).to_pylist() == [[1.0, 1.0]] * 5
    assert dict(array.schema.child(0).metadata)[b"ARROW:extension:name"] == b"arrow.fixed_shape_tensor"
    back = hr.from_arrow(na.ArrayStream(CArrayStream.from_c_arrays([array], array.schema)))
    del batch, array
    [again] = read(back)
    assert np.array_equal(again["image"], image)


def test_what_is_no_table_is_refused():
    with pytest.raises(hr.ConfigError, match="dict has no __arrow_c_stream__"):
        hr.from_arrow({"x": [1]})
    with pytest.raises(hr.ConfigError, match="did you mean 'width'"):
        hr.from_arrow(table([{"width": [1]}], width=na.int64()), columns=["widht"])
    with pytest.raises(hr.ConfigError, match="one text"):
        hr.from_arrow(table([{"width": [1]}], width=na.int64()), columns="width")
    spent = table([{"x": [1]}], x=na.int64())
    hr.from_arrow(spent)
    with pytest.raises(Exception, match="released"):
        hr.from_arrow(spent)


def test_predictions_are_a_table():
    train = pytest.importorskip("headrace.train")
    found = train.Predictions(np.float32([[1, 2], [4, 3], [0, 9]]), np.uint64([0, 1, 2]), {"depth": np.zeros((3, 2, 2), np.float32)},
                              ["a.jpg", "b.jpg", "c.jpg"], np.array([1, 0, -1]), ["cat", "dog"])
    batch = na.ArrayStream(found).read_all()
    assert batch.schema.fields[0].name == "name"
    rows = batch.to_pylist()
    assert list(rows[0]) == ["name", "record", "label", "label_class", "prediction", "class", "values", "output_depth"]
    assert list(rows[0].values()) == ["a.jpg", 0, 1, "dog", 1, "dog", [1, 2], [0, 0, 0, 0]]
    assert [row["label"] for row in rows] == [1, 0, None] and [row["label_class"] for row in rows] == ["dog", "cat", None]
    assert [row["class"] for row in rows] == ["dog", "cat", "dog"]
    back = hr.from_arrow(train.Predictions(found.values, found.records, {}))
    assert np.array_equal(read(back)[0]["values"], found.values) and read(back)[0]["record"].tolist() == [0, 1, 2]
    with pytest.raises(hr.ConfigError, match="3 records and 2 names"):
        na.ArrayStream(train.Predictions(found.values, found.records, {}, ["a", "b"]))


def test_images_by_their_path(tmp_path):
    file = tmp_path / "1.png"
    file.write_bytes(png(20))
    image = na.struct({"bytes": na.binary(), "path": na.string()})
    schema = na.c_schema(na.struct({"image": image, "label": na.int64()}))
    columns = na.c_array_from_buffers(image, 2, [None], children=[na.c_array([png(10), None], na.binary()),
                                                                   na.c_array(["0.png", str(file)], na.string())])
    rows = na.c_array_from_buffers(schema, 2, [None], children=[columns, na.c_array([3, 4], na.int64())])
    [batch] = hr.Loader(hr.from_arrow(na.ArrayStream(CArrayStream.from_c_arrays([rows], schema))).decode().batch(2), epochs=1,
                        devices="cpu")
    assert batch["image"].numpy()[:, 0, 0, 0].tolist() == [10, 20] and batch["label"].numpy().tolist() == [3, 4]


def test_a_transform_of_hugging_face_is_not_dropped():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"x": [1.0, 2.0], "y": [3.0, 4.0]})

    class Dataset:
        _indices, features = None, {}
        with_format = __len__ = lambda self, *_: 2

        def __init__(self, **form):
            self.format = form
            self.data = type("Data", (), {"table": table})

    Dataset.__module__ = "datasets.arrow_dataset"
    assert list(hr.from_arrow(Dataset(type=None, columns=["x", "y"])).fields) == ["x", "y"]
    assert list(hr.from_arrow(Dataset(type="numpy", columns=["y"])).fields) == ["y"]
    with pytest.raises(hr.ConfigError, match="has a transform, which its table lacks"):
        hr.from_arrow(Dataset(type="custom", columns=["x", "y"]))
