"""Fashion-MNIST with a custom training loop, after TensorFlow's "custom training with tf.distribute.Strategy".

Takes Fashion-MNIST of Debian's package dataset-fashion-mnist, or --data. Needs no framework.
"""
import argparse

import headrace as hr
from headrace import train


def create_model(g):
    x = g.conv(g.input("image", (28, 28, 1)), 32, activation="relu")
    x = g.conv(g.max_pool(x, 2), 64, activation="relu")
    x = g.dense(g.flatten(g.max_pool(x, 2)), 64, activation="relu")
    return g.dense(x, 10)


def main(opt):
    strategy = train.Strategy(opt.devices)

    # Data: every global batch is divided among the replicas.
    train_data = hr.open(opt.data).take(opt.records).shuffle().batch(64)
    test_data = hr.open(opt.data, "test").batch(64)
    train_dist = strategy.distribute(train_data, epochs=opt.epochs)
    test_dist = strategy.distribute(test_data, epochs=opt.epochs)

    # The model, mirrored on every replica, the loss and the optimizer.
    model = strategy.build(create_model)
    model.compile(train.adam(1e-3), train.sparse_categorical_crossentropy(), metrics=["accuracy"])
    trainer, evaluator = train.Trainer(model, train_dist), train.Evaluator(model, test_dist)

    def train_step(batches):
        passed = trainer.forward(batches)
        losses = strategy.run(lambda replica: train.compute_average_loss(
            passed.example_losses(replica.index), passed.global_examples))
        trainer.backward()
        trainer.all_reduce()
        trainer.apply_gradients()
        return strategy.reduce("sum", losses)

    for epoch in range(opt.epochs):
        loss = sum(train_step(batches) for batches in train_dist) / len(train_dist)
        for batches in test_dist:
            evaluator.evaluate_step(batches)
        trained, tested = trainer.finish(), evaluator.finish()
        print(f"Epoch {epoch + 1}, Loss: {loss:.4f}, Accuracy: {100 * trained['accuracy']:.2f}, "
              f"Test Loss: {tested['loss']:.4f}, Test Accuracy: {100 * tested['accuracy']:.2f}", flush=True)
        trainer.reset_metrics()
        evaluator.reset_metrics()
    print("weights", model.weights_sha256())


if __name__ == "__main__":
    arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    arg.add_argument("--devices", default="auto")
    arg.add_argument("--records", type=int, default=60000)
    arg.add_argument("--epochs", type=int, default=4)
    try:
        main(arg.parse_args())
    except hr.HeadraceError as error:
        raise SystemExit(str(error)) from None
