# peers: nvidia-dali-cuda130 numpy pillow
# package: headrace
"""DALI's rows of bindings/python/MIGRATION.md, its operators for the CPU: pixels and order, run on both sides."""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from nvidia.dali import fn, pipeline_def, types

import headrace as hr
import peers
from migration import MEAN, STD, all_equal, centred, jpegs, levels_apart, offsets, rows, write_classes

IMAGES, SIDE = 40, 256
checks = peers.Checks()


def run(define, count):
    """What a pipeline gives for the first `count` samples, a tuple each."""
    pipeline = pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=7)(define)()
    pipeline.build()
    found = []
    while len(found) < count:
        found += zip(*[[np.array(output.at(i)) for i in range(len(output))] for output in pipeline.run()])
    return found[:count]


def images_of(folder, change=lambda image: image, **options):
    """The images of a folder, decoded and changed, each with its label."""
    def define():
        encoded, label = fn.readers.file(file_root=str(folder))
        return change(fn.decoders.image(encoded, device="cpu", output_type=types.RGB, **options)), label

    found = run(define, IMAGES)
    return [image for image, _ in found], [int(label.item()) for _, label in found]


def decoding(folder, plan):
    theirs, labels = images_of(folder)
    cut = plan.map(hr.center_crop(SIDE))
    checks.expect("readers.file: labels and their order", [int(label) for label in rows(cut, "label")] == labels)
    checks.expect("decoders.image", all_equal(rows(cut), [centred(image, SIDE) for image in theirs]))
    fast, _ = images_of(folder, use_fast_idct=True)
    mean, most, _ = levels_apart(rows(cut), [centred(image, SIDE) for image in fast])
    checks.expect("decoders.image(use_fast_idct=True) is another", 0.3 < mean < 2, (mean, most))


