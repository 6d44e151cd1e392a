"""What objects say of themselves, in a line and in a notebook."""

import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import headrace as hr


def html_of(shown):
    """The elements by tag; it must be well-formed."""
    root = ElementTree.fromstring(shown._repr_html_())
    return lambda tag: ["".join(element.itertext()) for element in root.iter(tag)]


def rows_of(shown):
    root = ElementTree.fromstring(shown._repr_html_())
    return [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]


# ------------------------------------------------------------------------------------------------------- the engine


def test_a_loader_says_what_it_gives_and_where_it_stands(data):
    loader = hr.Loader(data.batch(30), devices="cpu:2", epochs=3)
    fields = "image: uint8 (8, 8, 3), label: int64 ()"
    assert repr(loader) == f"<headrace.Loader {fields}; batches of 30 on cpu:0, cpu:1; epoch 0, step 0 of 4>"
    for _ in range(5):
        loader.next(0), loader.next(1)
    assert repr(loader).endswith("; epoch 1, step 1 of 4>")
    loader.close()
    assert repr(loader) == f"<headrace.Loader {fields}; batches of 30 on cpu:2; closed>"


def test_a_loader_of_a_part_says_which(data):
    assert "on cpu:0 (replicas 2 to 2 of 4); epoch 0" in repr(hr.Loader(data.batch(20), world=(4, 2)))


def test_a_loader_of_a_stream_counts_batches():
    stream = hr.from_generator(lambda: ({"x": np.float32(i)} for i in range(5)), fields={"x": "float32"})
    with hr.Loader(stream.batch(2)) as loader:
        assert repr(loader) == "<headrace.Loader x: float32 (); batches of 2 on cpu:0; after 0 batches>"
        loader.next()
        assert repr(loader).endswith("; after 1 batch>")


def test_a_batch_says_where_it_is_from(data):
    loader = hr.Loader(data.batch(30), devices="cpu:2", epochs=2)
    for _ in range(6):
        loader.next(0)
        batch = loader.next(1)
    assert repr(batch) == ("Batch(image: uint8 (15, 8, 8, 3), label: int64 (15,); 15 examples, epoch 1, step 1, "
                           "replica 1 on cpu:1)")


def test_a_batch_that_python_made_says_the_same(data):
    doubled = data.batch(10).map(hr.function(lambda b: {"label": b["label"] * 2}, batched=True))
    assert repr(next(iter(doubled))).endswith("label: int64 (10,); 10 examples, epoch 0, step 0, replica 0 on cpu:0)")


def test_a_dataset_says_its_fields_and_batch(data):
    assert repr(data) == "<headrace.Dataset image: uint8 (8, 8, 3), label: int64 ()>"
    assert repr(data.batch(12)).endswith("label: int64 (); batches of 12>")


def test_a_plan_that_cannot_run_shows_why():
    images = hr.from_function(lambda i: {"x": np.zeros(i + 1, np.float32)}, 3, fields={"x": ("float32", (None,))})
    broken = images.batch(2)
    assert repr(broken).startswith("<headrace.Dataset that cannot run: batch(): field 'x' (?,) differs in length")
    assert "use padded_batch()" in broken._repr_html_()


def test_looking_at_a_plan_reads_nothing():
    def refuse(index):
        raise AssertionError("it was read")

    plan = hr.from_function(refuse, 10, fields={"x": "float32"}).filter(refuse).shuffle().batch(2)
    assert "x: float32" in repr(plan) and "filter" in plan._repr_html_()


def test_a_plan_is_a_table_of_its_stages(data):
    plan = data.shuffle(7).map(hr.pad_crop(8, 1), hr.flip()).batch(16).map(hr.function(lambda b: b, batched=True))
    rows = rows_of(plan)
    assert [row[0] for row in rows] == ["stage", "source", "shuffle", "pad_crop", "flip", "\u2192 image", "\u2192 label",
                                        "batch", "prefetch", rows[-1][0]]
    assert rows[2] == ["shuffle", "seed=7, reshuffle_each_epoch=true", "on indices"] and rows[5][1] == "uint8 (8, 8, 3), channels last"
    assert "Python, in the thread that takes the batch" in rows[-1][0]


def test_names_are_escaped_in_html(images):
    plan = hr.from_arrays({"image": images}, name="<script>alert(1)</script> & 'co'")
    assert "<script>" not in plan._repr_html_()
    assert any("<script>alert(1)</script> & 'co'" in cell for cell in html_of(plan)("td"))


