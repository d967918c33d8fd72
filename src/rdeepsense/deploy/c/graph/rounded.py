"""Layers of bytes: whole weights with a factor for each output, and what they read rounded as well.

Of a vector x that such a layer reads, with its largest size t = max |x|,

    q = floor(x 255 / t + 1/2),   or with signs   q = floor(x 127 / t + 128 + 1/2) - 128

are multiplied, and x is taken for q t / 255, or q t / 127. A Linear layer rounds each row by
itself, a convolution all that it reads at once, a recurrent layer its states. Layers that read what
no layer has made yet, inputs or spectra, of which some may be far larger than others, have two
bytes:

    q = floor(x levels / t + levels + 3/2) - (levels + 1)

with at most 32,767 levels, and so few that sums of products stay within 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.graph.node import Node
from rdeepsense.deploy.folded.graph.pointwise import Activation
from rdeepsense.deploy.folded.graph.recurrent import Gru, Lstm, Recurrent
from rdeepsense.deploy.folded.graph.weighted import Convolution, Linear

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

    def run(self, *values: Floats) -> Floats:
        x = values[0].reshape(len(values[0]), -1, self.weight.shape[1])
        return super().run(rounded(x, self.levels).reshape(len(x), -1))


@dataclass(frozen=True)
class RoundedConvolution(Convolution):
    levels: int = 0

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


def as_rounded(node: Node, raw: bool) -> Node:
    """Return the layer that rounds what it reads; with `raw` to two bytes."""
    own = {field.name: getattr(node, field.name) for field in fields(node)}
    if raw and isinstance(node, Linear | Convolution):
        own["levels"] = levels_of(node.weight.size // len(node.weight))
    return ROUNDED[type(node)](**own)


def raw_reads(nodes: tuple[Node, ...], raw: bool) -> tuple[bool, ...]:
    """Tell of each step whether it reads what no layer has made; `raw`: whether the row is so."""
    values = [raw]
    found = []
    for node in nodes:
        found.append(any(values[read] for read in node.reads))
        bounded = isinstance(node, Activation) and node.name != "relu"
        values.append(found[-1] and not bounded and type(node) not in ROUNDED)
    return tuple(found)
