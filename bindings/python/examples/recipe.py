#!/usr/bin/env python3
"""A recipe as a function: data, net, schedule and optimizer in one place, for any devices and workers.

Takes Fashion-MNIST of Debian's package dataset-fashion-mnist, or --data. Needs no framework.
"""
import argparse

import numpy as np

import headrace as hr
from headrace import train


def lion(update, beta1=0.9, beta2=0.99, weight_decay=0.1):
    """An update rule that this library does not have (Chen et al. 2023)."""
    momentum, gradients = update.state["momentum"], update.gradients
    direction = np.sign(beta1 * momentum + (1 - beta1) * gradients)
    update.parameters -= update.learning_rate * (direction + weight_decay * update.parameters)
    momentum *= beta2
    momentum += (1 - beta2) * gradients


def fashion_lion(strategy, path, epochs=3, batch=128, records=12000, seed=7):
    """Trains a small net with dilated convolutions; returns the model and its history."""
    data = hr.open(path).take(records).shuffle(seed).map(hr.flip()).batch(batch)
    test = hr.open(path, "test").take(2000).batch(500)
    net = train.Sequential([
        train.layer("conv", 16, kernel=3, stride=2, activation="relu"),
        train.layer("conv", 16, kernel=3, dilation=2, activation="relu"),
        train.layer("conv", 16, kernel=3, dilation=4, activation="relu"),
        train.layer("max_pool", 2),
        train.layer("flatten"),
        train.layer("dropout", 0.2),
        train.layer("dense", 10),
    ])
    steps = epochs * len(data)
    optimizer = train.custom_optimizer(lion, train.cosine_decay(2e-3, steps, warmup_steps=steps // 10), state=["momentum"])
    model = strategy.build(net, data=data, seed=seed)
    model.compile(optimizer, train.sparse_categorical_crossentropy(), metrics=["accuracy"])
    return model, model.fit(data, epochs=epochs, validation=test)


def main():
    arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    arg.add_argument("--devices", default="cpu:2")
    arg.add_argument("--epochs", type=int, default=3)
    arg.add_argument("--records", type=int, default=12000)
    opt = arg.parse_args()
    _, history = fashion_lion(train.Strategy(opt.devices), opt.data, opt.epochs, records=opt.records)
    if history["val_accuracy"][-1] < 0.65:
        raise SystemExit("the net does not learn")


if __name__ == "__main__":
    try:
        main()
    except hr.HeadraceError as error:
        raise SystemExit(str(error)) from None
