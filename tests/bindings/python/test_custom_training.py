"""headrace.train: custom training loops."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace import train

EXAMPLES, CLASSES = 90, 3
PROGRAM = Path(__file__).resolve().parents[3] / "bindings/python/examples/custom_training.py"


@pytest.fixture
def batches(easy):
    return easy.shuffle(1).batch(16)  # the last one has 10, of several replicas with padding


def net(g):
    x = g.conv(g.input("image"), 4, activation="relu")
    return g.dense(g.dropout(g.flatten(g.max_pool(x, 2)), 0.1), CLASSES)


def compiled(data, devices="cpu:2", **options):
    model = train.Strategy(devices, announce=False).build(net, data=data, seed=1)
    model.compile(**({"optimizer": train.adam(1e-2)} | options))
    return model


def loop_of(model, data, **options):
    distributed = model.strategy.distribute(data, epochs=options.pop("epochs", 1))
    return train.Trainer(model, distributed, **options), distributed


def softmax_gradient(logits, labels):
    """Of the sum of the crossentropies by the logits, and each example's loss."""
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    losses = -np.log(shares[np.arange(len(labels)), labels])
    return shares - np.eye(logits.shape[1])[labels], losses


# ------------------------------------------------------------------------------------------------- the step in pieces


@pytest.mark.parametrize("devices", ["cpu", "cpu:3"])
@pytest.mark.parametrize("way", ["step", "train_step", "pieces", "forward"])
def test_a_loop_gives_the_weights_of_fit(batches, devices, way):
    fitted = compiled(batches, devices)
    history = fitted.fit(batches, epochs=2, verbose=0)
    model = compiled(batches, devices)
    trainer, distributed = loop_of(model, batches, epochs=2)

    def pieces(taken):
        trainer.gradients(taken) if way == "pieces" else (trainer.forward(taken), trainer.backward())
        trainer.all_reduce()
        trainer.apply_gradients()

    for epoch in range(2):
        trainer.reset_metrics()
        if way == "step":
            assert all(trainer.step() for _ in range(len(distributed)))
        else:
            for taken in distributed:
                trainer.train_step(taken) if way == "train_step" else pieces(taken)
        found = trainer.finish()
        assert [found[name] for name in ("loss", "accuracy")] == [history[name][epoch] for name in ("loss", "accuracy")]
        assert found["examples"] == EXAMPLES
    assert trainer.take() is None and list(distributed) == []
    assert model.weights_sha256() == fitted.weights_sha256() and model.global_step == 2 * len(distributed)


def test_a_loss_of_ones_own_is_that_of_the_library(batches):
    """With its value and gradient written in NumPy; the weights differ by rounding alone."""
    fitted, model = compiled(batches), compiled(batches)
    history = fitted.fit(batches, verbose=0)
    strategy, (trainer, distributed) = model.strategy, loop_of(model, batches)
    loss = 0.0
    for taken in distributed:
        passed = trainer.forward(taken)

        def work(replica):
            examples = passed.examples(replica.index)
            logits = replica.read(passed.predictions(replica.index))
            labels = replica.read(passed.labels(replica.index))
            wanted = np.zeros_like(logits)
            wanted[:examples], losses = softmax_gradient(logits[:examples], labels[:examples])
            place = passed.prediction_gradients(replica.index)
            replica.write(place, wanted * passed.gradient_scale)
            assert losses == pytest.approx(passed.example_losses(replica.index), abs=1e-5)
            return train.compute_average_loss(losses, passed.global_examples)

        loss += strategy.reduce("sum", strategy.run(work)) * passed.global_examples
        trainer.backward()
        trainer.all_reduce()
        trainer.apply_gradients()
    assert loss / EXAMPLES == pytest.approx(history["loss"][0], rel=1e-5)
    for name in fitted.variable_names:
        assert model.read_variable(name) == pytest.approx(fitted.read_variable(name), abs=1e-4), name
    model.check_mirrored()


