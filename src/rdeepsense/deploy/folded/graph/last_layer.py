"""The last layer of a graph, and what it reads of a row."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.graph.graph import Graph
from rdeepsense.deploy.folded.graph.weighted import Linear
from rdeepsense.errors import InputError


def last_layer(graph: Graph) -> Linear:
    """Return the last step, which must be a layer that reads the last hidden numbers at once."""
    node = graph.nodes[-1]
    if not isinstance(node, Linear) or graph.sizes[node.reads[0]] != node.weight.shape[1]:
        raise InputError(
            f"the network ends in a step of kind {node.kind!r}, not in one Linear layer; what it "
            "learns from labels is the last layer's"
        )
    return node


def last_hidden(graph: Graph, X: NDArray[Any]) -> Floats:
    """Compute what the last layer reads of rows, (rows, hidden)."""
    return graph.computed(graph.read(X), last_layer(graph).reads[0])
