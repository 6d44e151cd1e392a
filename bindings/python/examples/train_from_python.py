#!/usr/bin/env python3
"""Headrace's own trainer from Python: a net as a function, fit, a history to plot, and a checkpoint to go on from.

Takes Fashion-MNIST of Debian's package dataset-fashion-mnist, or --data. Needs no framework.
"""
import argparse
import tempfile

import headrace as hr
from headrace import train


def net(g):
    x = g.conv(g.input("image"), 16, kernel=3, activation="relu")
    x = g.max_pool(x, 2)
    x = g.dense(g.flatten(x), 64, activation="relu")
    return g.dense(g.dropout(x, 0.2), 10)


def model_of(strategy, data, steps):
    model = strategy.build(net, data=data, seed=1)
    model.compile(optimizer=train.adam(train.cosine_decay(2e-3, steps, warmup_steps=20)), metrics=["accuracy", "top_3"])
    return model


def main():
    arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    arg.add_argument("--devices", default="cpu:2")
    arg.add_argument("--records", type=int, default=12000)
    arg.add_argument("--plot", metavar="FILE", help="the history as a picture, by matplotlib")
    opt = arg.parse_args()

    data = hr.open(opt.data).take(opt.records).shuffle(7).map(hr.flip()).batch(128)
    test = hr.open(opt.data, "test").take(2000).batch(500)
    strategy = train.Strategy(opt.devices)
    model = model_of(strategy, data, 3 * len(data))
    print(model.summary())

    def tell(report, control):
        print(f"epoch {report.epoch + 1}: {report.examples_per_second:,.0f} examples/s, val_loss {report.val_loss:.3f}")

    with tempfile.TemporaryDirectory() as folder:
        model.fit(data, epochs=2, validation=test, callbacks=[tell], verbose=0, checkpoints=folder)
        again = train.restore_or_create(strategy, folder, lambda: model_of(strategy, data, 3 * len(data)))
        history = again.fit(data, epochs=3, validation=test, callbacks=[tell], verbose=2, checkpoints=folder,
                            resume=True)
    print({name: [round(value, 4) for value in history[name]] for name in ("loss", "val_loss", "val_accuracy")})
    result = again.evaluate(test, views="mirrored")
    predictions = again.predict(test)
    print(f"accuracy {result['accuracy']:.3f}, top 3 {result['top_3']:.3f}, {predictions.values.shape} results")
    if opt.plot:
        plot(history, opt.plot)
    if history.epochs != 3 or not history["loss"][-1] < history["loss"][0] or result["accuracy"] < 0.7:
        raise SystemExit("the net does not learn")


def plot(history, file):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    for name in ("loss", "val_loss"):
        pyplot.plot(history[name], label=name)
    pyplot.xlabel("epoch")
    pyplot.legend()
    pyplot.savefig(file)


if __name__ == "__main__":
    try:
        main()
    except hr.HeadraceError as error:
        raise SystemExit(str(error)) from None
