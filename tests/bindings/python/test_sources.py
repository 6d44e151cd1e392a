"""Sources: columns of tables, images that all measure the same, caches of what has no identity, data behind URLs."""

import functools
import http.server
import io
import json
import os
import re
import subprocess
import tarfile
import threading

import numpy as np
import pytest
from PIL import Image

import headrace as hr


def jpeg(seed, size=(12, 10)):
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG")
    return out.getvalue()


@pytest.fixture
def table(tmp_path):
    lines = ["path,price,rooms,note"]
    for i in range(8):
        (tmp_path / f"{i}.jpg").write_bytes(jpeg(i))
        lines.append(f"{i}.jpg,{i / 4},{i},a note")
    path = tmp_path / "houses.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_numbers_to_predict_are_asked_for(table):
    with pytest.raises(hr.ConfigError, match="not whole.*label_type"):
        hr.open(table, label_column="price")
    data = hr.open(table, label_column="price", label_type="number", columns=["rooms"])
    assert data.columns == {"path": ("text", "image"), "price": ("numbers", "label"), "rooms": ("integers", "rooms"),
                            "note": ("text", None)}
    batch = next(iter(hr.Loader(data.decode().batch(8)))).numpy()
    assert batch["label"].dtype == np.float32 and (batch["label"] == np.arange(8) / 4).all()
    assert batch["rooms"].dtype == np.int64 and (batch["rooms"] == np.arange(8)).all()
    assert len(hr.open(table, label_column="price", label_type="class").classes) == 8
    with pytest.raises(hr.ConfigError):
        hr.open(table, columns="rooms")


def test_decode_takes_the_size_of_the_first_image(table):
    data = hr.open(table, label_column="rooms")
    plain, sized = data.decode().batch(4), data.decode(height=10, width=12).batch(4)
    assert plain.fingerprint == sized.fingerprint
    assert "[the size of the first image, 0.jpg]" in plain.explain()
    (table.parent / "5.jpg").write_bytes(jpeg(5, (7, 6)))
    with pytest.raises(hr.DataError, match=r"6 x 7 pixels where the first image, 0\.jpg, has 10 x 12"):
        list(hr.Loader(hr.open(table, label_column="rooms").decode().batch(4)))


def test_images_are_resized_to_height_and_width_as_pillow_does(table):
    data = hr.open(table, label_column="rooms").decode().map(hr.resize_to(20, 7)).batch(8)
    ours = next(iter(hr.Loader(data))).numpy()["image"].astype(int)
    for i, image in enumerate(ours):
        with Image.open(table.parent / f"{i}.jpg") as whole:
            theirs = np.asarray(whole.resize((7, 20), Image.BILINEAR)).astype(int)
        assert np.abs(image - theirs).max() <= 1


class Numbers:
    def __init__(self, first):
        self.first = first

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return {"value": np.int64(self.first + index)}


def test_a_cache_on_disk_tells_datasets_of_one_class_apart(tmp_path):
    def values(first):
        data = hr.from_torch_dataset(Numbers(first)).cache(tmp_path).batch(6)
        return list(next(iter(hr.Loader(data))).numpy()["value"])

    for first in (0, 100, 0):
        assert values(first) == list(range(first, first + 6))


def test_records_from_python_have_as_many_fields_as_others():
    data = hr.from_function(lambda i: {f"f{k}": np.float32(100 * i + k) for k in range(64)}, 6).batch(6)
    batch = next(iter(hr.Loader(data))).numpy()
    assert all((batch[f"f{k}"] == 100 * np.arange(6) + k).all() for k in range(64))
    with pytest.raises(hr.ConfigError, match="65 fields"):
        hr.from_function(lambda i: {f"f{k}": np.float32(k) for k in range(65)}, 6)


