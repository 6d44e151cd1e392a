"""headrace.train: layers that the user writes in Python."""

import gc
import json
import threading
import time

import numpy as np
import pytest

import headrace as hr
from custom_parts import (Affine, CLASSES, Dropper, FEATURES, GatedSum, MeanFollower, Swish, arrays,
                          batches, built, fitted, hits, log_cosh, of_x, sigmoid, variables_of)
from headrace import train


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
