"""The numbers that go to the device, in the type they are stored in, and what they compute.

Inputs become z = (x - centre) per_scale in float32 on the device; what the float32 centre and
per_scale lack of the true ones is put into the first layer, and into an embedding, here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats, Singles
from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.folded.laplace import size, triangular
from rdeepsense.deploy.folded.layers import DenseLayer, Layers
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.folded.runner import Outputs, apart
from rdeepsense.deploy.stored_embedding import StoredEmbedding, stored
from rdeepsense.encoding import Encoding
from rdeepsense.errors import InputError
from rdeepsense.guard import REACH

HALF_CHANGE = 2e-3  # of the std, or in probability: what half floats may move a prediction by
DRAWN_ROWS = 256


class StoredNetwork(Protocol):
    """A network in the type that its weights are stored in."""

    @property
    def dtype(self) -> str: ...

    def raw(self, X: NDArray[Any]) -> Floats:
        """Compute what `Folded.raw` gives, as the device does."""


@dataclass(frozen=True)
class NetworkRunner:
    """A stored network in place of the layers of the folded model it was made of."""

    folded: Folded | FoldedGraph
    network: StoredNetwork

    @property
    def facts(self) -> Facts:
        return self.folded.facts

    def run(self, X: NDArray[Any]) -> Outputs:
        return self.folded.finish(self.network.raw(self.facts.inside(np.asarray(X))), X)


@dataclass(frozen=True)
class FloatLayer:
    """Weights (outputs, inputs) as stored; with `gain` their input is multiplied by it first."""

    weight: NDArray[Any]
    bias: Singles
    gain: float = 1.0

    @property
    def dtype(self) -> str:
        return str(self.weight.dtype)


@dataclass(frozen=True)
class FloatNetwork:
    """A network with float32 or float16 weights, float32 sums.

    In one of dtype float16 some layers may be float32, never all.
    """

    dtype: str
    centre: Singles
    per_scale: Singles
    layers: tuple[FloatLayer, ...]
    root: Singles | None = None  # of the laplace; float32 whatever the weights
    reach: float = REACH
    embedding: StoredEmbedding | None = None
    encoding: Encoding | None = None

    def raw(self, X: NDArray[Any]) -> Floats:
        """Compute what `Folded.raw` gives, in float32 as on the device."""
        X = X if self.encoding is None else self.encoding.expand(X)
        z = np.nan_to_num((X.astype(np.float32) - self.centre) * self.per_scale)
        z = h = np.clip(z, -self.reach, self.reach).astype(np.float32)
        if self.embedding is not None:
            h = self.embedding.beside(z)
        before = h[:, :0]  # what the last layer reads, if that is a hidden one
        for layer in self.layers:
            weight = layer.weight.astype(np.float32)
            h = (h * np.float32(layer.gain)) @ weight.T + layer.bias
            if layer is not self.layers[-1]:
                before = h = np.maximum(h, np.float32(0))
        if self.root is not None:
            h = np.hstack([h, size(self.root, before, z)])
        raw: Floats = h.astype(np.float64)
        return raw


def as_float32(folded: Folded) -> FloatNetwork:
    """Round every weight to float32."""
    ready = standardised(folded.layers)
    layers = [
        FloatLayer(layer.weight.astype(np.float32), layer.bias.astype(np.float32))
        for layer in ready.dense
    ]
    return FloatNetwork(
        "float32",
        ready.centre,
        ready.per_scale,
        tuple(layers),
        _root(folded),
        embedding=ready.embedding,
        encoding=ready.encoding,
    )


def as_float16(folded: Folded, X: NDArray[Any]) -> FloatNetwork:
    """Round weights to half floats, each layer times the power of two that fills their range.

    Where that moves a prediction of the rows X (drawn ones if there are none) by more than
    HALF_CHANGE, layers stay float32, smallest first, until it does not; those that turn out not to
    be needed for it are half floats after all. If every layer is needed it is the float32 network.
    """
    wide = as_float32(folded)
    halves = [_halved(layer) for layer in standardised(folded.layers).dense]
    if not len(X):
        drawn = np.random.default_rng(0).normal(size=(DRAWN_ROWS, folded.layers.inputs))
        X = folded.layers.rows_at(drawn)
    X = folded.facts.inside(X)
    wanted = folded.finish(wide.raw(X), X)

    def rounded(kept: list[int]) -> FloatNetwork:
        layers = [wide.layers[k] if k in kept else half for k, half in enumerate(halves)]
        return replace(wide, dtype="float16", layers=tuple(layers))

    def fits(kept: list[int]) -> bool:
        found = folded.finish(rounded(kept).raw(X), X)
        return not apart(wanted, found).max() > HALF_CHANGE

    order = sorted(range(len(halves)), key=lambda k: halves[k].weight.size)
    kept = next(order[:n] for n in range(len(order) + 1) if fits(order[:n]))
    for k in reversed(kept[:-1]):
        without = [one for one in kept if one != k]
        kept = without if fits(without) else kept
    return wide if len(kept) == len(halves) else rounded(kept)


def _halved(layer: DenseLayer) -> FloatLayer:
    largest = float(np.abs(layer.weight).max())
    gain = 2.0 ** (np.ceil(np.log2(largest)) - 15) if largest > 0 else 1.0
    weight = (layer.weight / gain).astype(np.float16)
    return FloatLayer(weight, layer.bias.astype(np.float32), gain)


class Standardised(NamedTuple):
    """Centre and 1 / scale of the inputs, and what reads (x - centre) / scale."""

    centre: Singles
    per_scale: Singles
    dense: list[DenseLayer]
    embedding: StoredEmbedding | None
    encoding: Encoding | None

    def read(self, X: NDArray[Any]) -> Singles:
        """Compute what the first layer reads; 0 where an input is missing."""
        X = X if self.encoding is None else self.encoding.expand(X)
        z = np.nan_to_num((X.astype(np.float32) - self.centre) * self.per_scale)
        return z if self.embedding is None else self.embedding.beside(z)


def standardised(layers: Layers) -> Standardised:
    """Find centre, 1 / scale and layers that take (x - centre) / scale as float32 computes it."""
    with np.errstate(over="ignore", divide="ignore"):
        centre = layers.centre.astype(np.float32)
        per_scale = (1 / layers.scale).astype(np.float32)
    bad = ~(np.isfinite(centre) & np.isfinite(per_scale) & (per_scale > 0))
    if bad.any():
        column = int(np.argmax(bad))
        raise InputError(
            f"input {column} has mean {layers.centre[column]:g} and standard deviation "
            f"{layers.scale[column]:g}, which float32 cannot hold; change its unit"
        )
    first, inputs, off = layers.dense[0], layers.inputs, layers.centre - centre
    weight = first.weight.copy()
    weight[:, :inputs] /= per_scale
    dense = [DenseLayer(weight, first.bias - first.weight[:, :inputs] @ off), *layers.dense[1:]]
    embedding = None
    if layers.embedding is not None:
        scale = layers.scale
        embedding = stored(layers.embedding, -off / scale, 1 / (scale * per_scale))
    return Standardised(centre, per_scale, dense, embedding, layers.encoding)


def _root(folded: Folded) -> Singles | None:
    """Scale the laplace's matrix for (x - centre) per_scale in float32.

    It stays float32 beside half floats: it is an inverse, so its sums may be small differences of
    large numbers.
    """
    laplace, layers = folded.output.laplace, folded.layers
    if laplace is None:
        return None
    root = laplace.root.copy()
    if layers.hidden + 1 < len(root):
        centre, per_scale, *_ = standardised(layers)
        inputs = root[layers.hidden : -1]
        root[-1] -= (layers.centre - centre) / layers.scale @ inputs
        inputs /= (layers.scale * per_scale)[:, None]
    return triangular(root).astype(np.float32)
