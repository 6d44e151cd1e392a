# peers: keras jax numpy scikit-learn
# package: headrace
"""Metrics, weighted losses, layers and activations of the trainer against Keras's and scikit-learn's on the same numbers:
their values and, of losses and layers, their gradients."""

import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
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


def slopes_of_loss(results, labels, loss, weights=None):
    """The gradient of the sum of losses by the results. Each example is a unit vector, so its results are a column of the
    weights, which one step of gradient descent at rate 1 changes by the gradient of the mean."""
    count, width = results.shape
    model = STRATEGY.build(lambda g: g.dense(g.input("x", (count,)), width, bias=False, name="out"))
    model.write_variable("out/weights", np.ascontiguousarray(results.T))
    fields = {"x": np.eye(count, dtype=np.float32), "label": labels}
    if weights is not None:
        fields["weight"] = weights
    model.compile(optimizer=train.sgd(1.0), loss=loss, metrics=[], sample_weight=None if weights is None else "weight")
    model.fit(hr.from_arrays(fields).batch(count), epochs=1, verbose=0)
    return count * (results - model.read_variable("out/weights").T)


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
            (train.cosine_similarity(), losses.CosineSimilarity(), signs),
            (train.huber(), losses.Huber(), 2 * shares), (train.hinge(), losses.Hinge(), signs)):
        for weight in (None, given):
            seen = evaluated(logits, targets, ours, (), weight)
            close(checks, "losses", seen["loss"], theirs(targets, logits, sample_weight=weight))
            slopes = jax.grad(lambda x: COUNT * theirs(targets, x, sample_weight=weight))(logits)
            # A weight of about 1 is stored to 6e-8, and the gradient is the difference of two, times the examples.
            close(checks, "slopes of losses", slopes_of_loss(logits, targets, ours, weight), slopes, COUNT * 3e-7)
    nothing = np.zeros((COUNT, CLASSES), np.float32)
    close(checks, "losses", evaluated(nothing, signs, train.cosine_similarity())["loss"],
          losses.CosineSimilarity()(signs, nothing))
    seen = evaluated(logits, shares, train.kl_divergence(), (), given, "softmax")
    close(checks, "losses", seen["loss"], losses.KLDivergence()(shares, softmax(logits), sample_weight=given))
    seen = evaluated(logits, labels, train.sparse_categorical_crossentropy(), (), given, weighted=["accuracy"])
    accuracy = keras.metrics.SparseCategoricalAccuracy()
    accuracy.update_state(labels, logits, sample_weight=given)
    close(checks, "weighted accuracy", seen["weighted_accuracy"], accuracy.result())


def compared(checks, what, x, ours, theirs, given=None, turned=None, tolerance=2e-5):
    """The layer that `ours` adds to a graph, and Keras's: what they give and, by one step of gradient descent, the gradients
    of all variables. Before them is a dense layer that begins as an identity, whose gradients say that of the layer's input,
    unless that is whole numbers. given: our variables' values; turned: what makes Keras's of them, by variable."""
    width, given, turned = x.shape[-1], dict(given or {}), {"first/weights": np.transpose, **(turned or {})}
    first = [keras.layers.Dense(width)] if x.dtype == np.float32 else []
    if first:
        given = {"first/weights": np.eye(width, dtype=np.float32), "first/bias": np.zeros(width, np.float32), **given}
    model = STRATEGY.build(lambda g: g.flatten(ours(
        g, g.dense(g.input("x", x.shape[1:]), width, name="first") if first else g.input("x", x.shape[1:]))))
    net = keras.Sequential([keras.Input(x.shape[1:]), *first, theirs, keras.layers.Flatten()])
    for name, values in given.items():
        model.write_variable(name, values)
    net.set_weights([turned.get(name, lambda a: a)(values) for name, values in given.items()])
    close(checks, what, model.predict(hr.from_arrays({"x": x}).batch(64)).values, net(x), tolerance)
    targets = rng.normal(size=net.output_shape[1:]).astype(np.float32) * np.ones((len(x), 1), np.float32)

    def loss(variables):
        seen, _ = net.stateless_call(variables, [v.value for v in net.non_trainable_variables], x)
        return jax.numpy.mean((seen - targets) ** 2)

    slopes = jax.grad(loss)([v.value for v in net.trainable_variables])
    rate = 100  # so that the steps are not small beside the values
    model.compile(optimizer=train.sgd(rate), loss=train.mean_squared_error(), metrics=[])
    model.fit(hr.from_arrays({"x": x, "label": targets}).batch(len(x)), epochs=1, verbose=0)
    for (name, before), slope in zip(given.items(), slopes, strict=True):
        seen = turned.get(name, lambda a: a)(before - model.read_variable(name)) / rate
        largest = float(np.max(np.abs(slope)))
        close(checks, f"slopes of {what}", seen, slope, 1e-4 * largest + 2e-7)


