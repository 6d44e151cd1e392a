"""headrace.train: optimizers whose update rule the user writes in Python."""

import numpy as np
import pytest

import headrace as hr
from custom_parts import CLASSES, arrays, batches, built, fitted, note_of, of_x, variables_of
from headrace import train


def descent(update):
    update.parameters -= np.float32(update.learning_rate) * update.gradients


def lion(update, beta1=0.9, beta2=0.99):
    m, g = update.state["momentum"], update.gradients
    update.parameters -= update.learning_rate * np.sign(beta1 * m + (1 - beta1) * g)
    m *= beta2
    m += (1 - beta2) * g


def rmsprop(update, alpha=0.9, momentum=0.5, epsilon=1e-7):
    squares, buffer = update.state["squares"], update.state["buffer"]
    squares *= alpha
    squares += (1 - alpha) * update.gradients ** 2
    buffer *= momentum
    buffer += update.gradients / (np.sqrt(squares) + epsilon)
    update.parameters -= update.learning_rate * buffer


def limited(update):
    """Of whole variables: their gradients' norms count."""
    assert update.parameters.shape == update.gradients.shape and update.parameters.ndim in (1, 2)
    update.parameters -= update.learning_rate * update.gradients / max(1.0, np.linalg.norm(update.gradients))


NET = of_x(train.layer("dense", 5, activation="tanh"), train.layer("dense", CLASSES))


def gradients_of(values, x, label):
    """Those of the net, by hand, by variable."""
    hidden = np.tanh(x @ values["dense/weights"].T + values["dense/bias"])
    results = hidden @ values["dense_1/weights"].T + values["dense_1/bias"]
    odds = np.exp(results - results.max(axis=1, keepdims=True))
    slopes = (odds / odds.sum(axis=1, keepdims=True) - np.eye(CLASSES)[label]) / len(x)
    inner = slopes @ values["dense_1/weights"] * (1 - hidden ** 2)
    return {"dense/weights": inner.T @ x, "dense/bias": inner.sum(axis=0), "dense_1/weights": slopes.T @ hidden,
            "dense_1/bias": slopes.sum(axis=0)}


@pytest.mark.parametrize("replicas", [1, 3])
def test_descent_gives_the_weights_of_the_built_in_rule(batches, replicas):
    own, _ = fitted(NET, batches, replicas, optimizer=train.custom_optimizer(descent, 0.1))
    known, _ = fitted(NET, batches, replicas, optimizer=train.sgd(0.1))
    for name, values in variables_of(known).items():
        np.testing.assert_allclose(own.read_variable(name), values, atol=1e-6)


@pytest.mark.parametrize("rule, state, rate", [(lion, ["momentum"], 0.01), (rmsprop, ["squares", "buffer"], 0.01),
                                               (limited, [], 0.5)])
def test_a_rule_follows_numpy(rule, state, rate):
    given = arrays(48)
    data = hr.from_arrays(given).batch(16)
    model = built(NET, replicas=2)
    values = {name: array.astype(np.float64) for name, array in variables_of(model).items()}
    kept = {name: {each: np.zeros_like(array) for each in state} for name, array in values.items()}
    for step in range(9):
        rows = slice(step % 3 * 16, step % 3 * 16 + 16)
        for name, gradients in gradients_of(values, given["x"][rows], given["label"][rows]).items():
            rule(train.Update(values[name], gradients, kept[name], rate, step))
    model.compile(train.custom_optimizer(rule, rate, state=state, whole_variables=rule is limited))
    model.fit(data, epochs=3, verbose=0)
    for name, expected in values.items():
        np.testing.assert_allclose(model.read_variable(name), expected, atol=2e-4 if rule is lion else 2e-5)
        for each in state:
            np.testing.assert_allclose(model.read_variable(f"{name}:{each}"), kept[name][each].ravel(), atol=2e-5)


def test_arrays_may_be_replaced(batches):
    def replaced(update, beta1=0.9, beta2=0.99):
        m, g = update.state["momentum"], update.gradients
        update.parameters = update.parameters - update.learning_rate * np.sign(beta1 * m + (1 - beta1) * g)
        update.state["momentum"] = beta2 * m + (1 - beta2) * g

    one, _ = fitted(NET, batches, 2, optimizer=train.custom_optimizer(lion, 0.01, state=["momentum"]))
    two, _ = fitted(NET, batches, 2, optimizer=train.custom_optimizer(replaced, 0.01, state=["momentum"]))
    assert one.weights_sha256() == two.weights_sha256()


