"""headrace.train: losses and metrics that the user writes in Python, models of them in files, and callbacks."""

import numpy as np
import pytest

import headrace as hr
from custom_parts import (Affine, CLASSES, RSquared, Swish, arrays, batches, built, fitted, hits, log_cosh, note_of, of_x)
from headrace import train


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_loss_trains_the_weights_of_the_built_in_one(batches, replicas):
    def squares(y_true, y_pred):
        error = y_pred - y_true
        return (error ** 2).mean(axis=1), 2 * error / error.shape[1]

    net = of_x(train.layer("dense", CLASSES))
    own, history = fitted(net, batches, replicas, loss=train.custom_loss(squares).against("target"), metrics=())
    known, expected = fitted(net, batches, replicas, loss=train.mean_squared_error().against("target"), metrics=())
    np.testing.assert_allclose(own.read_variable("dense/weights"), known.read_variable("dense/weights"), atol=1e-6)
    np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-6)
    of_both = 0.25 * train.custom_loss(squares) + 0.75 * train.mean_squared_error()
    both, _ = fitted(net, batches, replicas, loss=of_both.against("target"), metrics=())
    np.testing.assert_allclose(both.read_variable("dense/weights"), known.read_variable("dense/weights"), atol=1e-6)


def test_a_function_is_a_loss(batches):
    def cross_entropy(y_true, y_pred):
        assert y_true.dtype == np.int64 and y_true.shape == y_pred.shape[:1]
        odds = np.exp(y_pred - y_pred.max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        return -np.log(odds[np.arange(len(odds)), y_true]), odds - np.eye(CLASSES)[y_true]

    net = of_x(train.layer("dense", CLASSES))
    with pytest.raises(hr.ConfigError, match=r"accuracy depends on .*nothing says it \(the loss is cross_entropy\).*for_task"):
        fitted(net, batches, 2, loss=cross_entropy)
    said = train.custom_loss(cross_entropy).for_task("categorical", from_logits=True)
    own, history = fitted(net, batches, 2, loss=said, class_weight=[1, 2, 3])
    known, expected = fitted(net, batches, 2, class_weight=[1, 2, 3])
    np.testing.assert_allclose(own.read_variable("dense/weights"), known.read_variable("dense/weights"), atol=1e-6)
    np.testing.assert_allclose(history["accuracy"], expected["accuracy"])
    assert repr(train.custom_loss(log_cosh)) == "Loss(log_cosh)"


def test_what_a_loss_returns_is_checked(batches):
    net = of_x(train.layer("dense", CLASSES))
    for loss, kind, text in (
            (lambda t, p: p.sum(axis=1), TypeError, r"return \(values, gradient\)"),
            (lambda t, p: (p.mean(), p), ValueError, "return one loss an example, not their mean"),
            (lambda t, p: (p.sum(axis=1), p[0]), ValueError, r"the gradient of loss 'lambda'.*\(3,\)"),
            (lambda t, p: 1 // 0, ZeroDivisionError, "by zero")):
        for replicas in (1, 3):
            with pytest.raises(kind, match=text) as raised:
                fitted(net, batches, replicas, loss=loss, metrics=())
            assert "loss 'lambda'" in note_of(raised.value, "loss 'lambda'")
    for loss, text in ((3, "is no loss"), (float, "is no loss"), ("mse", "write train.mean_squared_error"),
                       (train.huber, "write train.huber")):
        with pytest.raises(hr.ConfigError, match=text):
            built(net).compile(loss=loss)


# ---------------------------------------------------------------------------------------------------------- metrics


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_metric_is_of_all_examples(batches, replicas):
    net = of_x(train.layer("dense", CLASSES))
    metric = train.custom_metric(RSquared())
    model, history = fitted(net, batches, replicas, loss=train.mean_squared_error().against("target"), metrics=[RSquared()],
                            validation=batches)
    values, target = model.predict(batches), arrays()["target"]
    target = target[values.records]
    expected = 1 - ((values.values - target) ** 2).sum() / ((target - target.mean()) ** 2).sum()
    assert model.evaluate(batches)["r_squared"] == pytest.approx(expected, rel=1e-5)
    assert history["val_r_squared"][-1] == pytest.approx(expected, rel=1e-5) and len(history["r_squared"]) == 3
    assert metric.name == "r_squared"


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_function_is_a_metric(batches, replicas):
    def share_of_class(y_true, y_pred):
        return y_true == 1

    net = of_x(train.layer("dense", CLASSES))
    model, history = fitted(net, batches, replicas, metrics=["accuracy", hits, share_of_class])
    assert history["hits"] == history["accuracy"]
    assert model.evaluate(batches)["share_of_class"] == 19 / 58


# What chooses by a metric asks it which values are better, or the user.
def test_the_best_epoch_is_by_the_metrics_word(batches, tmp_path):
    class Certainty(RSquared):
        better = "max"

    net = of_x(train.layer("dense", CLASSES))
    loss = train.mean_squared_error().against("target")

    def best(metric, folder, mode="auto"):
        name = "val_" + train.custom_metric(metric).name
        kept = train.Checkpoints(tmp_path / folder, best=name, best_mode=mode)
        model, history = fitted(net, batches, loss=loss, metrics=[metric], optimizer=train.sgd(0.3), epochs=4,
                                validation=batches, checkpoints=kept,
                                callbacks=[train.early_stopping(name, patience=9, mode=mode),
                                           train.reduce_lr_on_plateau(name, patience=9, mode=mode)])
        found = train.restore_model(model.strategy, kept.folder / "best.safetensors",
                                    custom_objects={name[4:]: metric}).evaluate(batches)
        return found[name[4:]], history[name]

    for metric, mode, chosen in ((Certainty(), "auto", max), (Certainty(), "min", min), (RSquared(), "max", max)):
        value, values = best(metric, f"{chosen.__name__}_{type(metric).__name__}", mode)
        assert value == pytest.approx(chosen(values), rel=1e-6) and chosen(values) != values[0 if chosen is max else -1], (values, mode)
    with pytest.raises(hr.ConfigError, match="'val_r_squared'.*say best_mode='max', or best_mode='min'.*better"):
        best(RSquared(), "unsaid")
    with pytest.raises(hr.ConfigError, match='better = "higher" is not known'):
        train.custom_metric(hits, better="higher")
    said = train.custom_metric(lambda t, p: p.argmax(axis=1) == t, name="right", better="max")
    _, history = fitted(net, batches, metrics=[said], callbacks=[train.early_stopping("right", patience=1)], epochs=5)
    assert history["right"][-1] >= history["right"][0]


def test_virtual_shards_count_alike():
    net = of_x(train.layer("dense", 8), Swish(), train.layer("dense", CLASSES))
    data = hr.from_arrays(arrays()).shuffle(seed=3).batch(16)
    runs = [fitted(net, data, replicas, loss=train.custom_loss(log_cosh).against("target"), metrics=[RSquared()],
                   virtual_shards=4) for replicas in (1, 2, 4)]
    assert len({model.weights_sha256() for model, _ in runs}) == 1
    assert len({tuple(history["r_squared"]) for _, history in runs}) == 1


def test_a_metric_of_several_numbers_and_weights(batches):
    class PerClass(train.CustomMetric):
        name, sums = "per_class", 2 * CLASSES

        def update(self, y_true, y_pred, sample_weight=None):
            weights = np.ones(len(y_true)) if sample_weight is None else sample_weight
            right = weights * (y_pred.argmax(axis=1) == y_true)
            return np.stack([np.bincount(y_true, right, CLASSES), np.bincount(y_true, weights, CLASSES)])

        def result(self, sums):
            right, all_of_them = sums.reshape(2, CLASSES)
            return right / all_of_them

    data = hr.from_arrays({**arrays(), "weight": np.linspace(0, 1, 58, dtype=np.float32)}).batch(16)
    model = built(of_x(train.layer("dense", CLASSES)), 2)
    model.compile(metrics=[PerClass()], weighted_metrics=[PerClass()], sample_weight="weight")
    found = model.evaluate(data)
    label, guess = arrays()["label"], model.predict(data).values.argmax(axis=1)
    weight = np.linspace(0, 1, 58, dtype=np.float32)
    for c in range(CLASSES):
        right, weights = (guess == label)[label == c], weight[label == c]
        assert found["per_class"][c] == pytest.approx(right.mean())
        assert found["weighted_per_class"][c] == pytest.approx((weights * right).sum() / weights.sum(), rel=1e-5)
    with pytest.raises(hr.ConfigError, match="cannot be weighted"):
        model.compile(weighted_metrics=[RSquared()], sample_weight="weight")


def test_exceptions_of_metrics_are_raised_as_they_are(batches):
    class Bad(train.CustomMetric):
        def __init__(self, where):
            self.where = where

        def update(self, y_true, y_pred):
            return [1 // (self.where != "update")] * (1 if self.where != "count" else 2)

        def result(self, sums):
            return 1 // (self.where != "result")

    net = of_x(train.layer("dense", CLASSES))
    for where, kind, text in (("update", ZeroDivisionError, "metric 'bad', update()"),
                              ("result", ZeroDivisionError, "metric 'bad', result()"),
                              ("count", ValueError, "update() of metric 'bad' returned 2 numbers for 1 sums")):
        for replicas in (1, 3):
            with pytest.raises(kind) as raised:
                fitted(net, batches, replicas, metrics=[Bad(where)])
            assert text in note_of(raised.value, text)
    for wrong in (3, float):
        with pytest.raises(hr.ConfigError, match="is no metric"):
            built(net).compile(metrics=[wrong])


# ------------------------------------------------------------------------------------------------------- saved models


def parts():
    return {"Affine": Affine, "Swish": Swish, "log_cosh": log_cosh, "r_squared": RSquared()}


def full_model(replicas=2):
    model = built(of_x(Affine(8), Swish(), Affine(units=CLASSES, bias=False)), replicas)
    model.compile(train.adam(1e-2), train.custom_loss(log_cosh).against("target"), [RSquared()])
    return model


def test_a_checkpoint_is_resumed_to_the_same_bits(batches, tmp_path):
    whole, stopped = full_model(), full_model()
    history = whole.fit(batches, epochs=3, verbose=0)
    stopped.fit(batches, epochs=3, verbose=0, stop_after_steps=6, checkpoints=tmp_path)
    strategy = train.Strategy("cpu:2", announce=False)
    resumed = train.restore_or_create(strategy, tmp_path, full_model, custom_objects=parts())
    again = resumed.fit(batches, epochs=3, verbose=0, checkpoints=tmp_path, resume=True)
    assert resumed.weights_sha256() == whole.weights_sha256()
    assert again["loss"] == history["loss"] and again["r_squared"] == history["r_squared"]


def test_a_file_says_what_it_lacks(batches, tmp_path):
    model = full_model()
    model.fit(batches, verbose=0)
    file = tmp_path / "model.safetensors"
    model.save(file)
    strategy = train.Strategy("cpu", announce=False)
    for missing, text in (("Affine", "of the kind 'Affine'"), ("Swish", "of the kind 'Swish'"),
                          ("log_cosh", "custom loss, 'log_cosh'"),
                          ("r_squared", "custom metric, 'r_squared'")):
        with pytest.raises(hr.DataError, match=f"{text}.*custom_objects"):
            train.restore_model(strategy, file, custom_objects={name: part for name, part in parts().items() if name != missing})
    same = train.restore_model(strategy, file, custom_objects=parts())
    assert same.evaluate(batches)["r_squared"] == pytest.approx(model.evaluate(batches)["r_squared"])
    given = {**parts(), "log_cosh": train.custom_loss(log_cosh), "r_squared": RSquared}
    found = train.evaluate_record(strategy, file, batches, custom_objects=given)
    assert found["loss"] == pytest.approx(model.evaluate(batches)["loss"])
    assert np.allclose(train.predict_record(strategy, file, batches, custom_objects=given).values, model.predict(batches).values)
    with pytest.raises(hr.ConfigError, match=r"custom_objects\['Swish'\] is a int"):
        train.restore_model(strategy, file, custom_objects={"Swish": 3})
    with pytest.raises(hr.ConfigError, match="Affine cannot be made with the arguments"):
        built(train.net_from_json(model.to_json(), {**parts(), "Affine": Swish}))


def test_part_of_a_net_with_custom_layers(batches):
    model = full_model()

    def with_new_head(g):
        [features] = g.call_net(model.to_json(), outputs=["swish"], custom_objects=parts())
        return g.dense(features, 2, name="head")

    other = built(with_new_head)
    assert other.copy_variables(model) == ["affine/weights", "affine/bias"]
    with pytest.raises(hr.ConfigError, match="hand over what makes it in custom_objects"):
        built(lambda g: g.call_net(model.to_json()))


# --------------------------------------------------------------------------------------------------------- callbacks


def test_callbacks_have_the_model_and_the_details(batches):
    seen = {}

    class Watching:
        every_steps = 2

        def on_step(self, report, control):
            seen.setdefault("norms", report.gradient_norms)
            seen["batches"] = control.input_stats()["batches"]

        def on_epoch_end(self, report, control):
            seen["model"], seen["control"] = control.model, control
            seen["times"] = report.local_replicas
            assert report.workers == [] and report.host_us_per_step > 0

    model, _ = fitted(of_x(train.layer("dense", CLASSES)), batches, 2, epochs=1, gradient_norms=True,
                      callbacks=[train.on_chief(Watching())])
    assert seen["model"] is model and seen["batches"] > 0
    assert list(seen["norms"]) == ["dense/weights", "dense/bias"] and seen["norms"]["dense/weights"] > 0
    assert len(seen["times"]) == 2 and all(times.batches == 4 and 0 <= times.device_idle_fraction <= 1 for times in seen["times"])
    with pytest.raises(hr.ConfigError, match="of a call that is over"):
        seen["control"].model
