# peers: ffcv opencv-python torch numpy pillow
# package: headrace
"""FFCV's rows of bindings/python/MIGRATION.md: pixels and order, run on both sides. Compiling FFCV takes Debian's
pkg-config, libopencv-dev and libturbojpeg0-dev."""

import tempfile
import warnings
from collections import Counter
from pathlib import Path

import cv2
import numpy as np

warnings.simplefilter("ignore")
from ffcv.fields import IntField, RGBImageField  # noqa: E402
from ffcv.fields.decoders import CenterCropRGBImageDecoder, IntDecoder, SimpleRGBImageDecoder  # noqa: E402
from ffcv.loader import Loader, OrderOption  # noqa: E402
from ffcv.transforms import (Cutout, ImageMixup, NormalizeImage, RandomHorizontalFlip, RandomTranslate,  # noqa: E402
                             ToTensor, ToTorchImage)
from ffcv.writer import DatasetWriter  # noqa: E402

import headrace as hr  # noqa: E402
import peers  # noqa: E402
from migration import MEAN, STD, all_equal, levels_apart, offsets, picture, rows  # noqa: E402

IMAGES, QUALITY = 40, 90
checks = peers.Checks()


class Beton:
    """Images of one size in FFCV's file, as pixels or as JPEGs; the label is the number of the image."""

    def __init__(self, file, images, mode="raw"):
        self.file, self.images = str(file), images
        DatasetWriter(self.file, {"image": RGBImageField(write_mode=mode, jpeg_quality=QUALITY), "label": IntField()},
                      num_workers=1).from_indexed_dataset(self)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], index

    def loader(self, *transforms, decoder=None, order=OrderOption.SEQUENTIAL, batch=8, **options):
        return Loader(self.file, batch_size=batch, num_workers=1, order=order, seed=3,
                      pipelines={"image": [decoder or SimpleRGBImageDecoder(), *transforms], "label": [IntDecoder()]},
                      **options)

    def theirs(self, *transforms, epochs=1, **options):
        loader = self.loader(*transforms, **options)
        return [image.copy() for _ in range(epochs) for batch in loader for image in np.asarray(batch[0])]

    def plan(self):
        return hr.from_arrays({"image": np.stack(self.images)})


def numbers_of(loader):
    return [int(label) for batch in loader for label in np.ravel(np.asarray(batch[1]))]


def decoding(scratch, images):
    jpegs = [cv2.imencode(".jpg", image[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])[1].tobytes() for image in images]
    for i, data in enumerate(jpegs):
        (scratch / "jpegs" / f"class{i % 2}").mkdir(parents=True, exist_ok=True)
        (scratch / "jpegs" / f"class{i % 2}" / f"{i:03}.jpg").write_bytes(data)
    side = images[0].shape[0]
    ours = rows(hr.open(scratch / "jpegs").decode(height=side, width=side))
    theirs = Beton(scratch / "jpg.beton", images, "jpg").theirs()
    mean, most, _ = levels_apart(ours, theirs[::2] + theirs[1::2])
    checks.expect("SimpleRGBImageDecoder: about a level off", 0.4 < mean < 1.6, (mean, most))


