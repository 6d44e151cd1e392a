"""Sources: columns of tables, images that all measure the same, caches of what has no identity."""

import io

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
    data = hr.open(table, label_column="rooms").decode().map(hr.resize((20, 7))).batch(8)
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
