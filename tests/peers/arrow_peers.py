# peers: pyarrow polars duckdb datasets pandas pillow numpy
# package: headrace
"""Tables of pyarrow, Polars, DuckDB and Hugging Face datasets, and Parquet, read through hr.from_arrow(): the records
that the library itself gives. Batches are read by pyarrow and Polars, predictions by DuckDB, too, and as Parquet."""

import io
import pathlib
import sys
import tempfile

import datasets
import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
from PIL import Image

import headrace as hr
import headrace.train

RECORDS = 300
checked = []


def check(name, right):
    checked.append((name, right))
    print(f"{'equal ' if right else 'DIFFER'}  {name}")


def png(seed):
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (9, 7, 3), np.uint8)).save(file, "PNG")
    return file.getvalue()


def photographs():
    breeds = ["pug", "akita", "boxer"]
    return {"photo": [png(i) for i in range(RECORDS)], "label": [breeds[i % 3] for i in range(RECORDS)],
            "weight": [i / 7 for i in range(RECORDS)], "caption": [f"number {i}" * (i % 4) for i in range(RECORDS)],
            "box": [[i, i + 1, i + 2, i + 3] for i in range(RECORDS)], "seen": [i % 2 == 0 for i in range(RECORDS)]}


ROWS = photographs()
CLASSES = sorted(set(ROWS["label"]))


def same(data):
    """Whether a dataset has the records of ROWS: image, label, and the further columns."""
    pixels = np.stack([np.asarray(Image.open(io.BytesIO(file))) for file in ROWS["photo"]])
    [batch] = hr.Loader(data.decode().batch(RECORDS), epochs=1, devices="cpu")
    values = batch.numpy()
    return (data.classes == CLASSES and np.array_equal(values["image"], pixels)
            and [CLASSES[label] for label in values["label"]] == ROWS["label"]
            and np.array_equal(values["weight"], np.float32(ROWS["weight"])) and batch.text("caption") == ROWS["caption"]
            and values["box"].tolist() == ROWS["box"] and values["seen"].tolist() == ROWS["seen"])


MORE = ["weight", "caption:text", "box", "seen"]


def tables(folder):
    table = pa.table(ROWS)
    yield "pyarrow.Table", table
    yield "pyarrow.Table of nine chunks", pa.concat_tables([table.slice(i * 34, 34) for i in range(9)])
    yield "pyarrow.Table, sliced", pa.concat_tables([table.slice(0, 5), table]).slice(5)
    yield "pyarrow.RecordBatchReader", table.to_reader(max_chunksize=41)
    wide = pa.schema([("photo", pa.large_binary()), ("label", pa.large_string()), ("weight", pa.float32()),
                      ("caption", pa.string_view()), ("box", pa.list_(pa.int16(), 4)), ("seen", pa.uint8())])
    yield "pyarrow.Table of other types", table.cast(wide)
    yield "pyarrow.Table with a dictionary", table.set_column(1, "label", table["label"].dictionary_encode())
    frame = polars.DataFrame(ROWS)
    yield "polars.DataFrame", frame
    yield "polars.DataFrame, categorical", frame.with_columns(polars.col("label").cast(polars.Categorical))
    yield "polars.DataFrame with arrays", frame.with_columns(polars.col("box").cast(polars.Array(polars.Int64, 4)))
    yield "DuckDB relation", duckdb.from_arrow(table)
    path = folder / "photographs.parquet"
    pyarrow.parquet.write_table(table, path, row_group_size=70)
    yield "Parquet by pyarrow", pyarrow.parquet.read_table(path)
    yield "Parquet by Polars", polars.read_parquet(path)
    yield "Parquet by DuckDB", duckdb.read_parquet(str(path))
    yield "pandas.DataFrame", table.to_pandas()


def check_tables(folder):
    for name, table in tables(folder):
        data = hr.from_arrow(table, columns=MORE)
        check(name, same(data))
    path = folder / "photographs.parquet"
    stream = hr.from_arrow(lambda: pyarrow.dataset.dataset(path).scanner(batch_size=32).to_reader(), columns=["weight", "seen"],
                           image_column="photo", classes=CLASSES)
    weights, seen = [], []
    for batch in hr.Loader(stream.decode().map(hr.resize_to(4, 4)).batch(64), epochs=1, devices="cpu"):
        weights += batch["weight"].numpy().tolist()
        seen += batch["seen"].numpy().tolist()
    check("Parquet as a stream", np.array_equal(weights, np.float32(ROWS["weight"])) and seen == ROWS["seen"])


