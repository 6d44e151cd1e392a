"""headrace.train: the trainer from Python."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import headrace as hr
from headrace import train

EXAMPLES, CLASSES = 96, 3


@pytest.fixture
def batches(easy):
    return easy.shuffle(1).batch(16)


def net(g):
    x = g.conv(g.input("image"), 4, activation="relu")
    return g.dense(g.flatten(g.max_pool(x, 2)), CLASSES)


def compiled(data, devices="cpu", **options):
    model = train.Strategy(devices, announce=False).build(net, data=data, seed=1)
    model.compile(**({"optimizer": train.adam(1e-2)} | options))
    return model


def forever(data):
    """A fit that only a signal or a callback ends in good time."""
    return {"train": data, "epochs": 1_000_000, "verbose": 0}


# --------------------------------------------------------------------------------------------------- training


def test_learns_and_keeps_a_history(batches, easy):
    model = compiled(batches, "cpu:2", metrics=["accuracy", "top_2"])
    history = model.fit(batches, epochs=8, validation=easy.batch(48), verbose=0)
    assert {"loss", "accuracy", "top_2", "val_loss", "val_accuracy", "seconds", "learning_rate"} <= set(history)
    assert history.epochs == len(history["loss"]) == 8 and history.history is history
    assert history["loss"][-1] < 0.6 * history["loss"][0]
    result = model.evaluate(easy.batch(48))
    assert result["examples"] == EXAMPLES and result["accuracy"] == history["val_accuracy"][-1] > 0.8
    assert model.global_step == 8 * len(batches)
    with pytest.raises(KeyError, match="no 'val_los'; there are .*val_loss"):
        history["val_los"]


def test_predicts_in_the_order_of_the_records(batches, easy):
    model = compiled(batches)
    model.fit(batches, epochs=8, verbose=0)
    predictions = model.predict(easy.batch(40))
    assert predictions.values.shape == (EXAMPLES, CLASSES) and predictions.values.dtype == np.float32
    assert np.array_equal(predictions.records, np.arange(EXAMPLES)) and predictions.others == {}
    right = np.mean(predictions.values.argmax(1) == np.arange(EXAMPLES) % CLASSES)
    assert right == pytest.approx(model.evaluate(easy.batch(40))["accuracy"])


def test_says_where_it_is_wrong(batches, easy):
    model = compiled(batches)
    data = easy.batch(40)
    predictions = model.predict(data, names=True)
    assert len(predictions.names) == EXAMPLES and model.predict(data).names is None
    assert len(predictions.labels) == EXAMPLES and predictions.classes is None and model.predict(data).labels is None
    found = model.classify(data, worst=3)
    right = predictions.values.argmax(1) == np.arange(EXAMPLES) % CLASSES
    assert found.confusion_matrix.shape == (CLASSES, CLASSES) and found.confusion_matrix.sum() == EXAMPLES
    assert found.confusion_matrix.trace() == right.sum()
    losses = [one.loss for one in found.worst]
    assert len(losses) == 3 and losses == sorted(losses, reverse=True)
    assert found.worst[0].name == predictions.names[found.worst[0].record]


def test_nets_for_images_have_any_number_of_classes(batches, tmp_path):
    strategy = train.Strategy("cpu")
    model = strategy.build(lambda g: g.dense(g.flatten(g.max_pool(g.input("image", (9, 9, 3)), 3, stride=2, padding=1)), 2))
    assert model.variable_shape("dense/weights") == (2, 75)
    small = strategy.build(lambda g: g.dense(g.input("image", (4,)), 3))
    small.compile()
    small.save(tmp_path / "small.safetensors")
    larger = strategy.build(lambda g: g.dense(g.input("image", (4,)), 5))
    assert larger.load_pretrained(tmp_path / "small.safetensors")["left_out"] == ["dense/weights", "dense/bias"]


def test_replicas_give_the_same_bits_with_virtual_shards(batches):
    def weights(devices):
        model = compiled(batches, devices)
        model.fit(batches, epochs=2, verbose=0, virtual_shards=4)
        model.check_mirrored()
        return model.weights_sha256()

    assert weights("cpu") == weights("cpu:2")


def test_several_results_with_losses_of_their_own(batches, easy):
    def two(g):
        x = g.dense(g.flatten(g.input("image")), 8, activation="relu", name="shared")
        return [g.dense(x, CLASSES, name="class"), g.dense(x, CLASSES, name="again")]

    model = train.Strategy("cpu", announce=False).build(two, data=batches)
    loss = 0.7 * train.sparse_categorical_crossentropy() + 0.3 * train.sparse_categorical_crossentropy().of("again")
    model.compile(optimizer=train.sgd(0.1, momentum=0.9), loss=loss, metrics=["accuracy", train.accuracy().of("again")])
    history = model.fit(batches, epochs=3, verbose=0)
    assert {"accuracy", "again/accuracy"} <= set(history) and history["loss"][-1] < history["loss"][0]
    assert set(model.predict(easy.batch(32)).others) == {"again"}


def test_nets_of_the_library_have_names(easy):
    assert {"mnist_mlp", "cifar10_cnn", "resnet18"} <= set(train.net_names())
    images = hr.from_arrays({"image": np.zeros((4, 28, 28, 1), np.uint8), "label": np.zeros(4, np.int64)})
    model = train.Strategy("cpu", announce=False).build("mnist_mlp", data=images)
    assert model.parameter_count == 269322 and "dense" in model.summary()
    with pytest.raises(hr.ConfigError, match="mnist_mlp"):
        train.Strategy("cpu", announce=False).build("no_such_net", data=images)


def test_nodes_know_their_shapes_and_end_with_the_net():
    seen = []

    def residual(g):
        x = g.conv(g.input("image", (6, 6, 2)), 2)
        y = x + 0.5 * g.relu(x)
        seen.extend([x.shape, y.shape, y, g])
        return g.dense(g.global_average_pool(y), 2)

    train.Strategy("cpu", announce=False).build(residual)
    assert seen[:2] == [(6, 6, 2), (6, 6, 2)]
    with pytest.raises(hr.ConfigError, match="is built"):
        seen[2].shape
    with pytest.raises(hr.ConfigError, match="is built"):
        seen[3].relu(seen[2])


def test_what_a_net_raises_arrives(easy):
    strategy = train.Strategy("cpu", announce=False)
    with pytest.raises(ZeroDivisionError):
        strategy.build(lambda g: 1 / 0, data=easy)
    with pytest.raises(hr.ConfigError, match="in place of a node"):
        strategy.build(lambda g: None, data=easy)
    with pytest.raises(hr.ConfigError, match="a function of a graph"):
        strategy.build(7, data=easy)
    with pytest.raises(hr.ConfigError, match="activation"):
        strategy.build(lambda g: g.dense(g.flatten(g.input("image")), 2, activation="rellu"), data=easy)


# --------------------------------------------------------------------------------------------------- variables


def test_variables_are_arrays(batches):
    model = compiled(batches)
    assert model.variable_names == ["conv/weights", "conv/bias", "dense/weights", "dense/bias"]
    values = np.random.default_rng(0).normal(size=model.variable_shape("dense/weights")).astype(np.float32)
    model.write_variable("dense/weights", values)
    assert np.array_equal(model.read_variable("dense/weights"), values)
    with pytest.raises(hr.ConfigError, match="has the shape"):
        model.write_variable("dense/weights", values[:-1])
    with pytest.raises(hr.ConfigError, match="dense/wieghts"):
        model.read_variable("dense/wieghts")
    assert set(model.freeze("conv/*")) == {"conv/weights", "conv/bias"} == set(model.frozen_variables)
    model.compile(optimizer=train.adam(1e-2))
    before = model.read_variable("conv/weights")
    model.fit(batches, verbose=0)
    assert np.array_equal(model.read_variable("conv/weights"), before)


def test_metrics_are_of_what_the_results_are():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 8)).astype(np.float32)
    weights = rng.normal(size=(4, 8)).astype(np.float32)
    shares = (x @ weights.T + rng.normal(size=(400, 4)) > 0).astype(np.float32)
    one = shares[:, 0].astype(np.int64)

    def model(outputs, loss, metrics=("accuracy",), activation=None):
        made = train.Strategy("cpu", announce=False).build(
            lambda g: g.dense(g.input("x", (8,)), outputs, activation=activation, name="o"))
        made.compile(loss=loss, metrics=metrics)
        made.write_variable("o/weights", weights[:outputs])
        return made

    def rank_area(scores, positive):
        above = scores[positive][:, None] > scores[~positive][None, :]
        return above.mean()

    data = hr.from_arrays({"x": x, "label": shares}).batch(40)
    binary = hr.from_arrays({"x": x, "label": one}).batch(40)
    logits = x @ weights.T
    for activation, task in ((None, "multi_label, from logits"), ("sigmoid", "multi_label, from probabilities")):
        made = model(4, train.binary_crossentropy(from_logits=activation is None), ["accuracy", "auc", "recall"], activation)
        found = made.evaluate(data)
        assert made.tasks == {next(iter(made.tasks)): task} and task.split(",")[0] in made.summary()
        assert found["accuracy"] == pytest.approx(((logits > 0) == (shares > 0)).mean(), abs=1e-9)
        areas = [rank_area(logits[:, c], shares[:, c] > 0) for c in range(4)]
        assert found["auc"] == pytest.approx(np.mean(areas), abs=5e-3)
        assert found["recall"] == pytest.approx(np.mean([(logits[shares[:, c] > 0, c] > 0).mean() for c in range(4)]))
        assert made.predict(data).predicted is None and made.predict(data).task == "multi_label"
    made = model(1, train.binary_crossentropy(), ["accuracy", "confusion_matrix", "binary_accuracy"])
    found, right = made.evaluate(binary), ((logits[:, 0] > 0) == (one == 1)).mean()
    assert found["accuracy"] == found["binary_accuracy"] == right
    assert found["confusion_matrix"].trace() / 400 == right and found["confusion_matrix"][1].sum() == one.sum()
    assert ((made.predict(binary).predicted == one[made.predict(binary).records]).mean()) == right
    assert made.classify(binary).confusion_matrix.trace() / 400 == right
    for outputs, loss, activation, text in (
            (1, train.binary_crossentropy(), "sigmoid", "gives probabilities.*from_logits=False"),
            (1, train.sparse_categorical_crossentropy(), None, "binary_crossentropy"),
            (4, train.mean_squared_error(), None, "accuracy is of results that are .*regression"),
            (4, None, "sigmoid", "gives probabilities")):
        with pytest.raises(hr.ConfigError, match=text):
            model(outputs, loss, activation=activation)
    made = model(4, train.mean_squared_error().for_task("multi_label"), activation="sigmoid")
    assert made.evaluate(data)["accuracy"] == pytest.approx(((logits > 0) == (shares > 0)).mean(), abs=1e-9)


def test_a_model_is_saved_and_restored(batches, easy, tmp_path):
    model = compiled(batches)
    model.fit(batches, epochs=2, verbose=0)
    model.save(tmp_path / "net.safetensors")
    again = train.restore_model(train.Strategy("cpu:2", announce=False), tmp_path / "net.safetensors")
    assert again.weights_sha256() == model.weights_sha256()
    assert again.evaluate(easy.batch(32))["loss"] == pytest.approx(model.evaluate(easy.batch(32))["loss"], rel=1e-6)
    other = compiled(batches)
    other.load_weights(tmp_path / "net.safetensors")
    assert other.weights_sha256() == model.weights_sha256()


def test_a_training_goes_on_with_the_same_bits(batches, tmp_path):
    whole = compiled(batches)
    expected = whole.fit(batches, epochs=3, verbose=0)
    compiled(batches).fit(batches, epochs=1, verbose=0, checkpoints=tmp_path)
    strategy = train.Strategy("cpu", announce=False)
    again = train.restore_or_create(strategy, tmp_path, lambda: pytest.fail("there is a checkpoint"))
    history = again.fit(batches, epochs=3, verbose=0, checkpoints=tmp_path, resume=True)
    assert history["loss"] == expected["loss"] and again.weights_sha256() == whole.weights_sha256()


# --------------------------------------------------------------------------------------------------- optimizers


def test_schedules_are_functions_of_the_step():
    assert train.linear_decay(1.0, 10, warmup_steps=2)(2) == pytest.approx(1.0)
    assert train.piecewise([1.0, 0.5], [3])(3) == pytest.approx(0.5)
    assert train.exponential_decay(1.0, 0.5, 2)(4) == pytest.approx(0.25)
    assert train.warm_up(4, train.cosine_decay(0.1, 20))(3) == pytest.approx(0.1, rel=1e-3)
    assert train.one_cycle(0.1, 100)(29) == pytest.approx(0.1, rel=1e-3)
    with pytest.raises(hr.ConfigError):
        train.piecewise([1.0], [3])


def test_optimizers_are_values(batches):
    rule = train.of_rank(1) | train.named("dense/*")
    made = train.muon(0.02).group(rule, train.adamw(1e-3)).averaged(decay=0.9)
    assert train.Optimizer.from_json(made.to_json()) == made and json.loads(made.to_json())
    model = compiled(batches, optimizer=made)
    groups = model.parameter_groups
    assert groups["all others"] == ["conv/weights"] and len(groups) == 2
    model.fit(batches, verbose=0)
    assert any(name.endswith(":average") for name in model.optimizer_variable_names)
    assert model.evaluate(batches, averaged_weights=True)["loss"] != model.evaluate(batches)["loss"]
    for wrong in (lambda: train.adam(-1e-3), lambda: train.sgd(0.1, momentum=1.5), lambda: train.adam(beta1=1.0),
                  lambda: train.adamw(beta2=float("nan")), lambda: train.sgd(float("nan")), lambda: train.sgd(nesterov=True),
                  lambda: train.adam(clip_norm=-1.0), lambda: train.adam().averaged(decay=2.0),
                  lambda: train.adam().lookahead(every=0), lambda: train.adam(train.warm_up(3, -0.1)),
                  lambda: train.custom_optimizer(print, -1.0), lambda: train.muon(momentum=-0.5)):
        with pytest.raises(hr.ConfigError):
            wrong()
    with pytest.raises(hr.ConfigError, match="a rule and a learning rate"):
        train.sgd(0.1).group(rule, train.adam(clip_norm=1.0))


# --------------------------------------------------------------------------------------------------- callbacks


def test_a_function_is_called_after_each_epoch(batches, easy):
    seen = []

    def tell(report, control):
        seen.append((report.epoch, report.val_loss, report.values["loss"]))
        control.learning_rate_scale = 0.5
        if report.epoch == 1:
            control.request_stop()

    history = compiled(batches).fit(batches, epochs=5, validation=easy.batch(32), callbacks=[tell], verbose=0)
    assert [epoch for epoch, _, _ in seen] == [0, 1] and history.epochs == 2
    assert [loss for _, _, loss in seen] == history["loss"] and seen[1][1] == history["val_loss"][1]
    assert history["learning_rate"] == pytest.approx([0.01, 0.005])


def test_an_object_is_called_wherever_it_wants(batches):
    class Everything:
        every_steps = 2

        def __init__(self):
            self.calls, self.control = [], None

        def on_train_begin(self, control):
            self.calls.append("begin")

        def on_epoch_begin(self, epoch, control):
            self.calls.append(f"epoch {epoch}")

        def on_step(self, report, control):
            self.calls.append(report.global_step)

        def on_epoch_end(self, report, control):
            self.control = control

        def on_train_end(self, control):
            self.calls.append("end")

    callback = Everything()
    compiled(batches).fit(batches, callbacks=[callback], verbose=0)
    assert callback.calls == ["begin", "epoch 0", 2, 4, 6, "end"]
    with pytest.raises(hr.ConfigError, match="a call that is over"):
        callback.control.request_stop()


def test_a_validation_split_holds_out_the_last_records(easy):
    split, said = compiled(easy.batch(32)), compiled(easy.batch(32))
    history = split.fit(easy.shuffle(3).batch(32), validation_split=0.25, verbose=0)
    count = len(easy) * 3 // 4
    wanted = said.fit(easy.take(count).shuffle(3).batch(32), validation=easy.skip(count).batch(32), verbose=0)
    assert history["val_loss"] == wanted["val_loss"] and split.weights_sha256() == said.weights_sha256()
    with pytest.raises(hr.ConfigError, match="both"):
        split.fit(easy.batch(32), validation=easy.batch(32), validation_split=0.5, verbose=0)


def test_ready_callbacks(batches, easy, tmp_path):
    history = compiled(batches, optimizer=train.sgd(1e-12)).fit(
        batches, epochs=20, validation=easy.batch(32), verbose=0,
        callbacks=[train.early_stopping("val_loss", patience=2), train.csv_logger(tmp_path / "log.csv"),
                   train.tensorboard(tmp_path / "events")])
    assert history.epochs < 20
    assert len((tmp_path / "log.csv").read_text().splitlines()) == history.epochs + 1
    assert any((tmp_path / "events").iterdir())
    rates = compiled(batches).fit(batches, epochs=2, verbose=0,
                                  callbacks=[train.learning_rate_scheduler(lambda epoch: 0.1 / (epoch + 1))])
    assert rates["learning_rate"] == pytest.approx([0.1, 0.05])


def test_what_a_callback_raises_ends_the_fit(batches):
    class Mine(Exception):
        pass

    def fail(report, control):
        raise Mine("enough")

    model = compiled(batches)
    with pytest.raises(Mine, match="enough"):
        model.fit(batches, callbacks=[fail], verbose=0)
    assert model.fit(batches, verbose=0).epochs == 1
    with pytest.raises(hr.ConfigError, match="is no callback"):
        model.fit(batches, callbacks=[object()], verbose=0)


# --------------------------------------------------------------------------------------------------- notebooks


def test_lines_go_to_pythons_stdout(batches, capsys):
    train.Strategy("cpu:2")
    assert "Number of devices: 2" in capsys.readouterr().out
    compiled(batches).fit(batches, epochs=2)
    printed = capsys.readouterr().out
    assert "Epoch 2/2" in printed and printed.count("loss:") == 2


def test_ctrl_c_ends_a_fit_and_its_checkpoint_is_there(batches, tmp_path):
    model = compiled(batches)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.fit(**forever(batches), checkpoints=tmp_path)
    assert time.monotonic() - begin < 20
    assert train.newest_checkpoint(tmp_path) is not None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert model.fit(batches, verbose=0).epochs == 1


class NotebookOut:
    """As ipykernel's OutStream: Python code that writes, in which what signal handlers raise surfaces."""

    def __init__(self, error=None):
        self.error, self.texts = error, []

    def write(self, text):
        time.sleep(0.005)
        self.texts.append(text)
        if self.error is not None and len(self.texts) > 3:
            raise self.error
        return len(text)

    def flush(self):
        for _ in range(100):
            pass

    def isatty(self):
        return False


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_ctrl_c_ends_a_fit_whose_output_is_pythons(batches, tmp_path, monkeypatch, verbose):
    model = compiled(batches)
    monkeypatch.setattr(sys, "stdout", NotebookOut())
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(batches, epochs=100_000, verbose=verbose, checkpoints=tmp_path)
    assert train.newest_checkpoint(tmp_path) is not None


