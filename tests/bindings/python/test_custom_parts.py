"""headrace.train: layers, losses and metrics that the user writes in Python."""

import gc
import json
import threading
import time

import numpy as np
import pytest

import headrace as hr
from headrace import train

FEATURES, CLASSES = 6, 3


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Swish(train.Layer):
    """Without variables; returns its results."""

    def forward(self, x, call):
        return x * sigmoid(x)

    def backward(self, gradient, call):
        [x] = call.inputs
        s = sigmoid(x)
        return gradient * s * (1 + x * (1 - s))


class Affine(train.Layer):
    """With variables and another output shape; writes into the arrays."""

    def __init__(self, units, bias=True):
        self.units, self.bias = units, bias

    def output_shape(self, x):
        return (*x[:-1], self.units)

    def variables(self, x):
        made = {"weights": train.variable((self.units, x[-1]), "glorot_uniform")}
        return made | {"bias": train.variable([self.units])} if self.bias else made

    def forward(self, x, call):
        np.matmul(x, call.variables["weights"].T, out=call.output)
        if self.bias:
            call.output[...] += call.variables["bias"]

    def backward(self, gradient, call):
        [x] = call.inputs
        np.matmul(gradient.T, x, out=call.variable_gradients["weights"])
        if self.bias:
            np.sum(gradient, axis=0, out=call.variable_gradients["bias"])
        np.matmul(gradient, call.variables["weights"], out=call.input_gradients[0])


class GatedSum(train.Layer):
    """Of two inputs: a * gate + b, with a gate that is saved."""

    def saved(self, a, b):
        return {"gate": a}

    def forward(self, a, b, call):
        call.saved["gate"][...] = sigmoid(b)
        return a * call.saved["gate"] + b

    def backward(self, gradient, call):
        a, _ = call.inputs
        gate = call.saved["gate"]
        return [gradient * gate, gradient * (1 + a * gate * (1 - gate))]


class Dropper(train.Layer):
    """Random: half of the elements are 0 in training."""

    def forward(self, x, call):
        return x * self._mask(x, call) if call.training else x

    def backward(self, gradient, call):
        return gradient * self._mask(gradient, call)

    def _mask(self, x, call):
        return 2 * call.rng.integers(0, 2, x.shape).astype(np.float32)


class MeanFollower(train.Layer):
    """With a variable that the forward pass changes."""

    def variables(self, x):
        return {"mean": train.variable(x, trainable=False)}

    def forward(self, x, call):
        if call.training:
            call.variables["mean"] += 0.5 * (x.mean(axis=0) - call.variables["mean"])
        return x - call.variables["mean"]

    def backward(self, gradient, call):
        return gradient


def log_cosh(y_true, y_pred):
    error = y_pred - y_true
    return np.log(np.cosh(error)).mean(axis=1), np.tanh(error) / error.shape[1]


class RSquared(train.CustomMetric):
    sums = 4

    def update(self, y_true, y_pred):
        return [y_true.size, y_true.sum(), (y_true.astype(float) ** 2).sum(), ((y_pred - y_true).astype(float) ** 2).sum()]

    def result(self, sums):
        return 1 - sums[3] / (sums[2] - sums[1] ** 2 / sums[0])


def hits(y_true, y_pred):
    return y_pred.argmax(axis=1) == y_true


def arrays(records=58, seed=0):
    rng = np.random.default_rng(seed)
    return {"x": rng.normal(size=(records, FEATURES)).astype(np.float32), "label": np.arange(records) % CLASSES,
            "target": rng.normal(size=(records, CLASSES)).astype(np.float32)}


@pytest.fixture
def batches():
    return hr.from_arrays(arrays()).shuffle(seed=3).batch(16)  # uneven: the last has ten


def built(net, replicas=1, seed=1):
    return train.Strategy(f"cpu:{replicas}", announce=False).build(net, seed=seed)


def of_x(*layers):
    return train.Sequential(layers, input="x", shape=(FEATURES,))


