"""The exceptions and texts of C++."""

import pickle
import subprocess

import pytest

import headrace as hr


def test_the_family():
    assert issubclass(hr.ConfigError, (hr.HeadraceError, ValueError)) and issubclass(hr.ConfigError, ValueError)
    assert issubclass(hr.DataError, hr.HeadraceError) and issubclass(hr.DataError, OSError)
    assert issubclass(hr.DeviceError, hr.HeadraceError) and issubclass(hr.DeviceError, RuntimeError)


def test_a_text_is_message_and_hint(data):
    with pytest.raises(hr.ConfigError) as caught:
        hr.Loader(data)
    assert str(caught.value) == "the plan has no batches (end it with Dataset.batch())"
    assert caught.value.message == "the plan has no batches" and caught.value.code == "invalid_argument"
    assert caught.value.hint == "end it with Dataset.batch()"


def test_the_text_is_the_commands(command, tmp_path):
    missing = tmp_path / "nothing"
    printed = subprocess.run([command, "doctor", "--data", missing], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT).stdout
    with pytest.raises(hr.HeadraceError) as caught:
        hr.open(missing)
    assert caught.value.message in printed


def test_data_errors_say_where(tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "dog").mkdir()
    (tmp_path / "cat" / "a.png").write_bytes(b"\x89PNG\r\n\x1a\nand then nothing")
    (tmp_path / "dog" / "b.png").write_bytes(b"\x89PNG\r\n\x1a\nand then nothing")
    plan = hr.open(tmp_path).decode().map(hr.center_crop(4)).batch(1)
    with pytest.raises(hr.DataError) as caught:
        hr.Loader(plan).next()
    assert caught.value.record == 0 and str(tmp_path) in caught.value.source
    assert "cat/a.png" in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.record) == (hr.DataError, str(caught.value), 0)


@pytest.mark.parametrize("wrong, message", [
    (lambda data: hr.open("/nowhere", split="validation"), 'split = "validation" is not known'),
    (lambda data: data.map(hr.to_layout("first")), 'one of "channels_first", "channels_last"'),
    (lambda data: data.map(hr.cast("float64")), "float64"),
    (lambda data: data.batch(0), "at least one example"),
    (lambda data: data.shard(2, 2), "must be below"),
    (lambda data: data.repeat(0), "at least one pass"),
    (lambda data: data.filter(), "a function or labels"),
    (lambda data: data.map(3), "cannot be called"),
    (lambda data: hr.Loader(data.batch(2), on_error="ignore"), "ignore"),
    (lambda data: hr.Loader(data.batch(2), world=(2, 5)), "world of 2"),
    (lambda data: hr.Loader(data.batch(2)).next(3), "there are 1 replicas"),
    (lambda data: hr.Loader(data.batch(2), threads=-1), "threads"),
    (lambda data: hr.concatenate(data, 3), "was given int"),
    # Options as Python has them.
    (lambda data: hr.Loader(data.batch(2), threads=3, cpu_budget=2), "threads=3 is more than cpu_budget=2"),
    (lambda data: hr.Loader(data.batch(2), memory_budget_bytes=1), "memory_budget_bytes=1 does not hold"),
    (lambda data: hr.Loader(data.batch(2), convert="device"), "leave it at convert='auto'"),
])
def test_what_is_wrong_is_named(data, wrong, message):
    with pytest.raises(hr.ConfigError) as caught:
        wrong(data)
    assert message in str(caught.value)


def test_unknown_devices_are_named(data):
    with pytest.raises(hr.DeviceError, match="tpu: not supported") as caught:
        hr.Loader(data.batch(2), devices="tpu")
    assert caught.value.device == "tpu" and caught.value.code == "unsupported"


def test_time_outs_name_who_is_waited_for():
    import threading
    import numpy as np
    release = threading.Event()

    def slow(index):
        release.wait(20)
        return {"x": np.int64(index)}

    loader = hr.Loader(hr.from_function(slow, 4, fields={"x": "int64"}, name="slow").batch(2), stall_timeout_seconds=0.3)
    with pytest.raises(hr.HeadraceError, match="was not there after 0.3 s") as caught:
        loader.next()
    assert caught.value.code == "timeout"
    release.set()