def test_what_the_output_raises_ends_a_fit_and_what_it_cannot_take_does_not(batches, tmp_path, monkeypatch):
    class Mine(BaseException):
        pass

    monkeypatch.setattr(sys, "stdout", NotebookOut(Mine("full")))
    with pytest.raises(Mine, match="full"):
        compiled(batches).fit(batches, epochs=100_000, verbose=2, checkpoints=tmp_path)
    assert train.newest_checkpoint(tmp_path) is not None
    for error in (BrokenPipeError("nobody reads"), OSError("no space"), ValueError("I/O operation on closed file")):
        out = NotebookOut(error)
        monkeypatch.setattr(sys, "stdout", out)
        with pytest.warns(RuntimeWarning, match=f"takes no more text: {type(error).__name__}: {error}"):
            assert compiled(batches).fit(batches, epochs=5, verbose=2).epochs == 5
        assert len(out.texts) == 4, "nothing is written to it afterwards"


def test_a_callback_without_a_reader_leaves_a_checkpoint(batches, tmp_path):
    class Prints:
        every_steps = 2

        def on_step(self, report, control):
            raise BrokenPipeError("nobody reads")

    with pytest.raises(BrokenPipeError):
        compiled(batches).fit(batches, epochs=100_000, verbose=0, checkpoints=tmp_path, callbacks=[Prints()])
    assert train.newest_checkpoint(tmp_path).name.endswith("-2.safetensors")


