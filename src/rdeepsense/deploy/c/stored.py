"""Networks of windows as the C stores them: rounded weights and their scales."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats, Singles
from rdeepsense.deploy.folded.graph import (
    Activation,
    Affine,
    Convolution,
    FoldedGraph,
    Graph,
    Gru,
    Linear,
    Lstm,
    Node,
    Recurrent,
    Spectrum,
    Stream,
)
from rdeepsense.errors import InputError
from rdeepsense.guard import REACH

# --------------------------------------------------------------------------------------------------
# Layers of bytes: whole weights with a factor for each output, and what they read rounded as well
#
# Of a vector x that such a layer reads, with its largest size t = max |x|,
#
#     q = floor(x 255 / t + 1/2),   or with signs   q = floor(x 127 / t + 128 + 1/2) - 128
#
# are multiplied, and x is taken for q t / 255, or q t / 127. A Linear layer rounds each row by
# itself, a convolution all that it reads at once, a recurrent layer its states. Layers that read
# what no layer has made yet, inputs or spectra, of which some may be far larger than others, have
# two bytes:
#
#     q = floor(x levels / t + levels + 3/2) - (levels + 1)
#
# with at most 32,767 levels, and so few that sums of products stay within 32 bits. `signed` says
# whether there may be signs at all; where there are none, C needs no sums of weights.
# --------------------------------------------------------------------------------------------------

LEAST = np.float32(1e-30)  # a vector that is nowhere larger counts as zero
MOST_LEVELS = 32_767
LARGEST_BYTE = 127
Weighted = Linear | Convolution | Recurrent


def rounded(x: Floats, levels: int = 0) -> Floats:
    """Round vectors along the last axis, in float32 as C does; `levels` are those of two bytes."""
    narrow = x.astype(np.float32)
    top = np.abs(narrow).max(-1, keepdims=True)
    signed = (narrow < 0).any(-1, keepdims=True)
    most = np.float32(levels) if levels else np.where(signed, np.float32(127), np.float32(255))
    zero = most + np.float32(1) if levels else np.where(signed, np.float32(128), np.float32(0))
    none = top < LEAST
    top = np.where(none, np.float32(1), top)
    whole = np.floor(narrow * (most / top) + (zero + np.float32(0.5))) - zero
    return np.where(none, 0.0, whole.astype(np.float64) * (top / most))


def levels_of(inputs: int) -> int:
    """Return how many levels two bytes may have so that W q of so many inputs fits 32 bits."""
    return min(MOST_LEVELS, ((1 << 31) // (LARGEST_BYTE * inputs) - 1) // 2)


@dataclass(frozen=True)
class RoundedLinear(Linear):
    levels: int = 0
    signed: bool = True

    def run(self, *values: Floats) -> Floats:
        x = values[0].reshape(len(values[0]), -1, self.weight.shape[1])
        return super().run(rounded(x, self.levels).reshape(len(x), -1))


@dataclass(frozen=True)
class RoundedConvolution(Convolution):
    levels: int = 0
    signed: bool = True

    def run(self, *values: Floats) -> Floats:
        return super().run(rounded(values[0], self.levels))


@dataclass(frozen=True)
class RoundedGru(Gru):
    def products(self, h: Floats) -> Floats:
        return super().products(rounded(h))


@dataclass(frozen=True)
class RoundedLstm(Lstm):
    def products(self, h: Floats) -> Floats:
        return super().products(rounded(h))


ROUNDED: dict[type[Node], type[Node]] = {
    Linear: RoundedLinear,
    Convolution: RoundedConvolution,
    Gru: RoundedGru,
    Lstm: RoundedLstm,
}


def as_rounded(node: Node, reads: Reads) -> Node:
    """Return the layer that rounds what it reads."""
    own = {field.name: getattr(node, field.name) for field in fields(node)}
    if isinstance(node, Linear | Convolution):
        inputs = node.weight.size // len(node.weight)
        own["levels"] = levels_of(inputs) if reads.raw else 0
        own["signed"] = reads.signed or reads.raw  # two bytes have an offset always
    return ROUNDED[type(node)](**own)


@dataclass(frozen=True)
class Reads:
    """What is known of a value: that no layer has made it, and that it may have signs."""

    raw: bool
    signed: bool = True


def reads_of(nodes: tuple[Node, ...], raw: bool) -> tuple[Reads, ...]:
    """Tell what each step reads; `raw`: whether the row itself is so."""
    values = [Reads(raw)]
    found = []
    for node in nodes:
        read = [values[k] for k in node.reads]
        found.append(Reads(any(one.raw for one in read), any(one.signed for one in read)))
        values.append(_made(node, found[-1]))
    return tuple(found)


def _made(node: Node, reads: Reads) -> Reads:
    """Tell what is known of the value that a step makes."""
    if isinstance(node, Activation):
        return Reads(reads.raw and node.name == "relu", node.name == "tanh")
    if isinstance(node, Linear | Convolution | Affine):
        return Reads(reads.raw and isinstance(node, Affine), not node.relu)
    if isinstance(node, Recurrent):
        return Reads(raw=False)
    return Reads(reads.raw, reads.signed or isinstance(node, Spectrum))


# --------------------------------------------------------------------------------------------------
# A graph in the type that its weights are stored in, and what that computes
#
# Weights of Linear layers, convolutions and recurrent layers are float32, or int8 with one factor
# for each output, and then layers round what they read to bytes (`rounded`); everything else,
# states among it, is float32. On a device
#
#     z = (x - centre) per_scale + offset
#
# in float32, where the offset is what the float32 centre lacks of the true one.
# --------------------------------------------------------------------------------------------------

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
