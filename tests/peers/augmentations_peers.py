# peers: torchvision torch numpy pillow albumentations opencv-python-headless
# package: headrace
"""Image operations with fixed parameters, and Pillow's, torchvision.transforms.v2's and Albumentations' on the same."""

import albumentations
import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms.v2 import functional

import headrace as hr
import peers
from migration import levels_apart, picture

COUNT, HEIGHT, WIDTH = 24, 67, 90
checks = peers.Checks()


def make_images():
    rng = np.random.default_rng(5)
    smooth = [picture(rng, HEIGHT, WIDTH) for _ in range(COUNT // 2)]
    dull = [(image // 3 + 60).astype(np.uint8) for image in smooth[:4]]
    noise = rng.integers(0, 256, (COUNT - len(smooth) - len(dull), HEIGHT, WIDTH, 3), dtype=np.uint8)
    return np.stack([*smooth, *dull, *noise])


IMAGES = make_images()


def ours(chain, images=IMAGES):
    return next(iter(hr.from_arrays({"image": images}).map(chain).batch(len(images))))["image"].numpy()


def tensor(image):
    return tv_tensors.Image(torch.from_numpy(image).permute(2, 0, 1))


def array(image):
    return image.permute(1, 2, 0).numpy()


def expect_close(name, chain, theirs, most=1, equal=0.0, inside=None):
    """`most` levels apart, with a share of equal ones; `inside` says where to look."""
    actual, expected = ours(chain), [np.asarray(theirs(image)) for image in IMAGES]
    if inside is not None:
        actual, expected = [image[inside] for image in actual], [image[inside] for image in expected]
    mean, largest, same = levels_apart(actual, expected)
    checks.expect(f"{name}: at most {most} apart, {equal:.0%} equal", largest <= most and same >= equal,
                  f"{mean:.3f} on average, {largest:g} at most, {same:.2%} equal")


def expect_equal(name, chain, theirs):
    expect_close(name, chain, theirs, most=0, equal=1)


def with_pillow(function):
    return lambda image: np.asarray(function(Image.fromarray(image)))


def with_torchvision(function, **options):
    return lambda image: array(function(tensor(image), **options))


# Levels.
grey = [with_pillow(lambda image: image.convert("L").convert("RGB")), with_torchvision(v2.Grayscale(3))]
expect_equal("grayscale, Pillow", hr.grayscale(), grey[0])
expect_close("grayscale, torchvision", hr.grayscale(), grey[1])
expect_equal("invert", hr.invert(1), with_pillow(ImageOps.invert))
expect_equal("invert, torchvision", hr.invert(1), with_torchvision(v2.RandomInvert(1)))
for bits in (1, 4, 8):
    expect_equal(f"posterize {bits}", hr.posterize(bits, probability=1), with_pillow(lambda image: ImageOps.posterize(image, bits)))
    expect_equal(f"posterize {bits}, torchvision", hr.posterize(bits, probability=1), with_torchvision(v2.RandomPosterize(bits, p=1)))
for threshold in (0, 100, 255):
    expect_equal(f"solarize {threshold}", hr.solarize(threshold, probability=1),
                 with_pillow(lambda image: ImageOps.solarize(image, threshold)))
    expect_equal(f"solarize {threshold}, torchvision", hr.solarize(threshold, probability=1),
                 with_torchvision(v2.RandomSolarize(threshold, p=1)))
expect_equal("autocontrast", hr.autocontrast(1), with_pillow(ImageOps.autocontrast))
expect_close("autocontrast, torchvision", hr.autocontrast(1), with_torchvision(v2.RandomAutocontrast(1)), equal=0.9)
expect_equal("equalize", hr.equalize(1), with_pillow(ImageOps.equalize))
expect_equal("equalize, torchvision", hr.equalize(1), with_torchvision(v2.RandomEqualize(1)))
for factor in (0.0, 0.4, 1.0, 1.9):
    expect_equal(f"sharpness {factor}", hr.adjust_sharpness(factor, probability=1),
                 with_pillow(lambda image: ImageEnhance.Sharpness(image).enhance(factor)))
    expect_close(f"sharpness {factor}, torchvision", hr.adjust_sharpness(factor, probability=1),
                 with_torchvision(v2.RandomAdjustSharpness(factor, p=1)), equal=0.9)
for size, sigma in ((3, 0.5), (5, 1.1), (23, 2.0), (23, 9.0)):
    expect_close(f"blur {size}, {sigma}", hr.gaussian_blur(size, sigma=sigma), with_torchvision(v2.GaussianBlur(size, (sigma, sigma))),
                 equal=0.8)

# Places. Pixels next to the fill are blended with it here; torchvision gives the fill the square of its share.
HOW = {"nearest": InterpolationMode.NEAREST, "bilinear": InterpolationMode.BILINEAR}
AFFINE = {"turned": {"degrees": 25}, "scaled": {"scale": 1.37}, "sheared": {"shear": (20, -8)},
          "all": {"degrees": -40, "scale": 0.7, "shear": (12, 5)}}


def affine_chain(parts, how, fill):
    """Of one value each. Moves are always drawn."""
    shear = parts.get("shear", (0, 0))
    degrees, scale = parts.get("degrees", 0), parts.get("scale", 1)
    return hr.random_affine((degrees, degrees), scale=(scale, scale), shear=(shear[0], shear[0], shear[1], shear[1]),
                            interpolation=how, fill=fill)


def affine_theirs(parts, how, fill):
    return lambda image: array(functional.affine(tensor(image), angle=parts.get("degrees", 0), translate=[0, 0],
                                                 scale=parts.get("scale", 1), shear=list(parts.get("shear", (0, 0))),
                                                 interpolation=HOW[how], fill=fill))


def away_from_fill(parts):
    """Where the fill has no share."""
    white = np.full((HEIGHT, WIDTH, 3), 255, np.uint8)
    return affine_theirs(parts, "bilinear", [0, 0, 0])(white)[..., 0] == 255


def share_of_equal(actual, expected):
    return np.mean([(a == b).all(-1).mean() for a, b in zip(actual, expected)])


for name, parts in AFFINE.items():
    fill = [200, 7, 90]
    nearest = share_of_equal(ours(affine_chain(parts, "nearest", fill)), [affine_theirs(parts, "nearest", fill)(image) for image in IMAGES])
    # Their places are in float32: where one falls between two pixels it may take the other.
    checks.expect(f"{name}: 99.9 % of the nearest pixels are equal", nearest >= 0.999, f"{nearest:.3%}")
    expect_close(f"{name}, bilinear", affine_chain(parts, "bilinear", fill), affine_theirs(parts, "bilinear", fill), equal=0.9,
                 inside=away_from_fill(parts))

for degrees in (10, 57, -33):
    for how in HOW:
        chain = hr.random_rotation((degrees, degrees), interpolation=how, fill=5)
        theirs = with_torchvision(lambda image: functional.rotate(image, degrees, interpolation=HOW[how], fill=[5, 5, 5]))
        if how == "nearest":
            nearest = share_of_equal(ours(chain), [theirs(image) for image in IMAGES])
            checks.expect(f"rotation by {degrees}: 99.9 % of the nearest pixels are equal", nearest >= 0.999, f"{nearest:.3%}")
        else:
            expect_close(f"rotation by {degrees}, bilinear", chain, theirs, equal=0.9,
                         inside=away_from_fill({"degrees": -degrees}))

expect_equal("vertical flip", hr.vertical_flip(1), with_torchvision(v2.RandomVerticalFlip(1)))


def cv2_affine(image, degrees, scale):
    """Albumentations by way of OpenCV: borders blend with the fill, as here."""
    return albumentations.Affine(rotate=(-degrees, -degrees), scale=(scale, scale), interpolation=1, fill=30, p=1, fit_output=False,
                                 keep_ratio=True)(image=image)["image"]


for degrees, scale in ((20, 1.0), (-70, 0.8)):
    # OpenCV rounds places to a 32nd of a pixel.
    mean, _, _ = levels_apart(ours(hr.random_affine((degrees, degrees), scale=(scale, scale), interpolation="bilinear", fill=30))[:12],
                              [cv2_affine(image, degrees, scale) for image in IMAGES[:12]])
    checks.expect(f"Albumentations' Affine by {degrees}, {scale}: 3 levels apart on average", mean <= 3, mean)


# Masks and boxes.
def moved_along(chain):
    rng = np.random.default_rng(3)
    masks = rng.integers(0, 21, (COUNT, HEIGHT, WIDTH, 1), dtype=np.uint8)
    corners = np.sort(rng.uniform(0, 1, (COUNT, 4, 2, 2)), axis=2) * [WIDTH, HEIGHT]
    boxes = corners.reshape(COUNT, 4, 4).astype(np.float32)
    data = hr.from_arrays({"image": IMAGES, "mask": masks, "boxes": boxes})
    moved = next(iter(data.map(chain.along(masks=["mask"], boxes=["boxes"])).batch(COUNT))).numpy()
    return masks, boxes, moved


def compare_along(name, chain, transform):
    masks, boxes, moved = moved_along(chain)
    left = (moved["boxes"][..., 2] > moved["boxes"][..., 0]) & (moved["boxes"][..., 3] > moved["boxes"][..., 1])
    same, apart = [], 0.0
    for i in range(COUNT):
        sample = {"mask": tv_tensors.Mask(torch.from_numpy(masks[i]).permute(2, 0, 1)),
                  "boxes": tv_tensors.BoundingBoxes(torch.from_numpy(boxes[i]), format="XYXY", canvas_size=(HEIGHT, WIDTH))}
        theirs = {key: transform(value) for key, value in sample.items()}
        same.append((moved["mask"][i] == theirs["mask"].permute(1, 2, 0).numpy()).mean())
        apart = max(apart, np.abs(moved["boxes"][i] - theirs["boxes"].numpy())[left[i]].max(initial=0))
    checks.expect(f"{name}: 99.9 % of the masks are equal", np.mean(same) >= 0.999, f"{np.mean(same):.3%}")
    checks.expect(f"{name}: their boxes within 1e-3 pixels", apart <= 1e-3, apart)


compare_along("vertical flip along", hr.vertical_flip(1), v2.RandomVerticalFlip(1))
compare_along("rotation along", hr.random_rotation((33, 33)), lambda value: functional.rotate(value, 33))
compare_along("affine along", hr.random_affine((-20, -20), scale=(0.8, 0.8), shear=(10, 10, 4, 4)),
              lambda value: functional.affine(value, -20, [0, 0], 0.8, [10, 4]))


def compare_albumentations(name, chain, transform):
    masks, boxes, moved = moved_along(chain)
    pipeline = albumentations.Compose([transform], bbox_params=albumentations.BboxParams("pascal_voc", label_fields=[]))
    same, apart = [], 0.0
    for i in range(COUNT):
        theirs = pipeline(image=IMAGES[i], mask=masks[i], bboxes=boxes[i])
        shown = [box for box in moved["boxes"][i] if box[2] > box[0] and box[3] > box[1]]
        same.append((moved["mask"][i] == theirs["mask"].reshape(moved["mask"][i].shape)).mean())
        if len(shown) != len(theirs["bboxes"]):
            apart = np.inf
        elif shown:
            apart = max(apart, np.abs(np.asarray(theirs["bboxes"]) - shown).max())
    checks.expect(f"Albumentations, {name}: the masks are equal", np.mean(same) == 1, np.mean(same))
    checks.expect(f"Albumentations, {name}: their boxes within 1e-3 pixels", apart <= 1e-3, apart)


compare_albumentations("flip", hr.flip(1), albumentations.HorizontalFlip(p=1))
compare_albumentations("vertical flip", hr.vertical_flip(1), albumentations.VerticalFlip(p=1))
compare_albumentations("centre crop", hr.center_crop(46), albumentations.CenterCrop(46, 46))


# RandAugment: each image is one that torchvision can make of it, and all of them are drawn.
def one_of(image, kind, amount):
    """What torchvision's RandAugment does. In float32 a threshold may be above the level that it is, a move below its pixel."""
    if kind == "Solarize":
        amount = round(amount * 510) / 510 - 1e-5
    if kind.startswith("Translate"):
        amount += np.copysign(1e-4, amount)
    transform = v2.RandAugment(num_ops=1)
    value = tensor(image)
    changed = transform._apply_image_or_video_transform(value, kind, amount, InterpolationMode.NEAREST, {type(value): [9.0, 9.0, 9.0]})
    return array(changed)


def candidates(image, transform, bins, indices):
    for kind, (magnitudes, signed) in transform._AUGMENTATION_SPACE.items():
        values = magnitudes(bins, *image.shape[:2])
        for index in indices if values is not None else [0]:
            value = 0.0 if values is None else float(values[index])
            for amount in {value, -value} if signed else {value}:
                yield kind, one_of(image, kind, amount)


def expect_drawn(name, chain, transform, indices):
    image = np.ascontiguousarray(IMAGES[0][:66, :66])  # square: a quarter turn meets the middles of its pixels
    draws = ours(chain, np.repeat(image[None], 400, 0))
    known = list(candidates(image, transform, 31, indices))
    seen, unknown = {}, 0
    for drawn in draws:
        # A pixel between two others may be the other; a level that they cut off twice may be two apart.
        kinds = [kind for kind, made in known
                 if (np.abs(drawn.astype(int) - made) <= 2).all(-1).mean() > 0.975]
        unknown += not kinds
        for kind in set(kinds[:1]):
            seen[kind] = seen.get(kind, 0) + 1
    checks.expect(f"{name}: all are torchvision's", unknown == 0, f"{unknown} of {len(draws)} are not")
    checks.expect(f"{name}: all 14 are drawn", len(seen) >= 13, seen)


expect_drawn("rand_augment", hr.rand_augment(1, 9, fill=9), v2.RandAugment(), [9])
expect_drawn("trivial_augment_wide", hr.trivial_augment_wide(fill=9), v2.TrivialAugmentWide(), range(31))


# Erasing: as many, of the same areas.
def erased_shares(images):
    return np.array([(image == 0).all(-1).mean() for image in images])


white = np.full((2000, 40, 50, 3), 255, np.uint8)
mine = erased_shares(ours(hr.random_erasing(0.5, area=(0.1, 0.4)), white))
torch.manual_seed(1)
erasing = v2.RandomErasing(0.5, (0.1, 0.4))
other = erased_shares([array(erasing(tensor(image))) for image in white])
checks.expect("random_erasing: as many", abs((mine > 0).mean() - (other > 0).mean()) < 0.05, ((mine > 0).mean(), (other > 0).mean()))
apart = abs(mine[mine > 0].mean() - other[other > 0].mean())
checks.expect("random_erasing: the same mean area", apart < 0.01, apart)

# tf.image.per_image_standardization, in float64.
numbers = IMAGES.reshape(COUNT, -1).astype(np.float64)
deviation = np.maximum(numbers.std(1), 1 / np.sqrt(numbers.shape[1]))
expected = ((numbers - numbers.mean(1)[:, None]) / deviation[:, None]).reshape(IMAGES.shape)
apart = np.abs(ours(hr.per_image_standardization()) - expected).max()
checks.expect("per_image_standardization within 1e-5", apart < 1e-5, apart)
checks.finish()