TERMINATED = """
    import os, signal, sys, threading, time, numpy as np, headrace as hr
    from headrace import train

    how, folder = sys.argv[1:]
    data = hr.from_arrays({"x": np.zeros((64, 4), np.float32), "label": np.arange(64) % 2}).batch(16)
    model = train.Strategy("cpu", announce=False).build(lambda g: g.dense(g.input("x"), 2), data=data)
    model.compile()
    if how == "own":
        signal.signal(signal.SIGTERM, lambda *_: (print("own handler", flush=True), sys.exit(7)))
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
    try:
        model.fit(data, epochs=10**6, verbose=0, checkpoints=None if how == "without" else folder)
    finally:
        print("at the end", flush=True)
"""


@pytest.mark.parametrize("how, status, said", [("with", 143, "at the end\n"), ("own", 7, "own handler\nat the end\n"),
                                               ("without", -signal.SIGTERM, "")])
def test_sigterm_leaves_a_checkpoint_where_one_is_asked_for(tmp_path, how, status, said):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(TERMINATED), how, os.fspath(tmp_path)], capture_output=True,
                          text=True, timeout=120)
    assert (done.returncode, done.stdout) == (status, said), done.stderr
    assert (train.newest_checkpoint(tmp_path) is not None) == (how != "without")
    assert ("headrace: terminated after a checkpoint" in done.stderr) == (how == "with")