def test_what_a_rule_is_given(batches):
    seen = []

    def note(update, **options):
        seen.append((update.learning_rate, update.step, options, sorted(update.state), update.parameters.dtype,
                     update.gradients.flags.writeable, update.parameters.flags.writeable))

    schedule = train.piecewise([0.5, 0.25], [2])
    fitted(NET, batches, epochs=1, optimizer=train.custom_optimizer(note, schedule, state=["a", "b"], scale=0.999,
                                                                     words=["x"]))
    assert {(rate, step) for rate, step, *_ in seen} == {(0.5, 0), (0.5, 1), (0.25, 2), (0.25, 3)}
    assert all(rest == [{"scale": 0.999, "words": ["x"]}, ["a", "b"], np.float32, False, True] for _, _, *rest in seen)


def test_a_group_of_a_custom_rule(batches):
    optimizer = train.adam(0.01, clip_norm=1.0).group(train.named("dense/*"),
                                                      train.custom_optimizer(lion, 0.01, state=["momentum"]))
    model, history = fitted(NET, batches, 2, epochs=8, optimizer=optimizer.averaged(decay=0.9))
    assert history["loss"][-1] < history["loss"][0]
    assert {"dense/weights:momentum", "dense_1/weights:first_moment"} <= set(model.optimizer_variable_names)


def test_a_training_goes_on_with_the_same_bits(batches, tmp_path):
    def optimizer(**options):
        return train.custom_optimizer(lion, train.linear_decay(0.01, 12), state=["momentum"], **options)

    whole, _ = fitted(NET, batches, 2, optimizer=optimizer(beta2=0.98))
    fitted(NET, batches, 2, optimizer=optimizer(beta2=0.98), checkpoints=tmp_path, stop_after_steps=7)
    resumed, _ = fitted(NET, batches, 2, optimizer=optimizer(beta2=0.98), checkpoints=tmp_path, resume=True)
    assert resumed.weights_sha256() == whole.weights_sha256()

    strategy = train.Strategy("cpu:2", announce=False)
    newest = train.newest_checkpoint(tmp_path)
    restored = train.restore_model(strategy, newest, custom_objects={"lion": optimizer(beta2=0.98)})
    assert restored.weights_sha256() == whole.weights_sha256()
    np.testing.assert_array_equal(restored.read_variable("dense/weights:momentum"),
                                  whole.read_variable("dense/weights:momentum"))
    with pytest.raises(hr.HeadraceError, match=r"has the options \{\}, the file \{\"beta2\": 0.98\}"):
        train.restore_model(strategy, newest, custom_objects={"lion": optimizer()})
    with pytest.raises(hr.HeadraceError, match="lion"):
        train.restore_model(strategy, newest)
    with pytest.raises(hr.HeadraceError, match=r"custom_objects\['lion'\] is an optimizer of this library"):
        train.restore_model(strategy, newest, custom_objects={"lion": train.adam()})
    with pytest.raises(hr.HeadraceError, match="lion"):
        fitted(NET, batches, 2, optimizer=train.adam(), checkpoints=tmp_path, resume=True)


def test_what_does_not_fit_is_refused(batches):
    kept = []
    for rule, kind, text in ((lambda update: 1 // 0, ZeroDivisionError, "by zero"),
                             (lambda update: update.parameters, TypeError, "returned something"),
                             (lambda update: setattr(update, "parameters", np.zeros(1)), ValueError, r"\(1,\)"),
                             (lambda update: update.state.update(m=1), ValueError, r"left the state \['m'\]"),
                             (lambda update: kept.append(update.gradients), hr.ConfigError, "kept an array"),
                             (lambda update: np.copyto(update.gradients, 0), ValueError, "read-only"),
                             (lambda: None, TypeError, "argument")):
        for replicas in (1, 3):
            with pytest.raises(kind, match=text) as raised:
                fitted(NET, batches, replicas, optimizer=train.custom_optimizer(rule))
            assert "update rule 'lambda'" in note_of(raised.value, "update rule 'lambda'") or kind is hr.ConfigError
            kept.clear()
    for arguments, text in (({"state": ["m", "m"]}, "different names"), ({"state": ["a b"]}, "different names"),
                            ({"scale": object()}, "cannot be saved")):
        with pytest.raises(hr.ConfigError, match=text):
            train.custom_optimizer(descent, **arguments)
    with pytest.raises(hr.ConfigError, match="is no update rule"):
        train.custom_optimizer(3)
    with pytest.raises(hr.ConfigError, match="adam"):
        built(NET).compile(train.custom_optimizer(descent, name="adam"))