def test_names_of_fields_do_not_play_with_the_terminal():
    data = hr.from_arrays({"e\x1b[31m\n\u202e": np.zeros((4, 2), np.uint8)})
    batch = next(iter(data.batch(2)))
    for shown in (data, data.batch(2), hr.Loader(data.batch(2)), batch):
        assert "e\\x1b[31m\\n\\u202e: uint8" in repr(shown)


def test_everything_public_tells_what_it_is(data):
    shown = [hr.Cache(), data, data.batch(4), hr.flip(), hr.function(len, name="f"), hr.Loader(data.batch(4)),
             next(iter(data.batch(4))), next(iter(data.batch(4)))["image"], data.fields["image"]]
    for one in shown:
        assert not re.search(r"object at 0x|_core|_native", repr(one)), repr(one)


# ------------------------------------------------------------------------------------------------------- the trainer

train = pytest.importorskip("headrace.train", reason="a wheel without the trainer")


def test_a_history_says_its_last_values():
    history = train.History({"accuracy": [0.5, 0.75], "loss": [1.25, 0.40214], "val_loss": [1.5, math.nan], "steps": [4, 4],
                             "examples_per_second": [1e5, 123456.7]})
    assert repr(history) == ("<headrace.train.History of 2 epochs: loss 0.4021, val_loss nan, accuracy 0.7500, steps 4, "
                             "examples_per_second 123,457>")
    assert repr(train.History()) == "<headrace.train.History of 0 epochs>"
    assert dict(history)["loss"] == [1.25, 0.40214]


def test_a_history_is_a_table_with_curves():
    history = train.History({"loss": [3.0, 2.0, 1.0], "val_loss": [3.5, math.inf, 1.5], "<top>": [0.1, 0.2, 0.3],
                             "seconds": [1.0, 1.0, 1.0]})
    rows = rows_of(history)
    assert rows[0] == ["epoch", "loss", "val_loss", "<top>", "seconds"]
    assert rows[2] == ["2", "2", "inf", "0.2000", "1"]
    html = history._repr_html_()
    root = ElementTree.fromstring(html)
    assert [len(line.get("points").split()) for line in root.iter("polyline")] == [3, 2, 3]
    assert html_of(history)("figcaption") == ["loss, 1 to 3.500: training, validation", "<top>, 0.1000 to 0.3000: training"]


def test_a_short_history_has_no_curve_and_a_long_one_its_end():
    assert "<svg" not in train.History({"loss": [1.0]})._repr_html_()
    assert rows_of(train.History())[0] == ["epoch"]
    long = train.History({"loss": [float(i) for i in range(200)]})
    rows = rows_of(long)
    assert len(rows) == 51 and rows[1][0] == "151" and rows[-1][0] == "200"
    assert "The last 50 of 200 epochs." in long._repr_html_()


def test_everything_public_of_the_trainer_tells_what_it_is(data, tmp_path):
    shown = [train.adam(), train.accuracy(), train.mean_squared_error(), train.of_rank(1), train.Checkpoints(tmp_path),
             train.early_stopping(), train.csv_logger(tmp_path / "log.csv"), train.tensorboard(tmp_path),
             train.learning_rate_scheduler(lambda epoch: 0.1), train.reduce_lr_on_plateau(), train.Schedule(0.1),
             train.warm_up(5, train.cosine_decay(0.1, 100))]

    def net(graph):
        pixels = graph.flatten(graph.input("image"))
        shown.extend([graph, pixels])
        assert re.fullmatch(r"Node\(flatten: \(192,\)\)", repr(pixels)), repr(pixels)
        return graph.dense(pixels, 10)

    def look(report, control):
        shown.extend([report, control, repr(report), repr(control)])

    batches = data.batch(20)
    strategy = train.Strategy("cpu:2", announce=False)
    model = strategy.build(net, data=batches)
    model.compile()
    history = model.fit(batches, epochs=1, callbacks=[look], verbose=0)
    shown += [strategy, model, history]
    for one in shown:
        assert not re.search(r"object at 0x|_core|_native", repr(one)), repr(one)
    assert repr(model).startswith("<headrace.train.Model: 1,930 parameters, global step 5; MirroredStrategy over cpu:0")
    assert 'warm_up' in repr(shown[11]) and '0.1' in repr(shown[10])
    assert any(text.startswith("'EpochReport(epoch=0, steps=5, loss=") for text in map(repr, shown))
