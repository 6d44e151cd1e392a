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


@pytest.mark.parametrize("document", ["README.md", "MIGRATION.md"])
def test_names_in_documents_exist(document):
    code = re.findall(r"`([^`\n]+)`|```python\n(.*?)```", (DOCUMENTS / document).read_text(), re.S)
    used = {found for pieces in code for piece in pieces
            for found in re.findall(rf"(?<![\w.])({'|'.join(OWNERS)})\.([a-zA-Z]\w*)", piece)}
    assert len(used) > 50
    assert sorted(f"{owner}.{name}" for owner, name in used if not hasattr(OWNERS[owner], name)) == []
