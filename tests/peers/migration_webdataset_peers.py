# peers: webdataset numpy pillow torch
# package: headrace
"""WebDataset's rows of bindings/python/MIGRATION.md: pixels and order, run on both sides."""

import itertools
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np

os.environ.setdefault("WDS_VERBOSE_CACHE", "0")
warnings.simplefilter("ignore")
import webdataset as wds  # noqa: E402

import headrace as hr  # noqa: E402
import peers  # noqa: E402
from migration import all_equal, centred, jpegs, rows, start  # noqa: E402

IMAGES, SIDE = 36, 256
checks = peers.Checks()


def write_shards(folder, encoded):
    with wds.ShardWriter(str(folder / "train-%03d.tar"), maxcount=12, verbose=0) as sink:
        for i, data in enumerate(encoded):
            sink.write({"__key__": f"{i:04}", "jpg": data, "cls": i % 7})
    return sorted(map(str, folder.glob("*.tar")))


def dataset(shards, **options):
    return wds.WebDataset(shards, shardshuffle=False, **options)


def pixels(folder, shards):
    plan = hr.open(folder).decode().map(hr.center_crop(SIDE))
    ours, labels = rows(plan), rows(plan, "label")
    for kind in ("pil", "rgb8"):
        theirs = [*dataset(shards).decode(kind).to_tuple("jpg;png", "cls")]
        checks.expect(f'decode("{kind}")', all_equal(ours, [centred(np.asarray(image), SIDE) for image, _ in theirs]))
        checks.expect("to_tuple()", [int(label) for label in labels] == [label for _, label in theirs])
    unit = plan.map(hr.normalize([0], [1]))
    theirs = [centred(image, SIDE) for image, in dataset(shards).decode("rgb").to_tuple("jpg")]
    compare_unit("rgb", rows(unit), theirs)
    theirs = [in_the_middle(image.numpy()) for image, in dataset(shards).decode("torchrgb").to_tuple("jpg")]
    compare_unit("torchrgb", rows(unit.map(hr.to_layout("channels_first"))), theirs)


def in_the_middle(image):
    top, left = (start(extent - SIDE) for extent in image.shape[1:])
    return image[:, top:top + SIDE, left:left + SIDE]


def compare_unit(kind, ours, theirs):
    apart = max(np.abs(a - b).max() for a, b in zip(ours, theirs, strict=True))
    checks.expect(f'decode("{kind}"): float32, within a unit in the last place',
                  apart <= 2 ** -23 and theirs[0].dtype == np.float32, apart)


def labels_of(plan):
    return [batch["label"].numpy().tolist() for batch in hr.Loader(plan)]


def orders(folder, shards):
    plan = hr.open(folder).decode().map(hr.center_crop(8))
    even = [label for label, in dataset(shards).decode().select(lambda sample: sample["cls"] % 2 == 0).to_tuple("cls")]
    checks.expect("select()", sum(labels_of(plan.filter(lambda sample: sample["label"] % 2 == 0).batch(8)), []) == even)
    for partial in (False, True):
        batches = dataset(shards).decode().to_tuple("cls").batched(8, partial=partial)
        checks.expect(f"batched(partial={partial})",
                      labels_of(plan.batch(8, drop_remainder=not partial)) == [np.ravel(one).tolist() for one, in batches])
    drawn = [sample["__key__"] for sample in dataset(shards).shuffle(4, initial=4)]
    lead = max(int(key) - place for place, key in enumerate(drawn))
    checks.expect("shuffle(): theirs draws from a buffer",
                  sorted(drawn) == [f"{i:04}" for i in range(IMAGES)] and lead <= 4, drawn)
    resampled = wds.WebDataset(shards, resampled=True)
    times = [sample["__key__"] for sample in itertools.islice(resampled, 20 * IMAGES)]
    checks.expect("resampled: theirs with replacement", len({times.count(key) for key in set(times)}) > 1)
    loader = hr.Loader(plan.shuffle(1).batch(IMAGES), epochs=None)
    seen = [sorted(loader.next().records.tolist()) for _ in range(3)]
    checks.expect("resampled: ours without", seen == [[*range(IMAGES)]] * 3)


def shares(folder, shards):
    plan = hr.open(folder)
    given, ours, files = [], [], []
    for rank in range(2):
        os.environ.update(RANK=str(rank), WORLD_SIZE="2")
        given.append([sample["__key__"] for sample in dataset(shards, nodesplitter=wds.split_by_node)])
        del os.environ["RANK"], os.environ["WORLD_SIZE"]
        share = hr.Loader(plan.decode().map(hr.center_crop(8)).batch(10), world=(2, rank))
        ours.append([batch.records.tolist() for batch in share])
        files.append(len(plan.shard_for_worker(2, rank, by="file")))
    checks.expect("split_by_node: theirs by archives", [len(keys) for keys in given] == [24, 12], given)
    checks.expect('shard_for_worker(by="file")', files == [24, 12], files)
    checks.expect("world: none has more batches than another", len(ours[0]) == len(ours[1]) == 4)
    checks.expect("world: every record once", sorted(sum(ours[0] + ours[1], [])) == [*range(IMAGES)])


def bad_images(folder, encoded):
    spoilt = [*encoded[:3], encoded[3][:len(encoded[3]) // 2], *encoded[4:8]]
    shards = write_shards(folder, spoilt)
    decoded = dataset(shards).decode("rgb8", handler=wds.ignore_and_continue).to_tuple("__key__")
    loader = hr.Loader(hr.open(shards[0]).decode().map(hr.center_crop(SIDE)).batch(4), on_error="skip", max_bad_share=0.5)
    checks.expect("warn_and_continue", [record for batch in loader for record in batch.records.tolist()]
                  == [int(key) for key, in decoded] == [0, 1, 2, 4, 5, 6, 7])


def main():
    encoded = jpegs(IMAGES)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "shards"
        (Path(scratch) / "bad").mkdir()
        folder.mkdir()
        shards = write_shards(folder, encoded)
        pixels(folder, shards)
        orders(folder, shards)
        shares(folder, shards)
        bad_images(Path(scratch) / "bad", encoded)
    checks.finish()


if __name__ == "__main__":
    main()