def fitted(net, data, replicas=1, epochs=3, optimizer=None, loss=None, metrics=("accuracy",), **options):
    model = built(net, replicas)
    model.compile(optimizer or train.sgd(0.1), loss, metrics)
    return model, model.fit(data, epochs=epochs, verbose=0, **options)


def variables_of(model):
    return {name: model.read_variable(name) for name in model.variable_names}


# ----------------------------------------------------------------------------------------------------------- layers


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_layer_trains_the_weights_of_the_built_in_one(batches, replicas):
    dense = train.layer("dense", 8), train.layer("dense", CLASSES)
    own, history = fitted(of_x(dense[0], Swish(), dense[1]), batches, replicas)
    known, expected = fitted(of_x(dense[0], train.layer("silu"), dense[1]), batches, replicas)
    for name, values in variables_of(own).items():
        np.testing.assert_allclose(values, known.read_variable(name), rtol=0, atol=2e-6, err_msg=name)
    np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-5)
    own.check_mirrored()
    assert own.evaluate(batches)["examples"] == 58
    np.testing.assert_allclose(own.predict(batches).values, known.predict(batches).values, atol=1e-5)


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_layer_with_variables_trains_those_of_dense(batches, replicas):
    own, _ = fitted(of_x(Affine(8), train.layer("relu"), Affine(CLASSES)), batches, replicas, optimizer=train.adam(1e-2))
    known, _ = fitted(of_x(train.layer("dense", 8), train.layer("relu"), train.layer("dense", CLASSES)), batches, replicas,
                      optimizer=train.adam(1e-2))
    assert own.variable_names == ["affine/weights", "affine/bias", "affine_1/weights", "affine_1/bias"]
    assert own.variable_shape("affine/weights") == (8, FEATURES)
    for mine, other in zip(variables_of(own).values(), variables_of(known).values()):
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-4)
    own.check_mirrored()


def test_gradients_are_those_of_differences():
    """The loss's difference along each variable, with every kind of layer between them."""
    def net(g):
        x = Affine(5)(g.input("x", (FEATURES,)))
        return g.dense(GatedSum()(Swish()(x), x), CLASSES)

    data = hr.from_arrays(arrays(8)).batch(8)
    model = built(net)
    rate = 1e-2
    model.compile(train.sgd(rate))
    before = variables_of(model)
    model.fit(data, verbose=0)
    gradients = {name: (before[name] - values) / rate for name, values in variables_of(model).items()}

    def loss_at(name, at, step):
        moved = before[name].copy()
        moved[at] += step
        for each, values in before.items():
            model.write_variable(each, moved if each == name else values)
        return model.evaluate(data)["loss"]

    for name, gradient in gradients.items():
        for at in list(np.ndindex(gradient.shape))[::3]:
            difference = (loss_at(name, at, 1e-2) - loss_at(name, at, -1e-2)) / 2e-2
            assert gradient[at] == pytest.approx(difference, rel=2e-2, abs=2e-4), (name, at)


def test_calls_of_one_object_share_its_variables(batches):
    def twice(g):
        layer = Affine(FEATURES, bias=False)
        return g.dense(layer(g.relu(layer(g.input("x", (FEATURES,))))), CLASSES)

    def of_graph(g):
        first = g.dense(g.input("x", (FEATURES,)), FEATURES, bias=False)
        return g.dense(g.again(first, [g.relu(first)]), CLASSES)

    own, _ = fitted(twice, batches, 2)
    known, _ = fitted(of_graph, batches, 2)
    assert own.variable_names == ["affine/weights", "dense/weights", "dense/bias"]
    np.testing.assert_allclose(own.read_variable("affine/weights"), known.read_variable("dense/weights"), atol=1e-5)
    again = built(train.net_from_json(own.to_json(), {"Affine": Affine}))
    assert again.variable_names == own.variable_names and again.to_json() == own.to_json()


def test_names_and_several_nets(batches):
    layer = Swish()
    net = of_x(layer, lambda g, x: Swish()(x), lambda g, x: layer(x, name="last"), train.layer("dense", CLASSES))
    for _ in range(2):  # the object serves several models
        names = [each["name"] for each in json.loads(built(net).to_json())["layers"]]
        assert names == ["x", "swish", "swish_1", "last", "dense"]


