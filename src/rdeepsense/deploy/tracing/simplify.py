"""Fewer steps that compute the same: batch norms into weights, ReLU into what it follows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from rdeepsense.deploy.folded.graph.node import Node
from rdeepsense.deploy.folded.graph.pointwise import Activation, Affine
from rdeepsense.deploy.folded.graph.weighted import Convolution, Linear


def simplified(nodes: tuple[Node, ...], result: int) -> tuple[Node, ...]:
    """Join steps, and leave out those that nothing reads; the result is the last."""
    nodes = _used(nodes, result)
    while True:
        readers = Counter(read for node in nodes for read in node.reads)
        for k, node in enumerate(nodes):
            before = node.reads[0] - 1
            if before < 0 or readers[node.reads[0]] != 1:
                continue
            joined = _joined(nodes[before], node)
            if joined is not None:
                changed = [*nodes]
                changed[k] = joined
                nodes = _used(tuple(changed), len(nodes))
                break
        else:
            return nodes


def _joined(first: Node, second: Node) -> Node | None:
    """Return one step in place of two, where there is one."""
    if not isinstance(first, Linear | Convolution | Affine) or first.relu:
        return None
    if isinstance(second, Activation) and second.name == "relu":
        return replace(first, relu=True)
    if isinstance(second, Affine) and isinstance(first, Convolution):
        weight = first.weight * second.scale[:, None, None, None]
        bias = first.bias * second.scale + second.shift
        return replace(first, weight=weight, bias=bias, relu=second.relu)
    return None


def _used(nodes: tuple[Node, ...], result: int) -> tuple[Node, ...]:
    """Leave out what does not lead to the result, and number the values anew."""
    needed = {result}
    for k in range(len(nodes), 0, -1):
        if k in needed:
            needed |= set(nodes[k - 1].reads)
    number = {0: 0}
    kept: list[Node] = []
    for k, node in enumerate(nodes, 1):
        if k in needed:
            kept.append(replace(node, reads=tuple(number[read] for read in node.reads)))
            number[k] = len(kept)
    return tuple(kept)
