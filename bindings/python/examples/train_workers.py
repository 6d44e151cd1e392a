#!/usr/bin/env python3
"""One program for one device, several devices and several workers.

    python train_workers.py --devices cpu:8
    torchrun --nproc-per-node 2 train_workers.py    # or mpirun -n 2 python ..., srun, Kubernetes, TF_CONFIG

As many replicas give the same weights, whatever the number of workers that they are spread over. Takes Fashion-MNIST of
Debian's package dataset-fashion-mnist, or --data. Needs no framework.
"""
import argparse

import headrace as hr
from headrace import train


def net(g):
    x = g.dense(g.flatten(g.input("image")), 128, activation="relu")
    return g.dense(g.dropout(x, 0.2), 10)


def main():
    arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    arg.add_argument("--devices", default="auto", help="of each worker; auto divides a host's GPUs among its workers")
    arg.add_argument("--records", type=int, default=12000)
    arg.add_argument("--epochs", type=int, default=2)
    arg.add_argument("--checkpoints", metavar="FOLDER", help="the chief's; a training that is in it goes on")
    opt = arg.parse_args()

    workers = hr.open_world()  # waits for the others; None for a process that runs alone
    strategy = train.Strategy(opt.devices, workers=workers)  # the chief prints it

    data = hr.open(opt.data).take(opt.records).shuffle(7).batch(64)
    test = hr.open(opt.data, "test").take(2000).batch(500)
    model = strategy.build(net, data=data, seed=1)
    model.compile(optimizer=train.adam(1e-3))
    model.fit(data, epochs=opt.epochs, validation=test, verbose=2, checkpoints=opt.checkpoints,
              resume=opt.checkpoints is not None)
    result = model.evaluate(test)  # of all workers' shares, the same on each
    if strategy.is_chief:
        print(f"test - loss: {result['loss']:.4f} - accuracy: {result['accuracy']:.4f}")
        print(f"weights {model.weights_sha256()}")


if __name__ == "__main__":
    try:
        main()
    except hr.HeadraceError as error:
        raise SystemExit(str(error)) from None
