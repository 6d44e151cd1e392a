#!/usr/bin/env python3
"""DALI's ResNet-50 input pipeline (its PyTorch example for ImageNet), function by function, with Headrace.

    headrace/examples/dali_resnet_pipeline.py --data imagenet --devices cuda:0,1

Takes a folder or archive with train and val parts, or of one split. Batches are in the devices' memory; a trainer takes
batch.torch(). Here they are counted. Needs no framework.
"""
import argparse
import time

import headrace as hr

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def create_dali_pipeline(data_dir, crop, size, batch_size, is_training=True):
    images = hr.open(data_dir, "train" if is_training else "test")  # fn.readers.file
    if is_training:
        images = images.shuffle()  # random_shuffle=True
        # fn.decoders.image_random_crop, which decodes no more than the crop, and fn.resize
        images = images.decode().map(hr.random_resized_crop(crop, area=(0.1, 1.0), ratio=(0.8, 1.25)), hr.flip())
    else:
        images = images.decode().map(hr.resize(size), hr.center_crop(crop))  # mode="not_smaller"
    # fn.crop_mirror_normalize(output_layout="CHW")
    return images.map(hr.normalize(IMAGENET_MEAN, IMAGENET_STD), hr.to_layout("channels_first")).batch(batch_size)


def run_epoch(name, loader):
    examples, began = 0, time.perf_counter()
    for batches in zip(*(loader.replica(i) for i in range(loader.replicas))):
        for batch in batches:  # one a device: images, labels = batch.torch()["image"], batch.torch()["label"]
            assert batch["image"].shape[1:] == (3, 224, 224)
            examples += batch.examples
    print(f"{name}: {examples} images, {examples / (time.perf_counter() - began):.0f} images/s")


def main():
    arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--data", required=True)
    arg.add_argument("--devices", default="cpu")
    arg.add_argument("--batch-size", type=int, default=64, help="of all devices together")
    arg.add_argument("--epochs", type=int, default=1)
    opt = arg.parse_args()
    training = create_dali_pipeline(opt.data, 224, 256, opt.batch_size)
    validation = create_dali_pipeline(opt.data, 224, 256, opt.batch_size, is_training=False)
    train_loader = hr.Loader(training, devices=opt.devices, epochs=opt.epochs, world="auto")  # shard_id, num_shards
    val_loader = hr.Loader(validation, devices=opt.devices, epochs=opt.epochs, world="auto")
    for epoch in range(opt.epochs):
        run_epoch(f"epoch {epoch + 1}, training", train_loader)
        run_epoch(f"epoch {epoch + 1}, validation", val_loader)


if __name__ == "__main__":
    try:
        main()
    except hr.HeadraceError as error:
        raise SystemExit(str(error)) from None
