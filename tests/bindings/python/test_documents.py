"""The names that the documents use are there."""

import pathlib
import re

import pytest

import headrace as hr
from headrace import train

DOCUMENTS = pathlib.Path(__file__).resolve().parents[3] / "bindings/python"
# Methods of the graph, the model and the trainer are looked for in the classes of these prefixes.
OWNERS = {"hr": hr, "train": train, "g": train.Graph, "model": train.Model, "strategy": train.Strategy,
          "trainer": train.Trainer}


def names_in(code):
    """Pairs of owner and name. Code that assigns `train` means its own pipeline, not the module."""
    found = re.findall(rf"(?<![\w./])({'|'.join(OWNERS)})\.([a-zA-Z]\w*)", code)
    return {(owner, name) for owner, name in found if owner != "train" or not re.search("^train = ", code, re.M)}


def ours(text):
    """The text of MIGRATION.md without the first cells of its tables, which hold the other library's lines."""
    return re.sub(r"^\| .*? \|", "|", text, flags=re.M)


@pytest.mark.parametrize("document", ["README.md", "MIGRATION.md"])
def test_names_in_documents_exist(document):
    text = (DOCUMENTS / document).read_text()
    pieces = re.findall(r"```python\n.*?```|`[^`\n]+`", ours(text) if document == "MIGRATION.md" else text, re.S)
    used = set().union(*map(names_in, pieces))
    assert len(used) > 50
    assert sorted(f"{owner}.{name}" for owner, name in used if not hasattr(OWNERS[owner], name)) == []
