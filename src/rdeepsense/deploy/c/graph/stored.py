"""A graph in the type that its weights are stored in, and what that computes.

Weights of Linear layers, convolutions and recurrent layers are float32, or int8 with one factor for
each output, and then layers round what they read to bytes (`rounded`); everything else, states
among it, is float32. On a device

    z = (x - centre) per_scale + offset

in float32, where the offset is what the float32 centre lacks of the true one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats, Singles
from rdeepsense.deploy.c.graph.rounded import LARGEST_BYTE, Reads, Weighted, as_rounded, reads_of
from rdeepsense.deploy.folded.graph.graph import Graph
from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.folded.graph.node import Node
from rdeepsense.deploy.folded.graph.stream import Stream
from rdeepsense.errors import InputError
from rdeepsense.guard import REACH

DTYPES = ("float32", "int8")


@dataclass(frozen=True)
class StoredGraph:
    """A graph whose weights are numbers of their type, in float64."""

    dtype: str
    centre: Singles
    per_scale: Singles
    offset: Singles
    graph: Graph
    stream: Stream | None
    reach: float = REACH
    embedding: None = None
    layers: tuple[()] = ()

    def raw(self, X: NDArray[Any]) -> Floats:
        """Compute what `Graph.raw` gives, with the weights as stored.

        C goes interval by interval where there is a stream, so these are what is rounded.
        """
        if self.stream is None:
            return self.graph.raw(X)
        return self.stream.raw(self.stream.found(self.graph.read(X)))


def as_stored(folded: FoldedGraph, dtype: str) -> StoredGraph:
    """Round the weights of a graph, and of its stream."""
    if dtype not in DTYPES:
        accepted = ", ".join(map(repr, DTYPES))
        raise InputError(f"dtype={dtype!r} is for fully-connected networks; accepted: {accepted}")
    graph, stream = folded.graph, folded.stream
    with np.errstate(over="ignore", divide="ignore"):
        centre = graph.centre.astype(np.float32)
        per_scale = (1 / graph.scale).astype(np.float32)
        offset = ((centre - graph.centre) / graph.scale).astype(np.float32)
    bad = ~(np.isfinite(centre) & np.isfinite(per_scale) & (per_scale > 0) & np.isfinite(offset))
    if bad.any():
        column = int(np.argmax(bad))
        raise InputError(
            f"input {column} has mean {graph.centre[column]:g} and standard deviation "
            f"{graph.scale[column]:g}, which float32 cannot hold; change its unit"
        )
    if stream is not None:
        stream = replace(
            stream,
            interval=_all(stream.interval, dtype, raw=True),
            step=_all(stream.step, dtype, raw=False),
            last=_all(stream.last, dtype, raw=False),
        )
    nodes = _all(graph.nodes, dtype, raw=True)
    return StoredGraph(dtype, centre, per_scale, offset, replace(graph, nodes=nodes), stream)


def bytes_of(weight: Floats) -> tuple[NDArray[np.int8], Singles]:
    """Return whole numbers from -127 to 127, and the factor of each output; exact if repeated."""
    largest = np.abs(weight.reshape(len(weight), -1)).max(1)
    factor = np.where(largest > 0, largest / LARGEST_BYTE, 1.0).astype(np.float32)
    shape = (-1, *[1] * (weight.ndim - 1))
    whole = np.rint(weight / factor.astype(np.float64).reshape(shape))
    return np.clip(whole, -LARGEST_BYTE, LARGEST_BYTE).astype(np.int8), factor


def _all(nodes: tuple[Node, ...], dtype: str, raw: bool) -> tuple[Node, ...]:
    reads = reads_of(nodes, raw)
    return tuple(
        _stored(node, dtype, own) if isinstance(node, Weighted) else node
        for node, own in zip(nodes, reads, strict=True)
    )


def _stored(node: Weighted, dtype: str, reads: Reads) -> Node:
    if dtype != "int8":
        return replace(node, weight=node.weight.astype(np.float32).astype(np.float64))
    whole, factor = bytes_of(node.weight)
    shape = (-1, *[1] * (node.weight.ndim - 1))
    return as_rounded(replace(node, weight=whole * factor.astype(np.float64).reshape(shape)), reads)