def test_gradients_can_be_read_and_changed(batches):
    model = compiled(batches)
    trainer, distributed = loop_of(model, batches)
    name, strategy = "dense/weights", model.strategy
    trainer.gradients(next(iter(distributed)))
    own = strategy.run(lambda replica: replica.read(trainer.gradient(name, replica.index)))
    trainer.all_reduce()
    whole = strategy.run(lambda replica: replica.read(trainer.gradient(name, replica.index)))
    assert np.array_equal(*whole) and whole[0] == pytest.approx(own[0] + own[1], abs=1e-6)
    for variable in model.variable_names:
        strategy.run(lambda replica: replica.write(trainer.gradient(variable, replica.index),
                                                   np.zeros(model.variable_shape(variable))))
    before = model.weights_sha256()
    trainer.apply_gradients()
    assert model.weights_sha256() == before and model.global_step == 1


def test_the_order_of_the_pieces(batches):
    model = compiled(batches)
    trainer, distributed = loop_of(model, batches)
    taken = next(iter(distributed))
    with pytest.raises(hr.ConfigError, match="backward"):
        trainer.backward()
    trainer.gradients(taken)
    assert "taken" in repr(taken)
    with pytest.raises(hr.ConfigError, match="given to a step"):
        trainer.gradients(taken)
    with pytest.raises(hr.ConfigError):
        trainer.apply_gradients()
    trainer.discard_gradients()
    assert model.global_step == 0 and trainer.step()


def test_a_loop_goes_on_where_it_ended(batches, tmp_path):
    whole = compiled(batches)
    trainer, distributed = loop_of(whole, batches, epochs=2)
    while trainer.step():
        pass
    first = compiled(batches)
    trainer, distributed = loop_of(first, batches, epochs=2)
    for _ in range(4):
        trainer.step()
    trainer.finish()
    first.save(tmp_path / "model.safetensors")
    (tmp_path / "state.json").write_text(json.dumps(distributed.state_dict()))
    strategy = train.Strategy("cpu:2", announce=False)
    again = train.restore_model(strategy, tmp_path / "model.safetensors")
    rest = strategy.distribute(batches, epochs=2, start=json.loads((tmp_path / "state.json").read_text()))
    trainer = train.Trainer(again, rest)
    while trainer.step():
        pass
    assert again.weights_sha256() == whole.weights_sha256()


def test_an_evaluator_counts_as_evaluate_does(batches, easy):
    model = compiled(batches, metrics=["accuracy", "confusion_matrix"])
    model.fit(batches, epochs=3, verbose=0)
    test = easy.batch(16)
    wanted = model.evaluate(test)
    distributed = model.strategy.distribute(test, epochs=2)
    evaluator = train.Evaluator(model, distributed)
    for _ in range(2):
        evaluator.reset_metrics()
        for taken in distributed:
            evaluator.evaluate_step(taken)
        found = evaluator.finish()
        assert found["loss"] == wanted["loss"] and found["examples"] == EXAMPLES
        assert np.array_equal(found["confusion_matrix"], wanted["confusion_matrix"])
    with pytest.raises(hr.ConfigError, match="has no gradients"):
        evaluator = train.Evaluator(model, model.strategy.distribute(test))
        evaluator.forward(evaluator.take()).prediction_gradients(0)


# ------------------------------------------------------------------------------------------------- work by replica


def test_run_gives_each_replica_its_share(batches):
    strategy = train.Strategy("cpu:3", announce=False)
    for number, taken in enumerate(strategy.distribute(batches)):
        assert len(taken) == 3 and taken.step == number

        def share(replica):
            assert set(replica.fields) == {"image", "label"} and replica["image"].dtype == np.uint8
            assert len(replica["image"]) == len(replica["label"]) == replica.examples
            return replica.index, replica.examples, replica.device, int(replica["label"].sum())

        shares = strategy.run(share, taken)
        assert [one[0] for one in shares] == [0, 1, 2] and [one[2] for one in shares] == ["cpu:0", "cpu:1", "cpu:2"]
        assert sum(one[1] for one in shares) == taken.examples == strategy.reduce("sum", [one[1] for one in shares])
    assert taken.last_of_epoch


