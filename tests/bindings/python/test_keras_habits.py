"""What a Keras user says to the trainer: activations by word, weights of examples and classes, scores of classes."""

import numpy as np
import pytest

import headrace as hr
from headrace import train

CLASSES, COUNT = 3, 60


@pytest.fixture
def arrays():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, CLASSES, COUNT)
    x = (np.eye(CLASSES)[labels] + rng.normal(size=(COUNT, CLASSES))).astype(np.float32)
    return {"x": x, "label": labels, "weight": (2 * rng.random(COUNT)).astype(np.float32)}


@pytest.fixture
def data(arrays):
    return hr.from_arrays(arrays).batch(16)


def model_of(net, **options):
    model = train.Strategy("cpu", announce=False).build(net, seed=1)
    model.compile(optimizer=train.sgd(0.1), **options)
    return model


def classifier(g):
    return g.dense(g.input("x", (CLASSES,)), CLASSES, name="out")


WORDS = ["relu", "gelu", "silu", "sigmoid", "tanh", "leaky_relu", "elu", "softplus", "softmax"]


@pytest.mark.parametrize("word", WORDS)
def test_an_activation_is_the_layer_that_follows(data, word):
    strategy = train.Strategy("cpu", announce=False)
    x = ("x", (CLASSES,))
    models = [strategy.build(lambda g: g.dense(g.input(*x), 4, activation=word), seed=1),
              strategy.build(lambda g: getattr(g, word)(g.dense(g.input(*x), 4)), seed=1),
              strategy.build(lambda g: g.activation(g.dense(g.input(*x), 4), word), seed=1)]
    first, *others = (model.predict(data).values for model in models)
    for other in others:
        assert np.array_equal(first, other)
    with pytest.raises(hr.ConfigError, match='"rellu" is not known.*leaky_relu'):
        strategy.build(lambda g: g.dense(g.input(*x), 4, activation="rellu"))


def test_a_softmax_by_word_ends_the_net(data):
    model = model_of(lambda g: g.dense(g.input("x", (CLASSES,)), CLASSES, activation="softmax"),
                     loss=train.sparse_categorical_crossentropy(from_logits=False))
    history = model.fit(data, epochs=5, verbose=0)
    assert history["loss"][-1] < history["loss"][0]
    assert np.allclose(model.predict(data).values.sum(1), 1, atol=1e-6)


def test_weights_of_examples_and_classes(arrays, data):
    by_class = {0: 1.0, 1: 5.0, 2: 0.5}
    model = model_of(classifier, sample_weight="weight", weighted_metrics=["accuracy"])
    logits = model.predict(data).values
    losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(COUNT), arrays["label"]]
    hits = logits.argmax(1) == arrays["label"]
    seen = model.evaluate(data)
    weights = arrays["weight"]
    assert seen["loss"] == pytest.approx((weights * losses).mean(), abs=1e-6)
    assert seen["weighted_accuracy"] == pytest.approx((weights * hits).sum() / weights.sum(), abs=1e-6)
    frozen = model_of(classifier, loss=train.sparse_categorical_crossentropy())
    frozen.compile(optimizer=train.sgd(0.0))
    history = frozen.fit(data, validation=data, class_weight=by_class, verbose=0)
    factors = np.array([by_class[label] for label in arrays["label"]])
    assert history["loss"][0] == pytest.approx((factors * losses).mean(), abs=1e-6)
    assert history["val_loss"][0] == pytest.approx(losses.mean(), abs=1e-6)
    with pytest.raises(hr.ConfigError, match=r"classes \[0, 2\]"):
        frozen.fit(data, class_weight={0: 1, 2: 1}, verbose=0)
    with pytest.raises(hr.ConfigError, match="2 class weights"):
        frozen.fit(data, class_weight=[1, 2], verbose=0)


def test_scores_of_classes(arrays, data):
    model = model_of(classifier, metrics=["precision", "recall", "f1_score", "auc", "pr_auc"])
    predicted = model.predict(data).values.argmax(1)
    seen = model.evaluate(data)
    precisions = [(arrays["label"][predicted == c] == c).mean() if (predicted == c).any() else 0 for c in range(CLASSES)]
    assert seen["precision"] == pytest.approx(np.mean(precisions))
    assert 0 < seen["auc"] < 1 and 0 < seen["pr_auc"] < 1
    model.compile(metrics=[train.recall(average="none")])
    assert len(model.evaluate(data)["recall"]) == CLASSES
    with pytest.raises(hr.ConfigError, match="average"):
        train.precision(average="binary")


def test_embedding_of_whole_numbers():
    rng = np.random.default_rng(5)
    words = rng.integers(0, 20, (COUNT, 4))
    data = hr.from_arrays({"words": words, "label": (words[:, 0] % 2).astype(np.int64)}).batch(12)
    model = model_of(lambda g: g.dense(g.flatten(g.layer_norm(g.embedding(g.input("words", (4,)), 20, 8))), 2))
    history = model.fit(data, epochs=30, verbose=0)
    assert history["accuracy"][-1] > 0.95