def test_random_numbers_are_those_of_a_resumed_training(batches, tmp_path):
    net = of_x(train.layer("dense", 8), Dropper(), train.layer("dense", CLASSES))
    whole, history = fitted(net, batches, 2)
    stopped, _ = fitted(net, batches, 2, stop_after_steps=6, checkpoints=tmp_path)
    resumed, again = fitted(net, batches, 2, checkpoints=tmp_path, resume=True)
    assert stopped.weights_sha256() != whole.weights_sha256() == resumed.weights_sha256()
    assert again["loss"] == history["loss"] and len(set(history["loss"])) == 3
    plain = of_x(train.layer("dense", 8), train.layer("dense", CLASSES))
    assert fitted(plain, batches, 2)[0].weights_sha256() != whole.weights_sha256()


def test_a_variable_that_the_forward_pass_changes(batches):
    net = of_x(MeanFollower(), train.layer("dense", CLASSES))
    model, _ = fitted(net, batches, 2, epochs=4)
    mean = model.read_variable("mean_follower/mean")
    assert np.abs(mean).max() > 0.01 and model.parameter_count == FEATURES * CLASSES + CLASSES
    model.evaluate(batches)
    assert np.array_equal(model.read_variable("mean_follower/mean"), mean)
    model.check_mirrored()


def test_frozen_variables_and_first_layers(batches):
    model = built(of_x(Affine(8), Swish(), train.layer("dense", CLASSES)), 2)
    model.freeze("affine/weights")
    model.compile(train.sgd(0.1))
    before = variables_of(model)
    model.fit(batches, verbose=0)
    changed = [name for name, values in variables_of(model).items() if not np.array_equal(values, before[name])]
    assert changed == ["affine/bias", "dense/weights", "dense/bias"]


def test_bfloat16(batches):
    model = built(of_x(train.layer("dense", 8), Swish(), train.layer("dense", CLASSES)), 2)
    model.compile(train.adam(1e-2), precision="bfloat16")
    history = model.fit(batches, epochs=8, verbose=0)
    assert history["loss"][-1] < history["loss"][0]


def test_arrays_are_the_replicas_memory_and_cannot_be_kept(batches):
    seen = []

    class Looking(Swish):
        def forward(self, x, call):
            seen.append((x.flags.owndata, x.flags.writeable, call.output.flags.writeable, x.dtype, x.shape[1:]))
            return super().forward(x, call)

    fitted(of_x(Looking(), train.layer("dense", CLASSES)), batches, epochs=1)
    assert set(seen) == {(False, False, True, np.dtype(np.float32), (FEATURES,))}

    class Keeping(Swish):
        def forward(self, x, call):
            self.last = x[0]
            return super().forward(x, call)

    with pytest.raises(hr.ConfigError, match=r"forward\(\) of Keeping kept an array.*keep a copy"):
        fitted(of_x(Keeping(), train.layer("dense", CLASSES)), batches)

    def keeping(y_true, y_pred):
        seen.append(y_pred)
        return log_cosh(y_true, y_pred)

    with pytest.raises(hr.ConfigError, match="loss 'keeping' kept an array"):
        fitted(of_x(train.layer("dense", CLASSES)), batches, loss=train.custom_loss(keeping).against("target"), metrics=())


def test_tensors_of_pytorch_share_the_memory(batches):
    torch = pytest.importorskip("torch")

    class TorchSwish(train.Layer):
        arrays = "torch"

        def forward(self, x, call):
            torch.mul(x, torch.sigmoid(x), out=call.output)

        def backward(self, gradient, call):  # by PyTorch's own derivatives
            with torch.enable_grad():
                x = call.inputs[0].clone().requires_grad_()
                return torch.autograd.grad(x * torch.sigmoid(x), x, gradient)[0]

    dense = train.layer("dense", 8), train.layer("dense", CLASSES)
    own, _ = fitted(of_x(dense[0], TorchSwish(), dense[1]), batches, 2)
    known, _ = fitted(of_x(dense[0], Swish(), dense[1]), batches, 2)
    for name, values in variables_of(own).items():
        np.testing.assert_allclose(values, known.read_variable(name), rtol=0, atol=2e-6, err_msg=name)