def test_reduce():
    strategy = train.Strategy("cpu:2", announce=False)
    assert strategy.reduce("SUM", [1, 2.5]) == 3.5 and strategy.reduce("mean", [1, 2]) == 1.5
    assert strategy.reduce("max", [np.float32(3), 1]) == 3
    assert np.array_equal(strategy.reduce("sum", [np.ones((2, 2)), 2 * np.ones((2, 2))]), 3 * np.ones((2, 2)))
    for values, message in [([1], "over 2 replicas"), ([1, None], "gave None"), ([[1, 2], [1]], "have the shapes")]:
        with pytest.raises(hr.ConfigError, match=message):
            strategy.reduce("sum", values)
    with pytest.raises(hr.ConfigError, match="op"):
        strategy.reduce("product", [1, 2])


def test_compute_average_loss():
    assert train.compute_average_loss([1.0, 2.0], 4) == 0.75
    with pytest.raises(hr.ConfigError):
        train.compute_average_loss(1.5, 4)


def test_on_one_replica():
    strategy = train.Strategy("cpu:2", announce=False)
    assert strategy.on("cpu:1", lambda replica: replica.index) == 1 == strategy.on(1, lambda replica: replica.index)
    with pytest.raises(hr.ConfigError, match="it has"):
        strategy.on("cuda:7", lambda replica: 0)


def test_what_a_function_raises_arrives(batches):
    class Mine(Exception):
        pass

    def fail(replica):
        kept.append(replica)
        raise Mine("enough")

    kept, strategy = [], train.Strategy("cpu:2", announce=False)
    with pytest.raises(Mine, match="enough"):
        strategy.run(fail)
    assert len(kept) == 1 and strategy.run(lambda replica: replica.index) == [0, 1]
    with pytest.raises(hr.ConfigError, match="a call that is over"):
        kept[0].device
    with pytest.raises(hr.ConfigError, match="has no batch"):
        strategy.run(lambda replica: replica["image"])


def test_tensors_are_those_of_their_replica(batches):
    model = compiled(batches)
    trainer, distributed = loop_of(model, batches)
    passed = trainer.forward(next(iter(distributed)))
    with pytest.raises(hr.ConfigError, match="there is no replica 2"):
        passed.predictions(2)
    with pytest.raises(hr.ConfigError, match="has no output 1"):
        passed.predictions(0, 1)
    trainer, distributed = loop_of(model, batches)
    passed = trainer.forward(next(iter(distributed)))
    with pytest.raises(hr.ConfigError, match="the tensor is of replica 0, this is replica 1"):
        model.strategy.run(lambda replica: replica.read(passed.predictions(0)))


def test_a_trainer_ends_with_what_it_was_made_for(batches, easy):
    model = compiled(batches)
    trainer, distributed = loop_of(model, batches)
    passed = trainer.forward(trainer.take())
    model.compile(train.sgd(0.1))
    for use in (trainer.step, trainer.progress, lambda: passed.predictions(0)):
        with pytest.raises(hr.ConfigError, match="was compiled anew"):
            use()
    trainer, distributed = loop_of(model, batches)
    with pytest.raises(ZeroDivisionError):
        model.strategy.run(lambda replica: 1 / 0)
    with pytest.raises(hr.ConfigError, match="has failed since"):
        trainer.step()
    trainer, distributed = loop_of(model, batches)
    with pytest.raises(hr.ConfigError, match="of other data"):
        trainer.train_step(next(iter(model.strategy.distribute(easy.batch(64)))))
    with pytest.raises(hr.ConfigError, match=r"strategy.distribute\(data\)"):
        train.Trainer(model, batches)
    assert trainer.step()
    distributed.close()
    with pytest.raises(hr.HeadraceError, match="stopped"):
        trainer.step()