FORKED = """
    import os, sys, numpy as np, headrace as hr
    from headrace import train

    data = hr.from_arrays({"x": np.zeros((64, 4), np.float32), "label": np.arange(64) % 2}).batch(16)
    strategy = train.Strategy("cpu:2", announce=False)
    model = strategy.build(lambda g: g.dense(g.input("x"), 2), data=data)
    model.compile()
    model.fit(data, verbose=0)
    feed = strategy.distribute(data)
    batch = next(iter(feed))
    child = os.fork()
    if child == 0:
        for use in (lambda: model.predict(data), lambda: strategy.build(lambda g: g.dense(g.input("x"), 2), data=data)):
            try:
                use()
            except hr.ConfigError as error:
                print(error.message, flush=True)
        del batch
        sys.exit(3)
    print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    model.fit(data, verbose=0)
"""


def test_a_forked_child_leaves_its_parents_model_alone():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(FORKED)], capture_output=True, text=True, timeout=60)
    assert done.stdout == 2 * "this was made before fork(): its threads are not in this process\n" + "child 3\n", done.stderr
    assert done.returncode == 0, done.stderr


def test_damaged_checkpoints_are_named_and_not_trained_over(batches, tmp_path, capsys):
    strategy = train.Strategy("cpu", announce=False)
    create = lambda: compiled(batches)  # noqa: E731
    train.restore_or_create(strategy, tmp_path, create).fit(batches, epochs=2, verbose=0, checkpoints=tmp_path)
    assert capsys.readouterr().out == "Creating a new model\n"
    files = sorted(tmp_path.glob("*.safetensors"), key=lambda file: int(file.stem.split("-")[1]))
    os.truncate(files[-1], 100)
    with pytest.warns(UserWarning, match=f"{files[-1].name}: is cut short"):
        train.restore_or_create(strategy, tmp_path, create)
    assert capsys.readouterr().out == f"Restoring from {files[0]}\n"
    os.truncate(files[0], 100)
    with pytest.raises(hr.DataError, match="holds 2 checkpoints, none of which can be read"):
        train.restore_or_create(strategy, tmp_path, create)
    with pytest.raises(hr.DataError, match="none of which can be read"):
        create().fit(batches, verbose=0, checkpoints=tmp_path, resume=True)


