"""Layers of bytes: whole weights with a factor for each output, and what they read rounded as well.

Of a vector x that such a layer reads, with its largest size t = max |x|,

    q = floor(x 255 / t + 1/2),   or with signs   q = floor(x 127 / t + 128 + 1/2) - 128

are multiplied, and x is taken for q t / 255, or q t / 127. A Linear layer rounds each row by
itself, a convolution all that it reads at once, a recurrent layer its states. Layers that read what
no layer has made yet, inputs or spectra, of which some may be far larger than others, have two
bytes:

    q = floor(x levels / t + levels + 3/2) - (levels + 1)

with at most 32,767 levels, and so few that sums of products stay within 32 bits. `signed` says
whether there may be signs at all; where there are none, C needs no sums of weights.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.graph.node import Node
from rdeepsense.deploy.folded.graph.pointwise import Activation, Affine
from rdeepsense.deploy.folded.graph.recurrent import Gru, Lstm, Recurrent
from rdeepsense.deploy.folded.graph.spectrum import Spectrum
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
