"""What the topics of bindings/python/MIGRATION.md share: pictures as files, and Headrace's side as plain arrays."""

import io

import numpy as np
from PIL import Image

import headrace as hr

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def picture(rng, height, width):
    """Smooth enough for a JPEG, with edges and some noise."""
    coarse = rng.integers(0, 256, (height // 24 + 2, width // 24 + 2, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.BICUBIC), np.int16)
    noise = rng.integers(-12, 13, smooth.shape)
    stripes = 40 * ((np.arange(width) // 17) % 2)[None, :, None]
    return np.clip(smooth + noise + stripes - 20, 0, 255).astype(np.uint8)


def jpeg(pixels, subsampling=2, quality=90):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=quality, subsampling=subsampling)
    return out.getvalue()


def jpegs(count, seed=3, low=260, high=520):
    """Of many sizes, with and without chroma subsampling."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(low, high, (count, 2))
    return [jpeg(picture(rng, *size), subsampling=i % 3) for i, size in enumerate(sizes)]


def by_pillow(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def write_classes(folder, encoded, classes=4):
    """Image i in the folder of class i % classes; the paths in the order of the records, which is that of their names."""
    for i, data in enumerate(encoded):
        (folder / f"class{i % classes}").mkdir(exist_ok=True)
        (folder / f"class{i % classes}" / f"{i:03}.jpg").write_bytes(data)
    return sorted(folder.glob("*/*.jpg"))


def rows(plan, field="image", **options):
    """A field of all records of an epoch, one array each."""
    return [row for batch in hr.Loader(plan.batch(1), **options) for row in batch[field].numpy().copy()]


def numbers(*bounds):
    return hr.from_arrays({"x": np.arange(*bounds)})


def values(plan, **options):
    return [int(value) for value in rows(plan, "x", **options)]


def start(beside):
    """Where Headrace's centred crop begins that leaves so many pixels out: half a pixel goes to the even number."""
    return (beside + (beside & 3 == 3)) // 2


def centred(pixels, size):
    top, left = (start(extent - size) for extent in pixels.shape[:2])
    return pixels[top:top + size, left:left + size]


def levels_apart(ours, theirs):
    """The mean, the largest and the share of equal ones, over all images."""
    apart = [np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)) for a, b in zip(ours, theirs, strict=True)]
    return np.mean([a.mean() for a in apart]), max(a.max() for a in apart), np.mean([(a == 0).mean() for a in apart])


def all_equal(ours, theirs):
    return len(ours) == len(theirs) and all(np.array_equal(a, b) for a, b in zip(ours, theirs))


def offsets(image, pad, crops):
    """The corner of each crop in the padded image; None where it is none of its windows."""
    padded = np.pad(image, ((pad, pad), (pad, pad), (0, 0)))
    height, width = image.shape[:2]
    corners = {padded[y:y + height, x:x + width].tobytes(): (y, x)
               for y in range(2 * pad + 1) for x in range(2 * pad + 1)}
    return [corners.get(np.ascontiguousarray(crop).tobytes()) for crop in crops]
