# peers: keras numpy scikit-learn
# package: headrace
"""Metrics, weighted losses, layers and activations of the trainer against Keras's and scikit-learn's on the same numbers."""

import os

os.environ["KERAS_BACKEND"] = "numpy"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import sklearn.metrics as sk  # noqa: E402

import headrace as hr  # noqa: E402
import peers  # noqa: E402
from headrace import train  # noqa: E402

rng = np.random.default_rng(7)
COUNT, CLASSES = 501, 5
STRATEGY = train.Strategy("cpu:2", announce=False)


def softmax(logits):
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def identity(width, ending=None):
    """A model whose results are its inputs, or an activation of them."""
    model = STRATEGY.build(lambda g: g.dense(g.input("x", (width,)), width, bias=False, activation=ending, name="out"))
    model.write_variable("out/weights", np.eye(width, dtype=np.float32))
    return model


def evaluated(results, labels, loss, metrics=(), weights=None, ending=None, weighted=()):
    model = identity(results.shape[1], ending)
    fields = {"x": results, "label": labels}
    if weights is not None:
        fields["weight"] = weights
    model.compile(loss=loss, metrics=metrics, sample_weight=None if weights is None else "weight",
                  weighted_metrics=weighted)
    return model.evaluate(hr.from_arrays(fields).batch(64))


def close(checks, what, ours, theirs, tolerance=1e-5):
    difference = np.max(np.abs(np.asarray(ours, np.float64) - np.asarray(theirs, np.float64)))
    checks.expect(what, difference <= tolerance, f"{what}: {ours} differs from {theirs} by {difference}")


def two_classes(checks):
    logits = rng.normal(size=(COUNT, 1)).astype(np.float32)
    labels = (logits[:, 0] + rng.normal(size=COUNT) > 0.3).astype(np.int64)
    p = 1 / (1 + np.exp(-logits[:, 0]))
    for ending in (None, "sigmoid"):
        ours = evaluated(logits, labels, train.binary_crossentropy(from_logits=ending is None),
                         ["precision", "recall", "f1_score", "auc", "pr_auc"], ending=ending)
        for name, theirs in (("precision", keras.metrics.Precision()), ("recall", keras.metrics.Recall()),
                             ("auc", keras.metrics.AUC()), ("pr_auc", keras.metrics.AUC(curve="PR"))):
            theirs.update_state(labels, p)
            close(checks, "two classes: Keras", ours[name], theirs.result())
        close(checks, "two classes: scikit-learn", ours["f1_score"], sk.f1_score(labels, p > 0.5))
        close(checks, "two classes: scikit-learn", ours["auc"], sk.roc_auc_score(labels, p), 2e-3)


def several_classes(checks):
    logits = rng.normal(size=(COUNT, CLASSES)).astype(np.float32)
    labels = np.where(rng.random(COUNT) < 0.5, logits.argmax(1), rng.integers(0, CLASSES, COUNT)).astype(np.int64)
    for average in ("macro", "micro", "weighted", "none"):
        theirs = sk.precision_recall_fscore_support(labels, logits.argmax(1), zero_division=0,
                                                    average=None if average == "none" else average)
        metrics = [train.precision(average=average), train.recall(average=average), train.f1_score(average=average)]
        ours = evaluated(logits, labels, train.sparse_categorical_crossentropy(), metrics)
        for name, values in zip(("precision", "recall", "f1_score"), theirs):
            close(checks, "classes: scikit-learn", ours[name], values)
        if average in ("macro", "weighted"):
            area = sk.roc_auc_score(labels, softmax(logits), multi_class="ovr", average=average)
            ours = evaluated(logits, labels, train.sparse_categorical_crossentropy(), [train.auc(average=average)])
            close(checks, "classes: areas", ours["auc"], area, 3e-3)
    one_hot = np.eye(CLASSES, dtype=np.float32)[labels]
    area = keras.metrics.AUC(multi_label=True, num_labels=CLASSES)
    precision = keras.metrics.Precision(thresholds=0.3)
    for metric in (area, precision):
        metric.update_state(one_hot, softmax(logits))
    ours = evaluated(logits, one_hot, train.categorical_crossentropy(),
                     [train.auc(), train.precision(average="micro", threshold=0.3)])
    close(checks, "classes: Keras", ours["auc"], area.result())
    close(checks, "classes: Keras", ours["precision"], precision.result())