def ordered_tokens(count):
    """Eight tokens of which one is 7 and one is 8; the label says whether 7 comes first."""
    rng = np.random.default_rng(8)
    tokens = rng.integers(0, 7, (count, 8))
    places = np.array([rng.permutation(8)[:2] for _ in range(count)])
    tokens[np.arange(count), places[:, 0]], tokens[np.arange(count), places[:, 1]] = 7, 8
    return {"tokens": tokens, "label": (places[:, 0] < places[:, 1]).astype(np.int64)}


def transformer(g):
    """The block of Keras's example "Text classification with Transformer"."""
    x = g.position_embedding(g.embedding(g.input("tokens", (8,)), 9, 16))
    x = g.layer_norm(x + g.dropout(g.multi_head_attention(x, heads=2, key_dim=8), 0.1), epsilon=1e-6)
    x = g.layer_norm(x + g.dropout(g.dense(g.dense(x, 32, activation="relu"), 16), 0.1), epsilon=1e-6)
    x = g.dropout(g.global_average_pool(x), 0.1)
    return g.dense(g.dense(x, 20, activation="relu"), 2)


def test_a_transformer_learns_the_order_of_tokens():
    model = train.Strategy("cpu:2", announce=False).build(transformer, seed=3)
    model.compile(optimizer=train.adam(5e-3), metrics=["accuracy"])
    history = model.fit(hr.from_arrays(ordered_tokens(512)).batch(64), epochs=40, verbose=0)
    assert history["accuracy"][-1] > 0.95
    assert model.read_variable("multi_head_attention/query/weights").shape == (16, 16)
    same = train.Strategy("cpu", announce=False).build(lambda g: g.call_net(model.to_json())[0], seed=3)
    assert same.variable_names == model.variable_names


def test_attention_is_that_of_numpy():
    rng = np.random.default_rng(9)
    x, mask = rng.normal(size=(COUNT, 5, 6)).astype(np.float32), (rng.random((COUNT, 5)) < 0.7).astype(np.float32)
    mask[:, 0] = 1
    data = hr.from_arrays({"x": x, "mask": mask, "label": np.zeros(COUNT, np.int64)}).batch(16)

    def net(g):
        node = g.input("x", (5, 6))
        return g.attention(node, 2 * node, -1 * node, g.input("mask", (5,)), heads=2, causal=True)

    values = train.Strategy("cpu", announce=False).build(net).predict(data).values
    heads = x.reshape(COUNT, 5, 2, 3).transpose(0, 2, 1, 3)
    scores = -(heads @ heads.transpose(0, 1, 3, 2)) / np.sqrt(3)
    seen = np.tri(5, dtype=bool) & (mask[:, None, None, :] != 0)
    weights = np.where(seen, np.exp(scores), 0)
    expected = weights / weights.sum(-1, keepdims=True) @ (2 * heads)
    assert np.allclose(values.reshape(COUNT, 5, 6), expected.transpose(0, 2, 1, 3).reshape(COUNT, 5, 6), atol=1e-5)


def test_attention_refuses_what_does_not_fit():
    strategy = train.Strategy("cpu", announce=False)
    with pytest.raises(hr.ConfigError, match=r"features cannot be divided among 4 heads"):
        strategy.build(lambda g: g.attention(g.input("x", (5, 6)), heads=4))
    with pytest.raises(hr.ConfigError, match=r"\(positions, features\).*\(5,\)"):
        strategy.build(lambda g: g.multi_head_attention(g.input("x", (5,)), heads=2, key_dim=3))


def test_images_made_smaller_and_larger_again():
    images = np.repeat(np.repeat(np.random.default_rng(6).random((COUNT, 4, 4, 2), np.float32), 2, 1), 2, 2)
    data = hr.from_arrays({"image": images, "label": images}).batch(12)
    net = train.Sequential([train.layer("conv", 8, stride=2, activation="relu"),
                            train.layer("depthwise_conv", multiplier=2, activation="silu"),
                            train.layer("conv_transpose", 2, kernel=4, stride=2)], shape=(8, 8, 2))
    model = train.Strategy("cpu", announce=False).build(net, seed=1)
    assert model.read_variable("depthwise_conv/weights").shape == (16, 3, 3, 1)
    assert model.read_variable("conv_transpose/weights").shape == (16, 4, 4, 2)
    model.compile(optimizer=train.adam(1e-2), loss=train.mean_squared_error(), metrics=[])
    history = model.fit(data, epochs=20, verbose=0)
    assert history["loss"][-1] < 0.3 * history["loss"][0]
    assert model.predict(data).values.shape == (COUNT, 8, 8, 2)


def test_cosine_similarity():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(COUNT, 6)).astype(np.float32)
    data = hr.from_arrays({"x": x, "label": x @ rng.normal(size=(6, 3)).astype(np.float32)}).batch(12)
    model = train.Strategy("cpu", announce=False).build(lambda g: g.dense(g.input("x", (6,)), 3), seed=1)
    model.compile(optimizer=train.adam(2e-2), loss=train.cosine_similarity(), metrics=[train.cosine_similarity()])
    history = model.fit(data, epochs=40, verbose=0)
    assert history["loss"][-1] < -0.97
    seen = model.evaluate(data)
    assert seen["cosine_similarity"] == pytest.approx(seen["loss"], abs=1e-6)
