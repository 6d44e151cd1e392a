#!/usr/bin/env python3
"""Workload mnist-mlp in Keras on TensorFlow: model.fit on arrays, as its documents do, XLA optional.

One JSON object an epoch: epoch, seconds (training and validation), val_accuracy.
"""
import argparse
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import tensorflow as tf

import idx


class Clock(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        print(json.dumps({"epoch": epoch + 1, "seconds": time.perf_counter() - self.start, "loss": logs["loss"],
                          "val_accuracy": logs["val_accuracy"], "version": tf.__version__}), flush=True)


def main():
    arg = argparse.ArgumentParser()
    arg.add_argument("--data", required=True)
    arg.add_argument("--epochs", type=int, default=3)
    arg.add_argument("--threads", type=int, default=0)
    arg.add_argument("--batch", type=int, default=32)
    arg.add_argument("--xla", action="store_true")
    arg.add_argument("--steps-per-execution", type=int, default=1)
    opt = arg.parse_args()
    if opt.threads:
        tf.config.threading.set_intra_op_parallelism_threads(opt.threads)
        tf.config.threading.set_inter_op_parallelism_threads(opt.threads)
    images, labels, _, _ = idx.mnist(opt.data)
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((784,)), keras.layers.Dense(256, "relu"), keras.layers.Dense(256, "relu"),
                              keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"],
                  jit_compile=opt.xla, steps_per_execution=opt.steps_per_execution)
    model.fit(images[:50000], labels[:50000], opt.batch, opt.epochs, verbose=0, callbacks=[Clock()],
              validation_data=(images[50000:], labels[50000:]), validation_batch_size=500)


main()
