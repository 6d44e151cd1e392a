"""The types: what type checkers know is what there is."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import headrace as hr
from headrace import train

PROGRAM = """
    import numpy as np
    import headrace as hr
    from headrace import train

    data = hr.from_arrays({"image": np.zeros((10, 4, 4, 3), np.uint8), "label": np.arange(10)})
    images = hr.open("images", "test", classes_at="parent", columns=["txt"]) if len(data) == 0 else data
    plan = data.shuffle(seed=1).map(hr.pad_crop(4, 1) | hr.flip(), lambda sample: sample).batch(4, drop_remainder=True)
    with hr.Loader(plan, devices="cpu", epochs=None, on_error="skip") as loader:
        for batch in loader:
            shape: tuple[int, ...] = batch["image"].shape
            array = batch.numpy()["label"] + 1
    state: dict[str, object] = loader.state_dict()
    model = train.Strategy("cpu").build(lambda g: g.dense(g.flatten(g.input("image", (4, 4, 3))), 10, name="last"))
    model.compile(train.adam(1e-3, beta1=0.8).averaged(decay=0.99), train.sparse_categorical_crossentropy())
    losses: list[float] = model.fit(plan, epochs=2, threads=2, memory_budget_bytes=1 << 30)["loss"]
"""


def test_a_program_type_checks(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", program], text=True, stdout=subprocess.PIPE, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    for right, wrong, option in [('on_error="skip"', 'on_error="ignore"', "on_error"), ("threads=2", "thread=2", "thread"),
                                 ("beta1=", "beta3=", "beta3"), ("classes_at=", "class_at=", "class_at"),
                                 ('name="last"', "name=3", "dense")]:
        program.write_text(textwrap.dedent(PROGRAM).replace(right, wrong))
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", program], text=True, stdout=subprocess.PIPE,
                              cwd=tmp_path)
        assert done.returncode == 1 and f'"{option}"' in done.stdout, done.stdout


def test_the_stub_says_what_there_is(tmp_path):
    pytest.importorskip("mypy")
    allowed = Path(__file__).with_name("stub_allowances.txt")
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nignore_missing_imports = True\n")  # frameworks that are not installed
    command = [sys.executable, "-m", "mypy.stubtest", "headrace", "--concise", "--ignore-missing-stub",
               "--ignore-disjoint-bases", "--ignore-unused-allowlist", "--mypy-config-file", config, "--allowlist", allowed]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("function", "sentence"), [
    (hr.pad_crop, "pad: Pixels added on each side."), (hr.gaussian_blur, "kernel_size: Pixels a side"),
    (train.adamw, "beta2: The decay of the second moment."), (train.sgd, "clip_norm: The largest norm"),
    (train.one_cycle, "warmup_share: The part of them"), (hr.open, "    label_count: int = 0. How many classes there are"),
    (hr.open, "    columns: collections.abc.Sequence[str] = []. Further columns"), (hr.from_arrow, "    classes: "),
    (hr.Loader, "    threads: int = 0. The maximum of compute threads")])
def test_options_are_explained_in_the_engines_words(function, sentence):
    assert f"\n{sentence}" in function.__doc__


def test_everything_public_has_a_docstring():
    for name in hr.__all__:
        assert getattr(hr, name).__doc__, name
    for kind in (hr.Dataset, hr.Loader):
        for name, member in vars(kind).items():
            if not name.startswith("_") and name not in ("reset_function_times", "dataset"):
                assert member.__doc__, f"{kind.__name__}.{name}"
