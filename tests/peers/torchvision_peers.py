# peers: torchvision torch numpy pillow
# package: headrace
"""Masks and boxes that move with their image, and torchvision.transforms.v2 on the same."""

import numpy as np
import torch
from torchvision import tv_tensors
from torchvision.transforms import v2

import headrace as hr
import peers

IMAGES, HEIGHT, WIDTH = 60, 61, 94
checks = peers.Checks()


def make_data():
    rng = np.random.default_rng(3)
    images = rng.integers(0, 256, (IMAGES, HEIGHT, WIDTH, 3), dtype=np.uint8)
    masks = rng.integers(0, 21, (IMAGES, HEIGHT, WIDTH, 1), dtype=np.uint8)
    corners = np.sort(rng.uniform(0, 1, (IMAGES, 4, 2, 2)), axis=2) * [WIDTH, HEIGHT]
    return images, masks, corners.reshape(IMAGES, 4, 4).astype(np.float32)


def theirs(transform, image, mask, boxes):
    sample = {"image": tv_tensors.Image(torch.from_numpy(image).permute(2, 0, 1)),
              "mask": tv_tensors.Mask(torch.from_numpy(mask).permute(2, 0, 1)),
              "boxes": tv_tensors.BoundingBoxes(torch.from_numpy(boxes), format="XYXY", canvas_size=(HEIGHT, WIDTH))}
    moved = transform(sample)
    return moved["mask"].permute(1, 2, 0).numpy(), moved["boxes"].numpy()


def there(boxes):
    return (boxes[..., 2] > boxes[..., 0]) & (boxes[..., 3] > boxes[..., 1])


def compare(name, chain, transform):
    images, masks, boxes = make_data()
    data = hr.from_arrays({"image": images, "mask": masks, "boxes": boxes})
    moved = next(iter(data.map(chain.along(masks=["mask"], boxes=["boxes"])).batch(IMAGES))).numpy()
    expected = [theirs(transform, *sample) for sample in zip(images, masks, boxes)]
    same = np.mean([(ours == other[0]).mean() for ours, other in zip(moved["mask"], expected)])
    # Their index is a product with a float32, which where it should be whole may fall short of it.
    checks.expect(f"{name}: the masks are equal", same == 1, same)
    their_boxes = np.stack([other[1] for other in expected])
    left = there(moved["boxes"])
    checks.expect(f"{name}: the same boxes are left", (left == there(their_boxes)).all())
    apart = np.abs(moved["boxes"] - their_boxes)[left].max()
    checks.expect(f"{name}: their boxes within 1e-4 pixels", apart <= 1e-4, apart)
    checks.expect(f"{name}: what is lost is zeros", (moved["boxes"][~left] == 0).all())


compare("flip", hr.flip(1), v2.RandomHorizontalFlip(1))
compare("centre crop", hr.center_crop(48), v2.CenterCrop(48))
compare("resize to (30, 47)", hr.resize_to(30, 47), v2.Resize((30, 47)))
compare("resize to (100, 120)", hr.resize_to(100, 120), v2.Resize((100, 120)))
compare("shorter side to 32", hr.resize(32), v2.Resize(32))
compare("all of them", hr.resize(50) | hr.center_crop(44) | hr.flip(1),
        v2.Compose([v2.Resize(50), v2.CenterCrop(44), v2.RandomHorizontalFlip(1)]))
checks.finish()