def layers(checks):
    x = (4 * rng.normal(size=(COUNT, CLASSES))).astype(np.float32)
    for name in ("relu", "gelu", "silu", "sigmoid", "tanh", "leaky_relu", "elu", "softplus", "softmax", "linear"):
        theirs = (lambda a: keras.activations.gelu(a, approximate=False)) if name == "gelu" else name
        compared(checks, "activations", x, lambda g, node, name=name: g.activation(node, name),
                 keras.layers.Activation(theirs))
    variables = rng.normal(size=(2, CLASSES)).astype(np.float32)
    compared(checks, "layer_norm", x, lambda g, node: g.layer_norm(node, name="norm"), keras.layers.LayerNormalization(),
             {"norm/gamma": variables[0], "norm/beta": variables[1]})
    table = rng.normal(size=(1000, 7)).astype(np.float32)
    ids = rng.integers(0, 1000, (COUNT, 3))
    compared(checks, "embedding", ids, lambda g, node: g.embedding(node, 1000, 7, name="words"),
             keras.layers.Embedding(1000, 7), {"words/vectors": table})


def drawn(*shape):
    return (0.3 * rng.normal(size=shape)).astype(np.float32)


def convolutions(checks):
    x = rng.normal(size=(40, 7, 6, 4)).astype(np.float32)
    kinds = keras.layers
    for kernel, stride, padding in ((3, 1, "same"), (3, 2, "same"), (4, 2, "same"), (3, 2, "valid"), (2, 3, "valid"),
                                    (5, 1, "valid"), (1, 2, "same")):
        options = {"kernel": kernel, "stride": stride, "padding": padding, "name": "conv"}
        compared(checks, "conv", x, lambda g, node: g.conv(node, 5, **options), kinds.Conv2D(5, kernel, stride, padding),
                 {"conv/weights": drawn(5, kernel, kernel, 4), "conv/bias": drawn(5)},
                 {"conv/weights": lambda a: a.transpose(1, 2, 3, 0)})
        compared(checks, "conv_transpose", x, lambda g, node: g.conv_transpose(node, 5, **options),
                 kinds.Conv2DTranspose(5, kernel, stride, padding),
                 {"conv/weights": drawn(4, kernel, kernel, 5), "conv/bias": drawn(5)},
                 {"conv/weights": lambda a: a.transpose(1, 2, 3, 0)})
        for multiplier in (1, 3):
            compared(checks, "depthwise_conv", x, lambda g, node: g.depthwise_conv(node, multiplier=multiplier, **options),
                     kinds.DepthwiseConv2D(kernel, stride, padding, depth_multiplier=multiplier),
                     {"conv/weights": drawn(4 * multiplier, kernel, kernel, 1), "conv/bias": drawn(4 * multiplier)},
                     {"conv/weights": lambda a: a.reshape(4, -1, kernel, kernel).transpose(2, 3, 0, 1)})
    # Keras refuses strides with dilations.
    for kernel, dilation, padding in ((3, 2, "same"), (2, 3, "same"), (3, 2, "valid"), (2, 2, "valid")):
        options = {"kernel": kernel, "dilation": dilation, "padding": padding, "name": "conv"}
        theirs = {"padding": padding, "dilation_rate": dilation}
        compared(checks, "dilated conv", x, lambda g, node: g.conv(node, 5, **options), kinds.Conv2D(5, kernel, **theirs),
                 {"conv/weights": drawn(5, kernel, kernel, 4), "conv/bias": drawn(5)},
                 {"conv/weights": lambda a: a.transpose(1, 2, 3, 0)})
        compared(checks, "dilated conv_transpose", x, lambda g, node: g.conv_transpose(node, 5, **options),
                 kinds.Conv2DTranspose(5, kernel, **theirs),
                 {"conv/weights": drawn(4, kernel, kernel, 5), "conv/bias": drawn(5)},
                 {"conv/weights": lambda a: a.transpose(1, 2, 3, 0)})
        compared(checks, "dilated depthwise_conv", x, lambda g, node: g.depthwise_conv(node, multiplier=2, **options),
                 kinds.DepthwiseConv2D(kernel, depth_multiplier=2, **theirs),
                 {"conv/weights": drawn(8, kernel, kernel, 1), "conv/bias": drawn(8)},
                 {"conv/weights": lambda a: a.reshape(4, -1, kernel, kernel).transpose(2, 3, 0, 1)})
    for kernel, stride, padding, beyond in ((3, 2, "same", 0), (3, 2, "same", 1), (4, 2, "same", 0), (4, 3, "same", 2),
                                            (1, 2, "same", 1), (3, 2, "valid", 1), (2, 3, "valid", 0)):
        options = {"kernel": kernel, "stride": stride, "padding": padding, "output_padding": beyond, "name": "conv"}
        compared(checks, "output padding", x, lambda g, node: g.conv_transpose(node, 5, **options),
                 kinds.Conv2DTranspose(5, kernel, stride, padding, output_padding=beyond),
                 {"conv/weights": drawn(4, kernel, kernel, 5), "conv/bias": drawn(5)},
                 {"conv/weights": lambda a: a.transpose(1, 2, 3, 0)})
    for kernel, stride, dilation, padding in (((1, 7), 1, 1, "same"), ((3, 2), (2, 1), 1, "same"), ((2, 3), (1, 2), 1, "valid"),
                                              ((3, 1), 1, (2, 1), "same"), ((3, 2), 1, (1, 3), "valid")):
        options = {"kernel": kernel, "stride": stride, "dilation": dilation, "padding": padding, "name": "conv"}
        theirs = {"padding": padding, "dilation_rate": dilation}
        for groups in (1, 2, 4):
            compared(checks, f"conv of {groups} groups", x, lambda g, node: g.conv(node, 8, groups=groups, **options),
                     kinds.Conv2D(8, kernel, stride, groups=groups, **theirs),
                     {"conv/weights": drawn(8, *kernel, 4 // groups), "conv/bias": drawn(8)},
                     {"conv/weights": lambda a: a.transpose(1, 2, 3, 0)})
        compared(checks, "uneven conv_transpose", x, lambda g, node: g.conv_transpose(node, 5, **options),
                 kinds.Conv2DTranspose(5, kernel, stride, **theirs),
                 {"conv/weights": drawn(4, *kernel, 5), "conv/bias": drawn(5)},
                 {"conv/weights": lambda a: a.transpose(1, 2, 3, 0)})
        if stride in (1, (1, 1)):  # its strides are one number
            compared(checks, "uneven depthwise_conv", x, lambda g, node: g.depthwise_conv(node, multiplier=2, **options),
                     kinds.DepthwiseConv2D(kernel, depth_multiplier=2, **theirs),
                     {"conv/weights": drawn(8, *kernel, 1), "conv/bias": drawn(8)},
                     {"conv/weights": lambda a: a.reshape(4, -1, *kernel).transpose(2, 3, 0, 1)})
    for window, stride in ((2, 2), (3, 2), (3, 1)):
        compared(checks, "pooling", x, lambda g, node: g.max_pool(node, window, stride=stride),
                 kinds.MaxPooling2D(window, stride))
        compared(checks, "pooling", x, lambda g, node: g.average_pool(node, window, stride=stride),
                 kinds.AveragePooling2D(window, stride))
    compared(checks, "pooling", x, lambda g, node: g.global_average_pool(node), kinds.GlobalAveragePooling2D())
    compared(checks, "dense", x, lambda g, node: g.dense(node, 3, name="last"), kinds.Dense(3),
             {"last/weights": drawn(3, 4), "last/bias": drawn(3)}, {"last/weights": np.transpose})


class SelfAttention(keras.layers.Layer):
    """MultiHeadAttention as a layer of one input."""

    def __init__(self, causal=False, **options):
        super().__init__()
        self.causal, self.inner = causal, keras.layers.MultiHeadAttention(**options)

    def build(self, shape):
        self.inner.build(shape, shape)

    def call(self, x):
        return self.inner(x, x, use_causal_mask=self.causal)


def attention(checks):
    x = rng.normal(size=(40, 7, 6)).astype(np.float32)
    compared(checks, "pooling of sequences", x, lambda g, node: g.global_average_pool(node),
             keras.layers.GlobalAveragePooling1D())
    # Keras's own attention on JAX fails where values are not as wide as keys.
    for heads, key_dim, output_dim, causal, bias in (
            (1, 4, 6, False, True), (2, 8, 6, False, True), (3, 2, 4, True, True), (4, 16, 6, True, False)):
        given, turned = {}, {}
        for part in ("query", "key", "value"):
            given[f"mha/{part}/weights"] = 3 * drawn(heads * key_dim, 6)
            turned[f"mha/{part}/weights"] = lambda a: a.T.reshape(6, heads, key_dim)
            given[f"mha/{part}/bias"] = drawn(heads * key_dim)
            turned[f"mha/{part}/bias"] = lambda a: a.reshape(heads, key_dim)
        given["mha/weights"] = drawn(output_dim, heads * key_dim)
        turned["mha/weights"] = lambda a: a.T.reshape(heads, key_dim, output_dim)
        given["mha/bias"] = drawn(output_dim)
        if not bias:
            given = {name: values for name, values in given.items() if not name.endswith("bias")}
        compared(checks, "attention", x, lambda g, node: g.multi_head_attention(
            node, heads=heads, key_dim=key_dim, output_dim=output_dim, causal=causal, bias=bias, name="mha"),
            SelfAttention(causal, num_heads=heads, key_dim=key_dim, output_shape=output_dim, use_bias=bias), given, turned)


def main():
    checks = peers.Checks()
    for topic in (two_classes, several_classes, weights, layers, convolutions, attention):
        topic(checks)
    checks.finish()


main()