def changes(raw):
    checks.expect("SimpleRGBImageDecoder of pixels", all_equal(raw.images, raw.theirs()))
    side = raw.images[0].shape[0]
    cut = int(224 / 256 * side)
    begin = (side - cut) // 2
    by_area = [cv2.resize(image[begin:begin + cut, begin:begin + cut], (96, 96), interpolation=cv2.INTER_AREA)
               for image in raw.images]
    theirs = raw.theirs(decoder=CenterCropRGBImageDecoder((96, 96), ratio=224 / 256))
    checks.expect("CenterCropRGBImageDecoder cuts, then resizes by area", all_equal(by_area, theirs))
    ours = rows(raw.plan().map(hr.resize(110), hr.center_crop(96)))
    mean, *_ = levels_apart(ours, theirs)
    checks.expect("CenterCropRGBImageDecoder: other pixels than resize() and center_crop()", mean > 0.3, mean)
    flipped = raw.theirs(RandomHorizontalFlip(1.0))
    checks.expect("RandomHorizontalFlip", all_equal(rows(raw.plan().map(hr.flip(1.0))), flipped))
    normal = raw.theirs(NormalizeImage(255 * np.array(MEAN), 255 * np.array(STD), np.float32))
    apart = levels_apart(rows(raw.plan().map(hr.normalize(MEAN, STD))), normal)[1]
    checks.expect("NormalizeImage: within 1e-6", apart < 1e-6, apart)
    first = raw.theirs(ToTensor(), ToTorchImage())
    checks.expect("ToTorchImage", all_equal(rows(raw.plan().map(hr.to_layout("channels_first"))), first))


def windows(small, grey):
    crops = small.theirs(RandomTranslate(padding=4), epochs=40)
    image, every = small.images[0], {(y, x) for y in range(9) for x in range(9)}
    plan = hr.from_arrays({"image": np.broadcast_to(image, (1600, *image.shape)).copy()})
    checks.expect("RandomTranslate: the windows of pad_crop()",
                  set(offsets(image, 4, crops)) == set(offsets(image, 4, rows(plan.map(hr.pad_crop(32, 4))))) == every)
    theirs = Counter(int((one[..., 0] == 0).sum()) for one in grey.theirs(Cutout(8), epochs=10))
    ours = Counter(int((one[..., 0] == 0).sum()) for one in rows(hr.from_arrays({"image": np.stack(grey.images * 10)})
                                                                 .map(hr.cutout(8))))
    checks.expect("Cutout: theirs lies within the image", set(theirs) == {64}, theirs)
    checks.expect("Cutout: ours is clipped at the border", max(ours) == 64 and len(ours) > 5, ours)


def mixing(scratch):
    """Image i is all of one level: what it was blended with can be told."""
    flat = Beton(scratch / "flat.beton", [np.full((8, 8, 3), 30 * i, np.uint8) for i in range(8)])
    first, second = (flat.theirs(ImageMixup(1.0, False), epochs=1) for _ in range(2))
    levels = [int(image[0, 0, 0]) for image in first]
    ends = [sorted((30 * i, 30 * ((i - 1) % 8))) for i in range(8)]
    checks.expect("ImageMixup: with the image before it",
                  all(low - 1 <= level <= high for level, (low, high) in zip(levels, ends)), levels)
    checks.expect("ImageMixup: the same shares for the same last image", all_equal(first, second))


def orders(small):
    every = list(range(IMAGES))
    for order in (OrderOption.RANDOM, OrderOption.QUASI_RANDOM):
        loader = small.loader(order=order, drop_last=False, os_cache=order == OrderOption.RANDOM)
        first, second = numbers_of(loader), numbers_of(loader)
        checks.expect(f"{order.name}: each epoch anew", sorted(first) == sorted(second) == every and first != second, first)
    checks.expect("SEQUENTIAL", numbers_of(small.loader()) == every)
    checks.expect("indices", numbers_of(small.loader(indices=[3, 5, 7, 9], batch=4)) == [3, 5, 7, 9])
    checks.expect("drop_last is the default", len(numbers_of(small.loader(batch=7))) == 35)


def main():
    rng = np.random.default_rng(5)
    images = [picture(rng, 128, 128) for _ in range(IMAGES)]
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        decoding(scratch, images)
        changes(Beton(scratch / "raw.beton", images))
        small = Beton(scratch / "small.beton", [picture(rng, 32, 32)] * IMAGES)
        windows(small, Beton(scratch / "grey.beton", [np.full((32, 32, 3), 200, np.uint8)] * IMAGES))
        mixing(scratch)
        orders(small)
    checks.finish()


if __name__ == "__main__":
    main()
