#!/usr/bin/env python3
"""PyTorch's tutorial "Training a classifier", its steps in its order, with Headrace's trainer in the place of PyTorch.

    headrace/examples/pytorch_classifier.py --data cifar10.tar.zst

Takes CIFAR-10 as the tutorial does, or any small images; without --data Debian's Fashion-MNIST. Needs no framework.
"""
import argparse

import headrace as hr
from headrace import train


class PrintLoss:
    """Prints the mean loss of the last mini-batches."""

    every_steps = 2000

    def __init__(self):
        self.steps, self.total = 0, 0.0  # of the epoch, when last printed

    def on_step(self, report, control):
        if report.step < self.steps:
            self.steps, self.total = 0, 0.0
        total = report.loss * report.step
        print(f"[{report.epoch + 1}, {report.step:5d}] loss: {(total - self.total) / (report.step - self.steps):.3f}")
        self.steps, self.total = report.step, total


def main():
    arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    arg.add_argument("--epochs", type=int, default=2)
    arg.add_argument("--records", type=int, default=60000, help="to train on")
    opt = arg.parse_args()

    # 1. Load and normalize the images
    def load(split):
        images = hr.open(opt.data, split)
        images = images if opt.data == arg.get_default("data") else images.decode()
        channels = images.fields["image"].shape[-1]
        return images.cache().map(hr.normalize([0.5] * channels, [0.5] * channels))

    batch_size = 4
    trainset, testset = load("train").take(opt.records), load("test")
    trainloader, testloader = trainset.shuffle().batch(batch_size), testset.batch(batch_size)
    classes = trainset.classes or [str(i) for i in range(10)]

    # 2. Define a convolutional neural network
    net = train.Strategy("auto").build(train.Sequential([
        train.layer("conv", 6, kernel=5, padding="valid", activation="relu"),
        train.layer("max_pool", 2),
        train.layer("conv", 16, kernel=5, padding="valid", activation="relu"),
        train.layer("max_pool", 2),
        train.layer("flatten"),
        train.layer("dense", 120, activation="relu"),
        train.layer("dense", 84, activation="relu"),
        train.layer("dense", len(classes)),
    ]), data=trainloader)

    # 3. Define a loss function and optimizer
    net.compile(train.sgd(0.001, momentum=0.9), train.sparse_categorical_crossentropy(),
                metrics=["accuracy", "confusion_matrix"])

    # 4. Train the network
    net.fit(trainloader, epochs=opt.epochs, verbose=0, callbacks=[PrintLoss()])
    print("Finished Training")
    net.save("cifar_net.safetensors")

    # 5. Test the network on the test data
    net = train.restore_model(train.Strategy("auto", announce=False), "cifar_net.safetensors")
    images = next(iter(hr.Loader(testloader, devices="cpu", epochs=1))).numpy()
    print("GroundTruth: ", " ".join(f"{classes[label]:5s}" for label in images["label"]))
    outputs = net.predict(testset.take(batch_size).batch(batch_size))
    print("Predicted:   ", " ".join(f"{classes[label]:5s}" for label in outputs.values.argmax(axis=1)))
    result = net.evaluate(testset.batch(256))
    print(f"Accuracy of the network on the {testset.records} test images: {100 * result['accuracy']:.0f} %")
    for name, row in zip(classes, result["confusion_matrix"]):
        if sum(row):
            print(f"Accuracy for class: {name:5s} is {100 * row[classes.index(name)] / sum(row):.1f} %")


if __name__ == "__main__":
    try:
        main()
    except hr.HeadraceError as error:
        raise SystemExit(str(error)) from None