def weights(checks):
    logits = rng.normal(size=(COUNT, CLASSES)).astype(np.float32)
    labels = rng.integers(0, CLASSES, COUNT)
    given = (3 * rng.random(COUNT)).astype(np.float32)
    shares = softmax(rng.normal(size=(COUNT, CLASSES))).astype(np.float32)
    signs = np.sign(rng.normal(size=(COUNT, CLASSES))).astype(np.float32)
    losses = keras.losses
    for ours, theirs, targets in (
            (train.sparse_categorical_crossentropy(), losses.SparseCategoricalCrossentropy(from_logits=True), labels),
            (train.categorical_crossentropy(), losses.CategoricalCrossentropy(from_logits=True), shares),
            (train.binary_crossentropy(), losses.BinaryCrossentropy(from_logits=True), shares),
            (train.mean_squared_error(), losses.MeanSquaredError(), shares),
            (train.mean_absolute_error(), losses.MeanAbsoluteError(), shares),
            (train.huber(), losses.Huber(), 2 * shares), (train.hinge(), losses.Hinge(), signs)):
        for weight in (None, given):
            seen = evaluated(logits, targets, ours, (), weight)
            close(checks, "losses", seen["loss"], theirs(targets, logits, sample_weight=weight))
    seen = evaluated(logits, shares, train.kl_divergence(), (), given, "softmax")
    close(checks, "losses", seen["loss"], losses.KLDivergence()(shares, softmax(logits), sample_weight=given))
    seen = evaluated(logits, labels, train.sparse_categorical_crossentropy(), (), given, weighted=["accuracy"])
    accuracy = keras.metrics.SparseCategoricalAccuracy()
    accuracy.update_state(labels, logits, sample_weight=given)
    close(checks, "weighted accuracy", seen["weighted_accuracy"], accuracy.result())


def layers(checks):
    x = (4 * rng.normal(size=(COUNT, CLASSES))).astype(np.float32)
    data = hr.from_arrays({"x": x}).batch(64)
    for name in ("relu", "gelu", "silu", "sigmoid", "tanh", "leaky_relu", "elu", "softplus", "softmax", "linear"):
        ours = identity(CLASSES, name).predict(data).values
        theirs = keras.activations.gelu(x, approximate=False) if name == "gelu" else keras.activations.get(name)(x)
        close(checks, "activations", ours, theirs)
    model = STRATEGY.build(lambda g: g.layer_norm(g.input("x", (CLASSES,)), name="norm"))
    layer = keras.layers.LayerNormalization()
    layer.build((None, CLASSES))
    variables = rng.normal(size=(2, CLASSES)).astype(np.float32)
    layer.set_weights(list(variables))
    model.write_variable("norm/gamma", variables[0])
    model.write_variable("norm/beta", variables[1])
    close(checks, "layer_norm", model.predict(data).values, layer(x))
    table = rng.normal(size=(1000, 7)).astype(np.float32)
    ids = rng.integers(0, 1000, (COUNT, 3))
    model = STRATEGY.build(lambda g: g.embedding(g.input("ids", (3,)), 1000, 7, name="words"))
    model.write_variable("words/vectors", table)
    close(checks, "embedding", model.predict(hr.from_arrays({"ids": ids}).batch(64)).values, table[ids], 0)


def main():
    checks = peers.Checks()
    for topic in (two_classes, several_classes, weights, layers):
        topic(checks)
    checks.finish()


main()