def png(array):
    out = io.BytesIO()
    Image.fromarray(array).save(out, "PNG")
    return out.getvalue()


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def test_members_of_a_webdataset_are_fields(tmp_path):
    masks = np.random.default_rng(1).integers(0, 21, (5, 10, 12), dtype=np.uint8)
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for i in range(5):
            boxes = [[0, 0, 4, 5.5]] * (i % 3)
            for extension, content in {"jpg": jpeg(i), "seg.png": png(masks[i]), "txt": f"photo {i}".encode(),
                                       "json": json.dumps({"boxes": boxes, "meta": {"score": i / 2}}).encode(),
                                       "npy": npy(np.full((2, 3), i, np.int16))}.items():
                member = tarfile.TarInfo(f"00{i}.{extension}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    columns = ["caption=txt", "seg=seg.png:mask", "boxes=json.boxes:list", "score=json.meta.score", "npy"]
    data = hr.open(tmp_path / "a.tar", columns=columns)
    assert data.columns["seg.png"] == ("an image", "seg") and data.columns["json"] == ("JSON", "boxes, score")
    assert list(data.fields) == ["image", "caption", "seg", "boxes", "score", "npy"]  # no sample has a label
    batch = next(iter(data.decode().padded_batch(5)))
    arrays = batch.numpy()
    assert batch.text("caption") == [f"photo {i}" for i in range(5)]
    assert (arrays["seg"][..., 0] == masks).all()
    assert arrays["boxes"].shape == (5, 2, 4) and (arrays["boxes_length"] == [0, 1, 2, 0, 1]).all()
    assert (arrays["score"] == np.arange(5, dtype=np.float32) / 2).all()
    assert arrays["npy"].dtype == np.int32 and (arrays["npy"][3] == 3).all()
    with pytest.raises(hr.ConfigError, match=r"no member 'tx' in its first samples.*did you mean 'txt'"):
        hr.open(tmp_path / "a.tar", columns=["tx"])


def test_masks_are_paired_by_name(tmp_path):
    for folder in ("images", "masks"):
        (tmp_path / folder).mkdir()
    for n in (1, 2, 10):
        Image.fromarray(np.full((2, 2, 3), n, np.uint8)).save(tmp_path / f"images/{n}.png")
        mask = Image.fromarray(np.full((2, 2), n, np.uint8))
        mask.putpalette([128, 0, 0] * 256)
        mask.save(tmp_path / f"masks/{n}_mask.png")
    paired = hr.open(tmp_path / "images", classes_at="none", columns=["mask=../masks/{stem}_mask.png:mask"])
    arrays = next(iter(paired.decode().batch(3))).numpy()
    assert arrays["image"][:, 0, 0, 0].tolist() == [1, 10, 2] and arrays["mask"][:, 0, 0, 0].tolist() == [1, 10, 2]
    images, masks = (hr.open(tmp_path / folder, classes_at="none") for folder in ("images", "masks"))
    with pytest.raises(hr.ConfigError, match=r"1\.png of .* with 10_mask\.png of .*columns.*strict=False"):
        hr.zip(images, masks, suffixes=["", "_mask"])
    assert len(hr.zip(images, masks, suffixes=["", "_mask"], strict=False)) == 3
    (tmp_path / "masks/10_mask.png").unlink()
    with pytest.raises(hr.ConfigError, match="3 records of .* and 2 of"):
        hr.zip(images, hr.open(tmp_path / "masks", classes_at="none"), suffixes=["", "_mask"])
    paired = hr.open(tmp_path / "images", classes_at="none", columns=["mask=../masks/{stem}_mask.png:mask"])
    with pytest.raises(hr.DataError, match=r"10\.png: its file '\.\./masks/10_mask\.png' is missing"):
        next(iter(paired.decode().batch(3)))


def test_files_beside_images_are_fields(tmp_path):
    for i, name in enumerate(("cat/1", "cat/2", "dog/1")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.jpg").write_bytes(jpeg(i))
        (tmp_path / f"{name}.json").write_text(json.dumps({"size": [i, 7]}))
    data = hr.open(tmp_path, columns=["json.size"])
    batch = next(iter(data.decode().batch(3))).numpy()
    assert (batch["json.size"] == [[0, 7], [1, 7], [2, 7]]).all() and (batch["label"] == [0, 0, 1]).all()


def test_structured_arrays_are_fields(tmp_path):
    records = np.zeros(6, np.dtype([("x", np.uint8, (4, 5, 3)), ("y", np.int16), ("box", ">f8", (4,))], align=True))
    records["x"] = np.random.default_rng(1).integers(0, 256, (6, 4, 5, 3))
    records["y"], records["box"] = np.arange(6), np.arange(24).reshape(6, 4) / 2
    np.save(tmp_path / "records.npy", records)
    given = next(iter(hr.from_arrays(records[["x", "y"]]).batch(6))).numpy()
    assert (given["x"] == records["x"]).all() and (given["y"] == np.arange(6)).all()
    read = next(iter(hr.open(tmp_path / "records.npy").batch(6))).numpy()
    assert (read["image"] == records["x"]).all() and read["label"].dtype == np.int64
    assert (read["label"] == np.arange(6)).all() and (read["box"] == records["box"]).all()


class Ranges(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, by ranges as HTTP/1.1 has them."""

    protocol_version = "HTTP/1.1"

    def send_head(self):
        try:
            file = open(self.translate_path(self.path), "rb")
        except OSError:
            self.send_error(404)
            return None
        size = os.fstat(file.fileno()).st_size
        first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "bytes=0-")).groups()
        first, last = int(first), min(int(last or size - 1), size - 1)
        file.seek(first)
        self.left = last - first + 1
        self.server.ranges.append((first, self.left))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Content-Length", str(self.left))
        self.send_header("ETag", '"1"')
        self.end_headers()
        return file

    def copyfile(self, source, outputfile):
        outputfile.write(source.read(self.left))

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    """Serves tmp_path; `ranges` are what was asked for."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Ranges, directory=tmp_path)) as running:
        running.ranges, running.daemon_threads = [], True
        running.url = f"http://127.0.0.1:{running.server_address[1]}"
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def write_tar(path, files):
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def batches_of(data):
    return [batch.numpy() for batch in hr.Loader(data.decode().shuffle(1).batch(4), epochs=1, devices="cpu")]


def test_a_url_is_read_by_ranges_like_the_file(server, tmp_path):
    write_tar(tmp_path / "train.tar", {f"{name}/{i}.jpg": jpeg(i) for i in range(8) for name in ("cat", "dog")})
    try:
        remote = hr.open(f"{server.url}/train.tar")
    except hr.Error as error:
        if "built without" in str(error):
            pytest.skip(str(error))
        raise
    local = hr.open(tmp_path / "train.tar")
    assert remote.classes == local.classes == ["cat", "dog"] and remote.records == 16
    assert remote.fingerprint == local.fingerprint
    for ours, theirs in zip(batches_of(remote), batches_of(local), strict=True):
        assert all(np.array_equal(ours[field], theirs[field]) for field in theirs)
    size = (tmp_path / "train.tar").stat().st_size
    assert server.ranges and all(first + count <= size for first, count in server.ranges)


def test_a_url_without_a_file_says_so(server):
    with pytest.raises(hr.DataError, match="none.tar") as raised:
        hr.open(f"{server.url}/none.tar")
    assert server.url in str(raised.value)


def test_files_beside_images_in_a_tar(tmp_path):
    files = {}
    for i, name in enumerate(("cat/1", "cat/2", "dog/1")):
        files |= {f"{name}.jpg": jpeg(i), f"{name}.json": json.dumps({"box": [i, 2, 3, 4]}).encode(), f"{name}.txt": name.encode()}
    write_tar(tmp_path / "train.tar", files)
    data = hr.open(tmp_path / "train.tar", classes_at="parent", columns=["box=json.box", "txt"])
    assert data.classes == ["cat", "dog"]
    [batch] = hr.Loader(data.decode().padded_batch(3), epochs=1, devices="cpu")
    assert batch["label"].numpy().tolist() == [0, 0, 1]
    assert batch["box"].numpy().tolist() == [[i, 2, 3, 4] for i in range(3)]
    assert batch.text("txt") == ["cat/1", "cat/2", "dog/1"]


def test_records_of_any_dataset_are_saved(tmp_path):
    images = [jpeg(number) for number in range(40)]
    data = hr.from_function(lambda number: {"image": images[number], "label": number % 3, "place": np.arange(3) * number}, 40,
                            classes=["a", "b", "c"])
    assert hr.save_records(data, tmp_path / "one.records")["records"] == 40
    done = hr.save_records(data, tmp_path / "many", shard_bytes=4000, split="test", threads=2)
    assert done["shards"] == len(list((tmp_path / "many").iterdir())) > 2
    with hr.Loader(hr.open(tmp_path / "many", split="test").decode().batch(10), devices="cpu") as loader:
        batches = [batch.numpy() for batch in loader]
    assert [int(label) for batch in batches for label in batch["label"]] == [number % 3 for number in range(40)]
    saved, made = hr.open(tmp_path / "many", split="test"), hr.open(tmp_path / "one.records")
    assert saved.fingerprint == made.fingerprint
    with pytest.raises(hr.ConfigError, match="stages"):
        hr.save_records(data.take(3), tmp_path / "two.records")
    with pytest.raises(hr.ConfigError, match="holds shards"):
        hr.save_records(data, tmp_path / "many", shard_bytes=4000)


def test_records_are_written_as_they_come(tmp_path):
    images = [jpeg(number) for number in range(40)]
    fields = {"image": "image", "label": "int64"}
    with hr.ShardWriter(tmp_path / "set", fields, shard_bytes=4000) as shards:
        for number, image in enumerate(images):
            shards.write((image, number % 3) if number % 2 else {"label": number % 3, "image": image})
    known = hr.from_function(lambda number: {"image": images[number], "label": number % 3}, 40)
    hr.save_records(known, tmp_path / "one.records")
    written = hr.open(tmp_path / "set")
    assert len(written) == 40 and len(list((tmp_path / "set").iterdir())) > 2
    assert written.fingerprint == hr.open(tmp_path / "one.records").fingerprint

    made = hr.from_generator(lambda: ({"image": image, "label": number % 3} for number, image in enumerate(images)))
    assert hr.save_records(made, tmp_path / "made", shard_bytes=4000)["records"] == 40
    assert hr.open(tmp_path / "made").fingerprint == written.fingerprint
    with pytest.raises(hr.ConfigError, match="shard_bytes"):
        hr.save_records(made, tmp_path / "made.records")


def test_what_was_not_written_to_its_end_is_no_data_set(tmp_path):
    with pytest.raises(ZeroDivisionError), hr.ShardWriter(tmp_path / "set", {"x": "float32"}, shard_bytes=40) as shards:
        for number in range(30):
            shards.write({"x": 1 / (20 - number)})
    with pytest.raises(hr.HeadraceError, match="unfinished"):
        hr.open(tmp_path / "set")
    shards = hr.ShardWriter(tmp_path / "set", {"x": "float32"}, shard_bytes=40)
    for number in range(19):
        shards.write({"x": 1 / (20 - number)})
    with pytest.raises(ValueError, match="no field 'x'"):
        shards.write({"y": 1})
    assert shards.finish() | {"bytes": 0} == {"records": 19, "shards": 2, "kept_shards": 1, "bad_records": 0, "bytes": 0}
    assert len(hr.open(tmp_path / "set")) == 19


def test_records_are_saved_as_webdataset_reads_them(tmp_path):
    images = [jpeg(number) for number in range(9)]
    data = hr.from_function(lambda number: {"image": images[number], "label": number % 3, "place": np.arange(3) * number}, 9)
    hr.save_records(data, tmp_path / "out.tar", format="webdataset")
    with tarfile.open(tmp_path / "out.tar") as tar:
        assert tar.getnames()[:4] == ["000000000.jpg", "000000000.cls", "000000000.place.npy", "000000001.jpg"]
        assert tar.extractfile("000000004.jpg").read() == images[4]
        assert tar.extractfile("000000004.cls").read() == b"1"
        assert np.load(io.BytesIO(tar.extractfile("000000004.place.npy").read())).tolist() == [0, 4, 8]


def test_how_a_path_was_read_is_said_once(tmp_path, capsys):
    for i, name in enumerate(["train/cat/0.jpg", "train/dog/1.jpg", "val/cat/2.jpg", "train/.thumbnails/0.jpg"]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(jpeg(i))
    data = hr.open(tmp_path)
    assert hr.open(tmp_path).reading == data.reading == (
        f"{tmp_path}: images in folders; train split: train/ (val: val/); class: folder 2 from the top; 2 classes: cat, dog; "
        "1 file left out: 1 in hidden folders, .thumbnails/")
    assert capsys.readouterr().err == f"headrace: reading {data.reading}\n"


@pytest.mark.parametrize("test, said", [("val", ["train split: train/ (val: val/)", "test split: val/ (train: train/)"]), ("", ["class: folder 1"])],
                         ids=["a test split", "none"])
def test_a_training_says_how_its_test_split_was_read(test, said, command, tmp_path):
    for i in range(16):
        for split in filter(None, ["train" if test else ".", test]):
            path = tmp_path / split / f"{'cat' if i % 2 else 'dog'}/{i}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(jpeg(i))
    run = subprocess.run([command, "train", "--data", tmp_path, "--epochs", "1", "--image-size", "16"], text=True, capture_output=True)
    assert run.returncode == 0, run.stderr
    lines = [line for line in run.stderr.splitlines() if "reading" in line]
    assert len(lines) == len(said) and all(part in line for part, line in zip(said, lines)), lines


@pytest.mark.parametrize("columns, reading", [
    ({"x": [1.0, 2.0], "label": ["b", "a"], "note": ["p", "q"]},
     "x from x, label from label; 2 classes: a, b; left out of each record: note (text)"),
    ({"photo": [jpeg(0), jpeg(1)], "class": [3, 4], "label": [0, 1]},
     "image from photo, label from label; labels: integers; left out of each record: class (int64)"),
    ({"x": [1.0, 2.0], "y": [3, 4]}, "x from x, y from y; no labels"),
], ids=["text", "image", "numbers"])
def test_how_a_table_was_read_is_said(columns, reading, capsys):
    pa = pytest.importorskip("pyarrow")
    for name, given in (("table", pa.table(columns)), ("stream", lambda: pa.table(columns))):
        if callable(given) and "note" in columns:
            continue  # a stream has no classes of texts
        data = hr.from_arrow(given, name=f"{name} of {len(reading)}")
        assert capsys.readouterr().err == f"headrace: reading {data.reading}\n"
        if name == "table":
            assert data.reading == f"{name} of {len(reading)}: {reading}"