def test_dlpack_of_what_is_written(batches):
    torch = pytest.importorskip("torch")

    class Doubling(train.Layer):
        def forward(self, x, call):
            torch.from_dlpack(call.output).copy_(torch.from_numpy(2 * x))

        def backward(self, gradient, call):
            torch.from_dlpack(call.input_gradients[0]).copy_(torch.from_numpy(2 * gradient))

    own, _ = fitted(of_x(train.layer("dense", 8), Doubling(), train.layer("dense", CLASSES)), batches)
    known, _ = fitted(of_x(train.layer("dense", 8), lambda g, x: g.scale(x, 2.0), train.layer("dense", CLASSES)), batches)
    assert own.weights_sha256() == known.weights_sha256()


# ---------------------------------------------------------------------------------------- what goes wrong in a layer


class Failing(Swish):
    def __init__(self, where, kind=ZeroDivisionError):
        self.where, self.kind = where, kind

    def config(self):
        return {"where": self.where}

    def fail(self, where, x):
        if where == self.where and (x > 1.5).any():
            raise self.kind("not these")

    def forward(self, x, call):
        self.fail("forward", x)
        return super().forward(x, call)

    def backward(self, gradient, call):
        self.fail("backward", call.inputs[0])
        return super().backward(gradient, call)


class Special(Exception):
    """With arguments of its own."""

    def __init__(self, text):
        super().__init__(text)
        self.number = 7


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("where", ["forward", "backward"])
def test_an_exception_is_raised_by_fit_as_it_is(batches, replicas, where):
    model = built(of_x(Failing(where, Special), train.layer("dense", CLASSES)), replicas)
    if where == "backward":  # the first layer has none
        model = built(of_x(train.layer("dense", FEATURES), Failing(where, Special), train.layer("dense", CLASSES)), replicas)
        model.write_variable("dense/weights", 9 * np.eye(FEATURES))
    model.compile(train.sgd(0.1))
    for _ in range(2):  # the model can be used again
        with pytest.raises(Special, match="not these") as raised:
            model.fit(batches, verbose=0)
        assert raised.value.number == 7 and raised.traceback[-1].name == "fail"
        if hasattr(raised.value, "__notes__"):
            [note] = raised.value.__notes__
            assert f"layer 'failing' (Failing), {where}()" in note and "replica" in note and "step" in note
    if where == "forward":
        for run in (model.evaluate, model.predict):
            with pytest.raises(Special):
                run(batches)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, MemoryError])
def test_other_exceptions_arrive_too(batches, kind):
    with pytest.raises(kind):
        fitted(of_x(Failing("forward", kind), train.layer("dense", CLASSES)), batches, 2)


def test_what_a_layer_returns_is_checked(batches):
    class Short(Swish):
        def forward(self, x, call):
            return x[:1]

    class Several(Swish):
        def backward(self, gradient, call):
            return [gradient, gradient]

    class Unwritten(train.Layer):
        pass

    with pytest.raises(ValueError, match=r"forward\(\) of Short returned the shape \(1, 6\); it is to be \(16, 6\)"):
        fitted(of_x(Short(), train.layer("dense", CLASSES)), batches)
    with pytest.raises(ValueError, match="returned 2 gradients; the layer has 1 inputs"):
        fitted(of_x(train.layer("dense", 6), Several(), train.layer("dense", CLASSES)), batches)
    with pytest.raises(NotImplementedError, match="Unwritten has no forward"):
        fitted(of_x(Unwritten(), train.layer("dense", CLASSES)), batches)


