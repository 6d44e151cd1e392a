#!/usr/bin/env python3
"""The same PyTorch loop fed by Headrace and by torch.utils.data.DataLoader, on the same images: both rates.

    python pytorch_cifar10.py --data cifar10.tar.zst --workers 2

`--data`: an archive or folder of 32x32 colour JPEGs or PNGs in class folders (train/cat/1.jpg); without it
Fashion-MNIST of Debian's package dataset-fashion-mnist. First each side only delivers batches, then it trains for
some steps.
"""
# needs: torch torchvision pillow numpy
import argparse
import gzip
import io
import itertools
import os
import pathlib
import subprocess
import tarfile
import time

import numpy as np
import torch
import torch.utils.data
from torch import nn

import headrace as hr
from headrace.torch import DataLoader

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
FASHION_MEAN, FASHION_STD = (0.2860,), (0.3530,)


def headraces(opt):
    """The lines that a program needs."""
    if opt.data:
        images = hr.open(opt.data).decode(height=32, width=32)
        operations = hr.pad_crop(32, 4), hr.flip(), hr.normalize(CIFAR_MEAN, CIFAR_STD)
    else:
        images = hr.open(FASHION)
        operations = hr.pad_crop(28, 2), hr.flip(), hr.normalize(FASHION_MEAN, FASHION_STD)
    data = images.map(*operations, hr.to_layout("channels_first"))
    return DataLoader(data, batch_size=opt.batch, shuffle=True, num_workers=opt.workers, drop_last=True,
                      fields=("image", "label"))


class Encoded(torch.utils.data.Dataset):
    """What the archive holds, for PyTorch: each image's bytes in memory, decoded and transformed in the workers."""

    def __init__(self, data):
        from torchvision.transforms import v2
        files = sorted(members(data))
        classes = sorted({name.split("/")[-2] for name, _ in files})
        self.labels = [classes.index(name.split("/")[-2]) for name, _ in files]
        self.images = [content for _, content in files]
        self.transform = v2.Compose([v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip(),
                                     v2.ToDtype(torch.float32, scale=True), v2.Normalize(CIFAR_MEAN, CIFAR_STD)])

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        from PIL import Image
        with Image.open(io.BytesIO(self.images[index])) as image:
            pixels = torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)
        return self.transform(pixels), self.labels[index]


def members(data):
    """(path, bytes) of the train split's images, of a tar, a compressed tar or a folder."""
    if os.path.isdir(data):
        for path in pathlib.Path(data).rglob("*"):
            if is_train(str(path)):
                yield str(path), path.read_bytes()
        return
    packed = str(data).endswith(".zst")
    unpack = subprocess.Popen(["zstd", "-dcq", data], stdout=subprocess.PIPE) if packed else None
    with tarfile.open(fileobj=unpack.stdout, mode="r|") if packed else tarfile.open(data) as archive:
        for member in archive:
            if member.isfile() and is_train(member.name):
                yield member.name, archive.extractfile(member).read()
    if unpack is not None and unpack.wait() != 0:
        raise SystemExit(f"zstd could not unpack {data}")


def is_train(name):
    test = {"test", "testing", "val", "valid", "validation"} & set(name.lower().split("/"))
    return name.lower().endswith((".jpg", ".jpeg", ".png")) and not test


class Fashion(torch.utils.data.Dataset):
    def __init__(self):
        from torchvision.transforms import v2
        with gzip.open(FASHION / "train-images-idx3-ubyte.gz") as file:
            pixels = np.frombuffer(file.read(), np.uint8, offset=16)
            self.images = torch.from_numpy(pixels.reshape(-1, 1, 28, 28).copy())
        with gzip.open(FASHION / "train-labels-idx1-ubyte.gz") as file:
            self.labels = np.frombuffer(file.read(), np.uint8, offset=8).astype(np.int64)
        self.transform = v2.Compose([v2.RandomCrop(28, padding=2), v2.RandomHorizontalFlip(),
                                     v2.ToDtype(torch.float32, scale=True), v2.Normalize(FASHION_MEAN, FASHION_STD)])

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.transform(self.images[index]), int(self.labels[index])


def pytorchs(opt):
    data = Encoded(opt.data) if opt.data else Fashion()
    return torch.utils.data.DataLoader(data, batch_size=opt.batch, shuffle=True, num_workers=opt.workers,
                                       drop_last=True, persistent_workers=opt.workers > 0,
                                       worker_init_fn=lambda _: torch.set_num_threads(1))


def net(channels):
    def block(c_in, c_out):
        return [nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*block(channels, 16), *block(16, 32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def endless(loader):
    while True:
        yield from loader


def input_rate(batches, opt):
    """Images a second that come out, after a warm-up."""
    for _, _ in itertools.islice(batches, 4):
        pass
    count, start = 0, time.perf_counter()
    while (seconds := time.perf_counter() - start) < opt.seconds:
        images, _ = next(batches)
        count += len(images)
    return count / seconds


def train(batches, opt):
    """Losses of the first and the last steps, and images a second."""
    torch.manual_seed(0)
    losses, model = [], None
    start = time.perf_counter()
    for images, labels in itertools.islice(batches, opt.steps):
        if model is None:
            model = net(images.shape[1])
            optimizer = torch.optim.Adam(model.parameters(), 3e-3)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    few = max(1, len(losses) // 5)
    return np.mean(losses[:few]), np.mean(losses[-few:]), opt.steps * opt.batch / (time.perf_counter() - start)


def report(name, make, opt):
    batches = endless(make(opt))
    rate = input_rate(batches, opt)
    first, last, trained = train(batches, opt)
    print(f"{name}: input {rate:,.0f} images/s; training {trained:,.0f} images/s, loss {first:.3f} -> {last:.3f}",
          flush=True)
    if not last < first:
        raise SystemExit(f"{name}: the net does not learn")
    return rate


def main():
    arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--data", help="images in class folders; without it Fashion-MNIST")
    arg.add_argument("--workers", type=int, default=2, help="threads of Headrace, worker processes of PyTorch")
    arg.add_argument("--batch", type=int, default=256)
    arg.add_argument("--steps", type=int, default=60)
    arg.add_argument("--seconds", type=float, default=5, help="of the measurement of each side")
    arg.add_argument("--min-ratio", type=float, default=0, help="fail where Headrace is not so many times faster")
    opt = arg.parse_args()
    ours, theirs = (report(*side, opt) for side in (("Headrace", headraces), ("DataLoader", pytorchs)))
    print(f"Headrace / DataLoader: {ours / theirs:.2f}, {opt.workers} threads against {opt.workers} workers")
    if ours < opt.min_ratio * theirs:
        raise SystemExit(f"less than {opt.min_ratio}")


if __name__ == "__main__":
    try:
        main()
    except hr.HeadraceError as error:
        raise SystemExit(str(error)) from None
