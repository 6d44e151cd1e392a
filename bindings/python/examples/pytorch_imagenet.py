#!/usr/bin/env python3
"""PyTorch's ImageNet example (examples/imagenet/main.py), its options and steps, with Headrace in the place of PyTorch.

    headrace/examples/pytorch_imagenet.py --data imagenet                       train with the settings of the example
    headrace/examples/pytorch_imagenet.py --data imagenet --resume              go on from the newest checkpoint
    headrace/examples/pytorch_imagenet.py --data imagenet --evaluate FILE       evaluate a model
    torchrun --nproc-per-node 8 headrace/examples/pytorch_imagenet.py --data imagenet

Takes a folder or archive with train and val parts. Needs no framework.
"""
import argparse
from pathlib import Path

import headrace as hr
from headrace import train

NORMALIZE = hr.normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("-a", "--arch", default="resnet18_imagenet", choices=train.net_names())
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("-b", "--batch-size", type=int, default=256, help="of all devices together")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--wd", type=float, default=1e-4)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--devices", default="auto")
    parser.add_argument("--checkpoints", type=Path, default="checkpoints")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("-e", "--evaluate", type=Path, metavar="FILE")
    args = parser.parse_args()

    # Data loading code
    train_images, val_images = hr.open(args.data), hr.open(args.data, "test")
    train_loader = (train_images.shuffle().decode()
                    .map(hr.random_resized_crop(args.size), hr.flip(), NORMALIZE).batch(args.batch_size))
    val_loader = val_images.decode().map(hr.resize(args.size * 256 // 224), hr.center_crop(args.size), NORMALIZE).batch(args.batch_size)

    strategy = train.Strategy(args.devices, workers=hr.open_world())
    if args.evaluate:
        return report(train.restore_model(strategy, args.evaluate).evaluate(val_loader))

    print(f"=> creating model '{args.arch}'")
    model = strategy.build(lambda g: g.net(args.arch, classes=len(train_images.classes)), data=train_loader)

    # define loss function (criterion), optimizer, and learning rate scheduler: decayed by 10 every 30 epochs
    steps = len(train_loader)
    rate = train.piecewise([args.lr, args.lr / 10, args.lr / 100], [30 * steps, 60 * steps])
    top_5 = min(5, len(train_images.classes))
    model.compile(train.sgd(rate, momentum=args.momentum, weight_decay=args.wd), train.sparse_categorical_crossentropy(),
                  metrics=["accuracy", f"top_{top_5}"])

    # train, evaluate on the validation set, remember best acc@1 and save checkpoints
    model.fit(train_loader, epochs=args.epochs, validation=val_loader, resume=args.resume,
              checkpoints=train.Checkpoints(args.checkpoints, best="val_accuracy"))
    report(model.evaluate(val_loader))


def report(result):
    print(" * " + " ".join(f"{name} {100 * value:.3f}" for name, value in result.items() if name in ("accuracy", "top_5")))


if __name__ == "__main__":
    try:
        main()
    except hr.HeadraceError as error:
        raise SystemExit(str(error)) from None