def test_what_describes_a_layer_is_checked():
    class NoShape(Swish):
        def output_shape(self, x):
            return "wide"

    class NoVariable(Swish):
        def variables(self, x):
            return {"gain": (3,)}

    class WrongInitializer(Swish):
        def variables(self, x):
            return {"gain": train.variable((3,), "nothing")}

    class dense(Swish):
        pass

    for layer, text in ((NoShape(), "NoShape.output_shape"), (NoVariable(), "make it with train.variable"),
                        (WrongInitializer(), "initializer = \"nothing\""), (dense(), "cannot be called 'dense'")):
        with pytest.raises((hr.ConfigError, ValueError), match=text):
            built(of_x(layer, train.layer("dense", CLASSES)))
    with pytest.raises(hr.ConfigError, match="not called on nodes"):
        Swish()(3)
    with pytest.raises(TypeError, match="takes no arguments"):
        Swish(3)

    class Holding(Swish):
        def __init__(self, values):
            self.values = values

    with pytest.raises(hr.ConfigError, match=r"Holding cannot be saved.*config\(\)"):
        built(of_x(Holding(np.zeros(3)), train.layer("dense", CLASSES)))
    with pytest.raises(ZeroDivisionError):
        built(lambda g: Swish()(g.input("x", (1 // 0,))))


def test_nothing_waits_for_the_interpreter_while_replicas_do(batches):
    """Whoever waits for submitted work, in which Python is called, does not hold the interpreter's lock."""
    class Slow(Swish):
        def forward(self, x, call):
            time.sleep(0.02)
            return super().forward(x, call)

    strategy = train.Strategy("cpu:3", announce=False)
    model = strategy.build(of_x(train.layer("dense", 8), Slow(), Affine(CLASSES)), seed=1)
    model.compile(train.sgd(0.1), metrics=[hits])
    data = strategy.distribute(batches)
    trainer = train.Trainer(model, data)
    for step in range(3):
        trainer.step()
        [model.weights_sha256, lambda: model.read_variable("dense/bias"), strategy.synchronize][step]()
    trainer.step()
    model.write_variable("dense/bias", np.zeros(8))
    strategy.build(of_x(train.layer("dense", 2)))
    reports = []
    model.fit(batches, epochs=2, verbose=0, callbacks=[
        type("Reading", (), {"on_step": lambda self, report, control: reports.append(model.read_variable("dense/bias"))})()])
    del trainer
    gc.collect()
    assert model.evaluate(batches)["hits"] <= 1


def test_python_threads_run_on_while_a_layer_waits(batches):
    """A layer may wait for another thread of the program."""
    asked, answered = threading.Event(), threading.Event()
    helper = threading.Thread(target=lambda: asked.wait(30) and answered.set())
    helper.start()

    class Asking(Swish):
        def forward(self, x, call):
            asked.set()
            assert answered.wait(30)
            return super().forward(x, call)

    fitted(of_x(Asking(), train.layer("dense", CLASSES)), batches, 3, epochs=1)
    helper.join()


def test_a_layer_runs_to_the_end_of_the_interpreter(python):
    """A trainer with work submitted is left at the end of the program."""
    done = python("""
        import time, numpy as np, headrace as hr
        from headrace import train

        class Slow(train.Layer):
            def forward(self, x, call):
                time.sleep(0.05)
                return x
            def backward(self, gradient, call):
                return gradient

        strategy = train.Strategy("cpu:2", announce=False)
        model = strategy.build(lambda g: g.dense(Slow()(g.input("x", (2,))), 2))
        model.compile()
        data = strategy.distribute(hr.from_arrays({"x": np.zeros((64, 2), np.float32), "label": np.zeros(64, np.int64)}).batch(8))
        trainer = train.Trainer(model, data)
        for _ in range(4):
            trainer.step()
        print("leaving")
    """, seconds=60)
    assert done.returncode == 0 and done.stdout == "leaving\n", done.stdout


# ----------------------------------------------------------------------------------------------------------- losses


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
    own, history = fitted(net, batches, 2, loss=cross_entropy, class_weight=[1, 2, 3])
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
                fitted(net, batches, replicas, loss=loss)
            assert "loss 'lambda'" in raised.value.__notes__[0]
    for loss in (3, float, "mse"):
        with pytest.raises(hr.ConfigError, match="is no loss"):
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
            assert text in raised.value.__notes__[0]
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
                          ("log_cosh", "loss of its program's own, 'log_cosh'"),
                          ("r_squared", "metric of its program's own, 'r_squared'")):
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