def test_a_folder_of_checkpoints_has_one_training(batches, tmp_path):
    model = compiled(batches)
    model.fit(batches, verbose=0, checkpoints=tmp_path)
    model.fit(batches, verbose=0, checkpoints=tmp_path)
    with pytest.raises(hr.ConfigError, match="holds 2 checkpoints of an earlier training .resume to go on"):
        compiled(batches).fit(batches, verbose=0, checkpoints=tmp_path)
    other = train.Strategy("cpu:2", announce=False).build(net, data=batches)
    other.compile(train.sgd(0.1), precision="bfloat16")
    with pytest.raises(hr.ConfigError, match="precision was f32, is bf16"):
        other.fit(batches, verbose=0, checkpoints=tmp_path, resume=True)


def test_ctrl_c_ends_a_fit_that_waits_for_a_filter(easy):
    def slow(sample):
        judged.set()
        release.wait(30)
        return True

    judged, release = threading.Event(), threading.Event()
    model, data = compiled(easy), easy.filter(slow, name="slow").batch(16)
    threading.Thread(target=lambda: judged.wait(30) and os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(data, verbose=0)
    assert not release.is_set()
    release.set()
    assert model.fit(data, verbose=0).epochs == 1


def test_ctrl_c_ends_a_fit_that_waits_for_data(easy):
    waits = threading.Event()

    def slow(sample):
        if threading.current_thread() is not threading.main_thread():  # which tries it on the first record
            waits.wait(30)
        return sample

    data = easy.map(slow).batch(16)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    release = threading.Timer(3, waits.set)  # the thread that is within Python must come back
    release.start()
    with pytest.raises(KeyboardInterrupt):
        compiled(easy).fit(data, verbose=0)
    release.cancel()
    waits.set()
    assert time.monotonic() - begin < 20


def test_other_threads_run_meanwhile_and_are_kept_from_the_model(batches):
    model, errors, counted = compiled(batches), [], [0]
    begun = threading.Event()

    def meanwhile():
        begun.wait(10)
        try:
            model.evaluate(batches)
        except hr.ConfigError as error:
            errors.append(str(error))
        for _ in range(1000):
            counted[0] += 1

    def until(report, control):
        begun.set()
        if counted[0] == 1000:
            control.request_stop()

    thread = threading.Thread(target=meanwhile)
    thread.start()
    model.fit(**forever(batches), callbacks=[until])
    thread.join()
    assert counted == [1000] and "another thread is using this model" in errors[0]


def test_wrong_options_are_refused(batches):
    model = compiled(batches)
    for options, message in [({"no_such": 1}, "no option 'no_such'"), ({"nan": "maybe"}, "nan"),
                             ({"threads": "two"}, "wrong type"), ({"virtual_shards": 3}, "shards"),
                             ({"on_error": "shrug"}, "shrug")]:
        with pytest.raises(hr.ConfigError, match=message):
            model.fit(batches, verbose=0, **options)
    with pytest.raises(hr.ConfigError, match="metric 'acuracy'"):
        model.compile(metrics=["acuracy"])
    with pytest.raises(hr.ConfigError, match="not a headrace.Dataset"):
        model.fit([1, 2, 3])
    uncompiled = train.Strategy("cpu", announce=False).build(net, data=batches)
    with pytest.raises(hr.ConfigError, match="compile"):
        uncompiled.fit(batches, verbose=0)


def test_models_end_in_any_order(batches):
    for _ in range(3):
        strategy = train.Strategy("cpu:2", announce=False)
        model = strategy.build(net, data=batches)
        del strategy
        model.compile()
        model.fit(batches, verbose=0)
        del model


def test_one_of_several_workers_does_not_train_alone(monkeypatch):
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "1")
    with pytest.raises(hr.ConfigError, match=r"rank 1 of an unknown number of workers \(Kubernetes") as refused:
        train.Strategy("cpu", announce=False)
    assert "Strategy(standalone=True)" in refused.value.hint and "Options" not in refused.value.hint
    assert train.Strategy("cpu", announce=False, standalone=True).world_replicas == 1


