"""Nets that are one chain of layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ._errors import config_error
from ._native.train import Graph, Node, layer_kinds

Layer = Callable[[Graph, Node], Node]


class Sequential:
    """A net that is a chain of layers, to be given to Strategy.build().

        net = train.Sequential([
            train.layer("flatten"),
            train.layer("dense", 256, activation="relu"),
            lambda g, x: x + g.relu(x),       # any function of the graph and a node
            train.layer("dense", 10),
        ])

    input: the field of the data that it is applied to; shape: that of one example, None: that of the data given to build().
    """

    def __init__(self, layers: Iterable[Layer] = (), *, input: str = "image", shape: tuple[int, ...] | None = None) -> None:
        self.input, self.shape = input, shape
        self.layers: list[Layer] = []
        for each in layers:
            self.add(each)

    def add(self, layer: Layer) -> Sequential:
        """Appends a layer; gives the chain itself."""
        if not callable(layer):
            raise config_error(f"a {type(layer).__name__} is no layer",
                               "give train.layer('dense', 10), or a function of a graph and a node")
        self.layers.append(layer)
        return self

    def __call__(self, graph: Graph) -> Node:
        node = graph.input(self.input) if self.shape is None else graph.input(self.input, self.shape)
        for number, layer in enumerate(self.layers):
            node = layer(graph, node)
            if not isinstance(node, Node):
                raise config_error(f"layer {number} of the Sequential gave a {type(node).__name__} in place of a node",
                                   "end its function with 'return x', x being what a layer of the graph gave")
        return node

    def __len__(self) -> int:
        return len(self.layers)

    def __bool__(self) -> bool:
        return True


def layer(kind: str, *arguments: Any, **options: Any) -> Layer:
    """A layer of a Sequential: the method of Graph of this name, with the arguments that follow the node."""
    kinds = layer_kinds()
    if kind not in kinds:
        raise config_error(f"there is no layer '{kind}'", f"there are {', '.join(kinds)}; or give a function of a graph "
                                                         "and a node")

    def add(graph: Graph, node: Node) -> Node:
        made: Node = getattr(graph, kind)(node, *arguments, **options)
        return made

    return add