def resizing(folder, plan):
    ours = rows(plan.map(hr.resize(SIDE), hr.center_crop(SIDE)))
    theirs, _ = images_of(folder, lambda image: fn.resize(image, resize_shorter=SIDE))
    originals, _ = images_of(folder)
    for image, small in zip(originals, theirs):
        longer, shorter = max(image.shape[:2]), min(image.shape[:2])
        checks.expect("resize_shorter rounds the longer side", max(small.shape[:2]) in
                      (longer * SIDE // shorter, longer * SIDE // shorter + 1), (image.shape, small.shape))
    mean, _, equal = levels_apart(ours, [centred(image, SIDE) for image in theirs])
    checks.expect("resize_shorter: other pixels", 0.1 < mean < 3 and equal < 0.9, (mean, equal))

    def to_our_size():
        encoded, label = fn.readers.file(file_root=str(folder))
        extents = fn.peek_image_shape(encoded)[:2]
        size = fn.cast(SIDE * extents // fn.reductions.min(extents), dtype=types.FLOAT)
        return fn.resize(fn.decoders.image(encoded, device="cpu", output_type=types.RGB), size=size), label

    mean, _, equal = levels_apart(ours, [centred(image, SIDE) for image, _ in run(to_our_size, IMAGES)])
    checks.expect("resize(size=) to the size that ours has: nearly all pixels equal", mean < 0.05 and equal > 0.95,
                  (mean, equal))


def normalizing(folder, plan):
    for mirror in (0, 1):
        def change(image, mirror=mirror):
            return fn.crop_mirror_normalize(image, dtype=types.FLOAT, output_layout="CHW", crop=(224, 224), mirror=mirror,
                                            mean=[255 * m for m in MEAN], std=[255 * s for s in STD])

        theirs, _ = images_of(folder, change)
        flip = [hr.flip(1.0)] if mirror else []
        ours = rows(plan.map(hr.center_crop(224), *flip, hr.normalize(MEAN, STD), hr.to_layout("channels_first")))
        sizes = [image.shape[:2] for image in images_of(folder)[0]]
        for size, a, b in zip(sizes, ours, theirs, strict=True):
            # Half a pixel beside the crop: up there, to the even number here.
            same_corner = all((extent - 224) % 4 != 1 for extent in size)
            apart = np.abs(a - b).max()
            checks.expect(f"crop_mirror_normalize(mirror={mirror})", (apart < 2e-6) == same_corner, (size, apart))


def cropping():
    image = np.random.default_rng(1).integers(0, 256, (32, 32, 3), dtype=np.uint8)

    def define():
        given = fn.external_source(lambda: [image] * 8, layout="HWC")
        padded = fn.slice(given, start=[-4, -4], shape=[40, 40], axis_names="HW", out_of_bounds_policy="pad",
                          fill_values=0)
        return fn.crop(padded, crop=(32, 32), crop_pos_x=fn.random.uniform(range=(0, 1)),
                       crop_pos_y=fn.random.uniform(range=(0, 1)))

    crops = 8000
    theirs = offsets(image, 4, [crop for crop, in run(define, crops)])
    plan = hr.from_arrays({"image": np.broadcast_to(image, (crops, *image.shape)).copy()})
    ours = offsets(image, 4, rows(plan.map(hr.pad_crop(32, 4))))
    checks.expect("pad and crop: the same windows", set(theirs) == set(ours) == {(y, x) for y in range(9) for x in range(9)})
    for name, found, edge in (("theirs draws the outer offsets half as often", theirs, 0.5), ("ours all alike", ours, 1.0)):
        drawn = Counter(y for y, _ in found)
        inner = sum(drawn[y] for y in range(1, 8)) / 7
        checks.expect(f"pad and crop: {name}", all(abs(drawn[y] / inner - edge) < 0.15 for y in (0, 8)), drawn)


def labels(plan, folder):
    def define():
        _, label = fn.readers.file(file_root=str(folder))
        return fn.one_hot(label, num_classes=4), fn.cast(label, dtype=types.FLOAT)

    theirs = run(define, IMAGES)
    small = plan.map(hr.center_crop(8))
    checks.expect("one_hot", all_equal(rows(small.map(hr.one_hot(4)), "label"), [np.ravel(one) for one, _ in theirs]))
    image = plan.map(hr.center_crop(SIDE), hr.cast("float32"))
    checks.expect("cast", all_equal(rows(image), [centred(one, SIDE) for one in
                                                  images_of(folder, lambda x: fn.cast(x, dtype=types.FLOAT))[0]]))


def orders(files):
    def order(count, **options):
        def define():
            return fn.readers.file(files=[str(file) for file in files], labels=list(range(IMAGES)), **options)[1]

        return [int(label.item()) for label, in run(define, count)]

    every = list(range(IMAGES))
    drawn = order(2 * IMAGES, random_shuffle=True, initial_fill=4)
    first, second = drawn[:IMAGES], drawn[IMAGES:]
    lead = max(first.index(record) - place for place, record in enumerate(second))
    away = max(abs(record - place) for place, record in enumerate(first))
    checks.expect("random_shuffle: the list of files is shuffled first", sorted(first) == every and away > 8, first)
    checks.expect("random_shuffle: each epoch then draws from a buffer", sorted(second) == every and lead < 16, second)
    drawn = order(2 * IMAGES, shuffle_after_epoch=True)
    checks.expect("shuffle_after_epoch", all(sorted(one) == every for one in (drawn[:IMAGES], drawn[IMAGES:]))
                  and drawn[:IMAGES] != drawn[IMAGES:], drawn)
    parts = [order(13, shard_id=shard, num_shards=3) for shard in range(3)]
    checks.expect("shard_id: contiguous parts", all(part == [*range(part[0], part[0] + 13)] for part in parts), parts)


def main():
    encoded = jpegs(IMAGES)
    with tempfile.TemporaryDirectory() as scratch:
        files = write_classes(Path(scratch), encoded)
        plan = hr.open(scratch).decode()
        decoding(scratch, plan)
        resizing(scratch, plan)
        normalizing(scratch, plan)
        labels(plan, scratch)
        orders(files)
    cropping()
    checks.finish()


if __name__ == "__main__":
    main()