# ----------------------------------------------------------------------------------------------------- its records


def write_idx(folder, images, labels, split):
    for name, values in (("images-idx3", images), ("labels-idx1", labels)):
        header = bytes([0, 0, 8, values.ndim]) + b"".join(extent.to_bytes(4, "big") for extent in values.shape)
        (folder / f"{split}-{name}-ubyte").write_bytes(header + values.astype(np.uint8).tobytes())


@pytest.fixture
def digits(tmp_path):
    """Train and test split of a folder that the command can open, too, and the folder."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data"
    folder.mkdir()
    for split, count in (("train", 90), ("t10k", 41)):
        labels = np.arange(count) % CLASSES
        write_idx(folder, 70 * labels[:, None, None] + rng.integers(0, 60, (count, 6, 6)), labels, split)
    return [hr.open(folder, split=split) for split in ("train", "test")], folder


def evaluated(command, record, data, *more):
    return subprocess.run([command, "evaluate", "--record", record, "--data", data, "--devices", "cpu:1", "--json", "-",
                           *more], capture_output=True, text=True)


@pytest.mark.parametrize("saved", ["checkpoint", "with a validation", "save"])
def test_evaluate_gives_the_programs_figures(digits, command, tmp_path, saved):
    (training, testing), folder = digits
    normal = hr.normalize([0.25], [0.5])
    batches = training.shuffle(1).map(hr.flip(), normal).batch(16)
    test = testing.map(normal).batch(16)
    model = compiled(batches, "cpu:1")
    kept = None if saved == "save" else train.Checkpoints(tmp_path / "run")
    model.fit(batches, epochs=2, verbose=0, checkpoints=kept, validation=test if "validation" in saved else None)
    record = train.newest_checkpoint(tmp_path / "run") if kept else tmp_path / "model.safetensors"
    if not kept:
        model.save(record)
    wanted = model.evaluate(test)
    found = json.loads(evaluated(command, record, folder).stdout)
    assert [found[name] for name in ("loss", "accuracy", "examples")] == [
        wanted[name] for name in ("loss", "accuracy", "examples")]
    assert model.evaluate(testing.map(hr.cast("float32")).batch(16))["loss"] != wanted["loss"]


def test_a_plan_with_python_functions_has_to_be_said(digits, command, tmp_path):
    (training, testing), folder = digits
    halved = training.map(lambda sample: {"image": sample["image"].astype(np.float32) / 128})
    model = compiled(halved.batch(16), "cpu:1")
    model.fit(halved.batch(16), verbose=0)
    model.save(tmp_path / "record")
    refused = evaluated(command, tmp_path / "record", folder)
    assert refused.returncode == 2 and "--plan FILE" in refused.stderr and "code" in refused.stderr
    test = testing.map(hr.normalize([0.25], [0.5])).batch(16)
    (tmp_path / "plan.json").write_text(test.evaluation_json())
    wanted = model.evaluate(test)["loss"]
    assert json.loads(evaluated(command, tmp_path / "record", folder, "--plan", tmp_path / "plan.json").stdout)["loss"] == wanted
    model.save(tmp_path / "said", input=test)
    assert json.loads(evaluated(command, tmp_path / "said", folder).stdout)["loss"] == wanted


def test_arrays_that_were_normalised_beforehand_are_not_taken_for_pixels(digits, command, tmp_path):
    rng = np.random.default_rng(0)
    arrays = {"image": rng.normal(size=(32, 6, 6, 1)).astype(np.float32), "label": np.arange(32) % CLASSES}
    batches = hr.from_arrays(arrays).batch(16)
    model = compiled(batches, "cpu:1")
    model.fit(batches, verbose=0)
    model.save(tmp_path / "record")
    refused = evaluated(command, tmp_path / "record", digits[1])
    assert refused.returncode == 2 and "float32" in refused.stderr and "--plan FILE" in refused.stderr


@pytest.mark.parametrize("ours, theirs", [
    ({}, {}),
    ({"adjust_rate": "match_rms_adamw", "nesterov": False}, {"adjust_lr_fn": "match_rms_adamw", "nesterov": False}),
    ({"adjust_rate": "spectral_unclamped", "iterations": 3, "momentum": 0.6, "weight_decay": 0.0},
     {"adjust_lr_fn": "spectral_unclamped", "ns_steps": 3, "momentum": 0.6, "weight_decay": 0.0}),
])
def test_muon_is_pytorchs(ours, theirs):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(7)
    x, label = rng.normal(size=(32, 6)).astype(np.float32), rng.integers(0, 12, 32)
    model = train.Strategy("cpu", announce=False).build(
        lambda g: g.dense(g.dense(g.input("x", (6,)), 20, activation="tanh", name="a"), 12, name="b"), seed=3)
    layers = torch.nn.Linear(6, 20), torch.nn.Linear(20, 12)
    names = [f"{layer}/{part}" for layer in "ab" for part in ("weights", "bias")]
    with torch.no_grad():
        for name, parameter in zip(names, [p for layer in layers for p in layer.parameters()], strict=True):
            parameter.copy_(torch.from_numpy(model.read_variable(name)))
    before = {name: model.read_variable(name) for name in names}
    model.compile(train.muon(0.05, **ours).group(train.of_rank(1), train.sgd(0.05)))
    model.fit(hr.from_arrays({"x": x, "label": label}).batch(32), epochs=4, verbose=0)
    steps = [torch.optim.Muon([layer.weight for layer in layers], 0.05, **theirs),
             torch.optim.SGD([layer.bias for layer in layers], 0.05)]
    for _ in range(4):
        for optimizer in steps:
            optimizer.zero_grad()
        values = layers[1](torch.tanh(layers[0](torch.from_numpy(x))))
        torch.nn.functional.cross_entropy(values, torch.from_numpy(label)).backward()
        for optimizer in steps:
            optimizer.step()
    for name, layer in (("a/weights", layers[0]), ("b/weights", layers[1])):
        moved, expected = model.read_variable(name) - before[name], layer.weight.detach().numpy() - before[name]
        difference = np.linalg.norm(moved - expected) / np.linalg.norm(expected)
        assert difference < 0.06, f"{name}: PyTorch multiplies in bfloat16, but {difference} is more"


def test_muon_moves_nothing_without_a_rate(batches):
    for options, moves in (({}, False), ({"normalize": True}, True)):
        model = compiled(batches, optimizer=train.muon(1e-12, **options).group(train.of_rank(1), train.sgd(1e-12)))
        before = np.linalg.norm(model.read_variable("dense/weights"))
        model.fit(batches, epochs=1, verbose=0)
        after = np.linalg.norm(model.read_variable("dense/weights"))
        assert (abs(after - before) > 1e-6 * before) == moves, options