def check_hugging_face():
    features = datasets.Features({"img": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"]),
                                  "id": datasets.Value("int32")})
    rows = {"img": [{"bytes": file, "path": None} for file in ROWS["photo"]], "label": [i % 2 for i in range(RECORDS)],
            "id": list(range(RECORDS))}
    data = datasets.Dataset.from_dict(rows, features=features)
    for name, chosen in [("datasets.Dataset", data), ("datasets.Dataset, shuffled", data.shuffle(seed=1)),
                         ("datasets.Dataset, filtered", data.filter(lambda row: row["id"] % 3 == 0)),
                         ("datasets.Dataset, one column less", data.remove_columns("label"))]:
        ours = hr.from_arrow(chosen, columns=["id"])
        [batch] = hr.Loader(ours.decode().batch(RECORDS), epochs=1, devices="cpu")
        right = batch["id"].numpy().tolist() == chosen["id"][:]
        right &= all(np.array_equal(image, np.asarray(theirs)) for image, theirs in zip(batch["image"].numpy(), chosen["img"]))
        if "label" in chosen.features:
            right &= batch["label"].numpy().tolist() == chosen["label"][:] and ours.classes == ["cat", "dog"]
        check(name, right)


def check_images_by_path(folder):
    for i, file in enumerate(ROWS["photo"]):
        path = folder / f"class{i % 2}" / f"{i:03}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(file)
    data = datasets.load_dataset("imagefolder", data_dir=str(folder), split="train", cache_dir=str(folder / "cache"))
    assert data.data["image"].chunk(0)[0]["bytes"].as_py() is None
    [batch] = hr.Loader(hr.from_arrow(data).decode().batch(RECORDS), epochs=1, devices="cpu")
    check("datasets' imagefolder, whose images are paths",
          all(np.array_equal(image, np.asarray(theirs)) for image, theirs in zip(batch["image"].numpy(), data["image"]))
          and batch["label"].numpy().tolist() == data["label"][:])


def check_batches():
    image = np.random.default_rng(0).integers(0, 256, (10, 4, 5, 3), np.uint8)
    data = hr.from_arrays({"image": image, "label": np.arange(10), "x": np.ones((10, 3), np.float32)})
    [batch] = hr.Loader(data.batch(16), epochs=1, devices="cpu")
    ours = pa.record_batch(batch)
    check("a batch in pyarrow", np.array_equal(ours.column("image").to_numpy_ndarray(), image)
          and ours.column("label").to_pylist() == list(range(10)) and ours.validate(full=True) is None)
    frame = polars.DataFrame(pa.Table.from_batches([ours]).drop_columns("image"))
    check("a batch in Polars", frame["x"].to_list() == [[1.0, 1.0, 1.0]] * 10)
    check("a batch there and back", all(np.array_equal(one, image) for one in
                                        [next(iter(hr.Loader(hr.from_arrow(ours).batch(10), epochs=1, devices="cpu")))["image"].numpy()]))


def check_predictions(folder):
    values = np.random.default_rng(0).random((50, 4), np.float32)
    found = headrace.train.Predictions(values, np.arange(50, dtype=np.uint64), {}, [f"{i}.jpg" for i in range(50)],
                                       np.arange(50) % 5 - 1, list("abcd"))
    best = [int(row.argmax()) for row in values]
    file = folder / "predictions.parquet"
    table = pa.table(found)
    pyarrow.parquet.write_table(table, file)
    again = pyarrow.parquet.read_table(file)
    check("predictions as Parquet", again["name"].to_pylist() == found.names and again["prediction"].to_pylist() == best
          and np.array_equal(np.float32(again["values"].to_pylist()), values)
          and again["label"].to_pylist() == [i % 5 - 1 if i % 5 else None for i in range(50)])
    flat = table["values"].chunk(0).flatten().to_numpy(zero_copy_only=True)
    check("predictions without a copy", flat.ctypes.data == values.ctypes.data and table.validate(full=True) is None)
    frame = polars.DataFrame(found)
    check("predictions in Polars", frame["class"].to_list() == ["abcd"[i] for i in best] and frame["values"].to_list() == values.tolist())
    rows = duckdb.sql("SELECT label_class, count(*) FROM found GROUP BY label_class ORDER BY 1").fetchall()
    check("predictions in DuckDB", rows == [*((name, 10) for name in "abcd"), (None, 10)])


with tempfile.TemporaryDirectory() as place:
    check_tables(pathlib.Path(place))
    check_hugging_face()
    check_batches()
    check_predictions(pathlib.Path(place))
with tempfile.TemporaryDirectory() as place:
    check_images_by_path(pathlib.Path(place))
wrong = [name for name, right in checked if not right]
print(f"{len(checked)} compared, {len(wrong)} differ")
sys.exit(1 if wrong else 0)