def test_values_of_another_shape_are_refused(batches):
    model = compiled(batches)
    trainer, distributed = loop_of(model, batches)
    passed = trainer.forward(next(iter(distributed)))
    with pytest.raises(hr.ConfigError, match=r"values of shape \(3,\) for a tensor of shape \(8, 3\)"):
        model.strategy.on(0, lambda replica: replica.write(passed.prediction_gradients(0), np.zeros(3)))


# ------------------------------------------------------------------------------------------------- training records


def test_a_training_record(batches, easy, tmp_path):
    model = compiled(batches)
    file = tmp_path / "training.safetensors"
    record = train.create_training_record(model, train.sparse_categorical_crossentropy(), train.adam(1e-2), 2, file=file)
    assert record.train(batches, verbose=0).epochs == 2 and record.file == file
    assert record.train(batches, 3, verbose=0).epochs == 3
    with pytest.raises(hr.ConfigError, match="its own checkpoint"):
        record.train(batches, checkpoints=tmp_path)
    strategy, test = train.Strategy("cpu", announce=False), easy.batch(30)
    wanted, found = model.evaluate(test), train.evaluate_record(strategy, file, test)
    assert found["accuracy"] == wanted["accuracy"] and found["loss"] == pytest.approx(wanted["loss"])
    predictions = train.predict_record(strategy, file, test, names=True)
    assert predictions.values == pytest.approx(model.predict(test).values, abs=1e-6)
    assert predictions.names == model.predict(test, names=True).names


def test_a_record_tells_what_is_done_to_its_data(tmp_path):
    for split, count in (("train", 60), ("t10k", 30)):
        labels = np.arange(count) % CLASSES
        write_idx(tmp_path, np.broadcast_to(80 * labels[:, None, None], (count, 6, 6)), labels, split)
    data, test = hr.open(tmp_path), hr.open(tmp_path, "test")
    normal = hr.normalize([0.25], [0.5])
    model = compiled(data.map(normal).batch(20))
    record = train.create_training_record(model, train.sparse_categorical_crossentropy(), train.sgd(0.1), 1,
                                          file=tmp_path / "record")
    record.train(data.map(normal).batch(20), verbose=0)
    found = train.evaluate_record(model.strategy, record.file, test)
    assert found["loss"] == pytest.approx(model.evaluate(test.map(normal).batch(10))["loss"]) and found["examples"] == 30
    with pytest.raises(hr.ConfigError, match="has operations, but no batches"):
        train.evaluate_record(model.strategy, record.file, test.map(normal))


# ------------------------------------------------------------------------------------------------- the example


def write_idx(folder, images, labels, split):
    for name, values in (("images-idx3", images), ("labels-idx1", labels)):
        header = bytes([0, 0, 8, values.ndim]) + b"".join(extent.to_bytes(4, "big") for extent in values.shape)
        (folder / f"{split}-{name}-ubyte").write_bytes(header + values.astype(np.uint8).tobytes())


def test_the_example_trains_as_fit_does(tmp_path):
    for split, count in (("train", 200), ("t10k", 64)):
        labels = np.arange(count) % 10
        images = np.broadcast_to(25 * labels[:, None, None], (count, 28, 28))
        write_idx(tmp_path, images, labels, split)
    done = subprocess.run([sys.executable, PROGRAM, "--data", tmp_path, "--devices", "cpu:2", "--epochs", "2"], text=True,
                          capture_output=True, timeout=120)
    assert done.returncode == 0 and "Epoch 2, Loss: " in done.stdout, done.stderr
    sys.path.insert(0, str(PROGRAM.parent))
    try:
        from custom_training import create_model
    finally:
        sys.path.pop(0)
    model = train.Strategy("cpu:2", announce=False).build(create_model)
    model.compile(train.adam(1e-3))
    model.fit(hr.open(tmp_path).shuffle().batch(64), epochs=2, verbose=0)
    assert done.stdout.split()[-1] == model.weights_sha256()
