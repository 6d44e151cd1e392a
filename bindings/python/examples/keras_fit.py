#!/usr/bin/env python3
"""Keras 3 model.fit() on a Headrace plan, on whichever backend Keras has (KERAS_BACKEND=tensorflow, jax or torch).

Takes Fashion-MNIST of Debian's package dataset-fashion-mnist, or --data.
"""
# needs: keras tensorflow-cpu
import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras

import headrace as hr
from headrace.keras import PyDataset


def main():
    arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    arg.add_argument("--epochs", type=int, default=2)
    arg.add_argument("--records", type=int, default=12000)
    opt = arg.parse_args()
    keras.utils.set_random_seed(0)

    normal = hr.normalize([0.2860], [0.3530])
    train = hr.open(opt.data).take(opt.records).shuffle(7).map(hr.pad_crop(28, 2), hr.flip(), normal).batch(128)
    test = hr.open(opt.data, "test").take(2000).map(normal).batch(500)

    model = keras.Sequential([keras.Input((28, 28, 1)), keras.layers.Conv2D(16, 3, activation="relu"),
                              keras.layers.MaxPooling2D(), keras.layers.Flatten(), keras.layers.Dense(10)])
    model.compile(optimizer=keras.optimizers.Adam(2e-3), metrics=["accuracy"],
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(PyDataset(train, seed=1), epochs=opt.epochs, validation_data=PyDataset(test), verbose=2)
    accuracy = model.evaluate(PyDataset(test), return_dict=True, verbose=0)["accuracy"]
    predicted = model.predict(PyDataset(test, y=None), verbose=0)
    print(f"backend {keras.backend.backend()}: accuracy {accuracy:.3f}, {len(predicted)} predictions")
    if not history.history["loss"][-1] < history.history["loss"][0] or accuracy < 0.6:
        raise SystemExit("the net does not learn")
    if len(predicted) != 2000 or abs(history.history["val_accuracy"][-1] - accuracy) > 1e-6:
        raise SystemExit("an evaluation did not see each record once")


if __name__ == "__main__":
    try:
        main()
    except hr.HeadraceError as error:
        raise SystemExit(str(error)) from None
