#!/usr/bin/env python3
"""Keras's guide "Distributed training with Keras", its steps in its order, with Headrace's trainer.

Takes Fashion-MNIST of Debian's package dataset-fashion-mnist, or --data. Needs no framework.
"""
import argparse
import tempfile
from pathlib import Path

import headrace as hr
from headrace import train

BATCH_SIZE_PER_REPLICA = 64


def decay(epoch):
    if epoch < 3:
        return 1e-3
    return 1e-4 if epoch < 7 else 1e-5


class PrintLR:
    def on_epoch_end(self, report, control):
        print(f"Learning rate for epoch {report.epoch + 1} is {report.learning_rates[0]:g}")


def main():
    arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    arg.add_argument("--devices", default="cpu:2")
    arg.add_argument("--epochs", type=int, default=12)
    arg.add_argument("--records", type=int, default=60000, help="to train on")
    opt = arg.parse_args()
    mnist_train, mnist_test = hr.open(opt.data).take(opt.records), hr.open(opt.data, "test")

    strategy = train.Strategy(opt.devices)
    batch_size = BATCH_SIZE_PER_REPLICA * strategy.world_replicas
    scale = hr.normalize([0], [1])
    train_dataset = mnist_train.map(scale).cache().shuffle(1).batch(batch_size)
    eval_dataset = mnist_test.map(scale).batch(batch_size)

    model = strategy.build(train.Sequential([
        train.layer("conv", 32, kernel=3, padding="valid", activation="relu"),
        train.layer("max_pool", 2),
        train.layer("flatten"),
        train.layer("dense", 64, activation="relu"),
        train.layer("dense", 10),
    ]), data=train_dataset)
    model.compile(loss=train.sparse_categorical_crossentropy(), optimizer=train.adam(1e-3), metrics=["accuracy"])

    with tempfile.TemporaryDirectory() as folder:
        checkpoints, logs, saved = (Path(folder, name) for name in ("training_checkpoints", "logs", "model.safetensors"))
        callbacks = [train.tensorboard(logs), train.learning_rate_scheduler(decay), PrintLR()]
        model.fit(train_dataset, epochs=opt.epochs, callbacks=callbacks, checkpoints=train.Checkpoints(checkpoints, keep=0))

        model.load_weights(train.newest_checkpoint(checkpoints))
        result = model.evaluate(eval_dataset)
        print(f"Eval loss: {result['loss']:.4f}, Eval accuracy: {result['accuracy']:.4f}")

        model.save(saved)
        replicated = train.restore_model(strategy, saved)
        alone = train.restore_model(train.Strategy("cpu", announce=False), saved)
        for name, restored in ("with the strategy", replicated), ("without it", alone):
            again = restored.evaluate(eval_dataset)
            print(f"Restored {name}: loss {again['loss']:.4f}, accuracy {again['accuracy']:.4f}")
            if abs(again["accuracy"] - result["accuracy"]) > 1e-3:
                raise SystemExit("the restored model is another one")
        if not any(logs.iterdir()):
            raise SystemExit("TensorBoard's log is empty")


if __name__ == "__main__":
    try:
        main()
    except hr.HeadraceError as error:
        raise SystemExit(str(error)) from None
