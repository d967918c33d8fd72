"""Weights as exports store them: float32, float16, int8, and embeddings as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rdeepsense import arrays
from rdeepsense.arrays import Floats, Singles
from rdeepsense.deploy.folded.graph import FoldedGraph
from rdeepsense.deploy.folded.model import (
    NUMBERS,
    DenseLayer,
    Embedding,
    Facts,
    Folded,
    Layers,
    MeanStd,
    Outputs,
    Probabilities,
    apart,
    size,
    triangular,
)
from rdeepsense.encoding import Encoding
from rdeepsense.errors import InputError
from rdeepsense.guard import EMBEDDING_REACH, REACH

# --------------------------------------------------------------------------------------------------
# Periodic embeddings in 32 bits, with the operations of the C
#
# Angles are counted in periods, so that whole ones are taken off exactly; a sine is a polynomial of
# the quarter that is left. No operation but a product and its sum could be fused: where a compiler
# does not, the numbers here are those of the C to the bit.
# --------------------------------------------------------------------------------------------------

# sin(2 pi t) = t (a_0 + a_1 t^2 + ...) for |t| <= 1/4, of least greatest error (3.4e-9).
SINE = (6.283185005, -41.34165573, 81.60100555, -76.5497818, 39.53670502)


@dataclass(frozen=True)
class StoredEmbedding:
    """c (inputs, frequencies), the W_j transposed (inputs, 2 frequencies, width), b as it was."""

    frequency: Singles
    weight: Singles
    bias: Singles

    @property
    def outputs(self) -> int:
        return self.bias.size

    def beside(self, z: Singles) -> Singles:
        """Compute what the first layer reads, [z, e]; z is finite."""
        each = max(1, NUMBERS // self.weight[:, :, 0].size)
        parts = [self._values(z[k : k + each]) for k in range(0, len(z), each)]
        e = np.concatenate(parts) if parts else np.empty((0, self.outputs), np.float32)
        return np.hstack([z, e])

    def _values(self, z: Singles) -> Singles:
        reach = np.float32(EMBEDDING_REACH)
        waves = sines_cosines(np.clip(z, -reach, reach)[:, :, None] * self.frequency)
        sums = np.repeat(self.bias[None], len(z), 0)
        sine, cosine = np.split(waves, 2, axis=2)
        of_sine, of_cosine = np.split(self.weight, 2, axis=1)
        for f in range(sine.shape[2]):
            sums += sine[:, :, f, None] * of_sine[:, f] + cosine[:, :, f, None] * of_cosine[:, f]
        return np.maximum(sums, np.float32(0)).reshape(len(z), -1)


def sines_cosines(periods: Singles) -> Singles:
    """Compute [sin, cos] of these many periods along the last axis."""
    half, quarter = np.float32(0.5), np.float32(0.25)
    rest = periods - np.trunc(periods + np.copysign(half, periods))
    size = np.abs(rest)
    sine = _sine(quarter - np.abs(size - quarter))
    return np.concatenate([np.where(rest < 0, -sine, sine), _sine(quarter - size)], axis=-1)


def _sine(t: Singles) -> Singles:
    """Compute sin(2 pi t) for |t| <= 1/4."""
    terms, square = [np.float32(a) for a in SINE], t * t
    total = np.full_like(t, terms[-1])
    for term in terms[-2::-1]:
        total = total * square + term
    return total * t


def stored(embedding: Embedding, off: Floats, per: Floats) -> StoredEmbedding:
    """Round an embedding of z to one of z' in 32 bits, where z = z' per + off.

    Only the frequencies hold `per`; with phi = 2 pi c off, which a centre in 32 bits may make
    large, sin(a + phi) = sin(a) cos(phi) + cos(a) sin(phi) goes into the weights. Beyond the reach
    it is z' that is held there: the sines are then those of a row `off` further out.
    """
    phase = 2 * np.pi * (embedding.frequency * off[:, None])[:, None]
    sine, cosine = np.split(embedding.matrices, 2, axis=2)
    turned = np.concatenate(
        [
            sine * np.cos(phase) - cosine * np.sin(phase),
            sine * np.sin(phase) + cosine * np.cos(phase),
        ],
        axis=2,
    )
    return StoredEmbedding(
        (embedding.frequency * per[:, None]).astype(np.float32),
        np.ascontiguousarray(turned.transpose(0, 2, 1), dtype=np.float32),
        embedding.bias.astype(np.float32),
    )


# --------------------------------------------------------------------------------------------------
# Stored weights, and what they compute
#
# Inputs become z = (x - centre) per_scale in float32 on the device; what the float32 centre and
# per_scale lack of the true ones is put into the first layer, and into an embedding, here.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Int8 networks: weights by output channel, activations scaled by row
#
# Inputs are 16-bit steps of their own range (an embedding of them is computed in floats, and counts
# as further inputs), hidden activations bytes, weights whole numbers of at
# most 127 times one scale per output; sums are exact 32-bit integers. The largest activation of a
# layer becomes 255, row by row, so none is ever clipped and small ones are not rounded coarsely.
# Units have a step of their own beside it, from calibration rows, where that helps. The few float32
# operations in between are products, quotients and truncations, one at a time, so the numpy
# arithmetic here and the C agree to the bit. The last layer's sums become floats.
# --------------------------------------------------------------------------------------------------

LEVELS = 32_767  # steps of an input on each side of its centre
LEAST_REACH, MOST_REACH = 8.0, 64.0  # standard deviations; the latter for the guard alone
BYTE = 255
WEIGHT = 127
BLOCK = 64  # outputs that lie together in a packed table
SUM_LIMIT = 2**31 - 1
BIAS_LIMIT = 2.0**29  # of a bias as it is added to sums
FIRST_BIAS, BIAS = 2.0**28, 2.0**24  # in sums of the calibration; what is smaller has more room
LEAST_STEP = 2.0**-16  # of the largest row's; leaves room for corrected biases as well
LEAST_SHARE = 0.05  # of a layer's largest activation, for units that hardly ever fire
EVENNESS = (0.0, 0.25, 0.5, 0.75)
CHOICE_ROWS = 1_024  # are enough to tell ways to round apart
ORDER_ROWS = 512  # are enough to see which units fire together
PAIR = 258  # is what two bytes may add up to where 16 bits hold products of both: 2^15 / WEIGHT
PAIRINGS = np.array([(0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2)])  # of four units


@dataclass(frozen=True)
class Int8Layer:
    """Sums of weight (outputs, inputs) times bytes, plus bias / step; times factor they are units.

    `step` is what a byte of this row's input stands for, 1 for the largest of the calibration. That
    of the output is never smaller than `least`, so that the next layer's bias / step fits.
    """

    weight: NDArray[np.int8]
    bias: Singles
    factor: Singles
    least: float

    def sums(self, q: NDArray[np.int64], step: Singles) -> NDArray[np.int64]:
        bias: NDArray[np.int64] = (self.bias * (np.float32(1) / step)).astype(np.int64)
        return _products(q, self.weight) + bias

    def packed(self) -> NDArray[np.int8]:
        """Pack blocks of outputs, in them groups of four inputs, in them output by output."""
        outputs, inputs = self.weight.shape
        padded = np.zeros((outputs, -(-inputs // 4) * 4), dtype=np.int8)
        padded[:, :inputs] = self.weight
        blocks = [
            padded[start : start + BLOCK].reshape(-1, padded.shape[1] // 4, 4).transpose(1, 0, 2)
            for start in range(0, outputs, BLOCK)
        ]
        return np.concatenate([block.ravel() for block in blocks])


@dataclass(frozen=True)
class Int8Network:
    """A quantised network and its arithmetic."""

    centre: NDArray[np.float32]
    per_step: NDArray[np.float32]  # in halves of a step; of inputs, or of what is embedded as well
    levels: int
    reach: float
    layers: tuple[Int8Layer, ...]
    head_bias: NDArray[np.float32]
    dtype: str = "int8"
    per_scale: NDArray[np.float32] | None = None  # what an embedding needs, as it is
    embedding: StoredEmbedding | None = None
    encoding: Encoding | None = None
    unit: Floats | None = None  # what a step of each last hidden unit stands for, in their order
    order: NDArray[np.intp] | None = None  # which of the trained units they are

    def inputs(self, X: NDArray[Any]) -> NDArray[np.int64]:
        """Round to whole numbers from 0 to 2 levels."""
        X = X if self.encoding is None else self.encoding.expand(X)
        limit = np.float32(2 * self.levels)
        z = X.astype(np.float32) - self.centre
        if self.embedding is not None:
            assert self.per_scale is not None
            z = self.embedding.beside(np.nan_to_num(z * self.per_scale))
        halves = np.clip(np.nan_to_num(z * self.per_step), -limit, limit).astype(np.int64)
        q: NDArray[np.int64] = (halves + 2 * self.levels + 1) >> 1
        return q

    def raw(self, X: NDArray[Any]) -> Floats:
        """Compute the columns of the last layer, bit by bit as in C but for the last addition."""
        q, step = self.inputs(X), np.ones((len(X), 1), np.float32)
        for layer in self.layers[:-1]:
            q, step = to_bytes(layer, q, step)
        last = self.layers[-1]
        sums = last.sums(q, step).astype(np.float32)
        return (sums * (last.factor * step) + self.head_bias).astype(np.float64)


def to_bytes(
    layer: Int8Layer, q: NDArray[np.int64], step: Singles
) -> tuple[NDArray[np.int64], Singles]:
    """Compute a hidden layer: ReLU, bytes of which the largest is 255, and the step they count."""
    h = np.maximum(layer.sums(q, step).astype(np.float32) * layer.factor, np.float32(0))
    top = np.maximum(h.max(1, keepdims=True), np.float32(BYTE * layer.least) / step)
    halves = (h * (np.float32(2 * BYTE) / top)).astype(np.int64)
    return (halves + 1) >> 1, step * top / np.float32(BYTE)


def quantise(folded: Folded, X: NDArray[Any]) -> Int8Network:
    """Round to the integers that agree best with the folded network on these rows."""
    if folded.output.laplace is not None:
        raise InputError(
            "dtype='int8' cannot be exported with epistemic='laplace'; accepted: 'float32', and "
            "for c99 'float16'"
        )
    if not len(X):
        raise InputError("int8 needs rows to calibrate the activations on; give rows=(X, y)")
    X = folded.facts.inside(X)
    ready = standardised(folded.layers)
    units, reach = best_units(folded, X, ready), reach_of(folded, X, ready)
    return together(integers(X, ready, units, reach), X[:ORDER_ROWS])


def scaled(X: NDArray[Any], ready: Standardised) -> Floats:
    """Compute what the first layer reads, as float32 computes it; 0 where an input is missing."""
    z: Floats = ready.read(X).astype(np.float64)
    return z


def reach_of(folded: Folded, X: NDArray[Any], ready: Standardised) -> float:
    """Return how many standard deviations inputs may be out: twice what the rows are, or the guard.

    What the guard lets through is not moved, unless its ranges are too wide for 16 bits.
    """
    reach = max(LEAST_REACH, 2 * float(np.abs(scaled(X, ready)).max()))
    if folded.facts.guard is None:
        return reach
    low, high = folded.facts.guard.low, folded.facts.guard.high
    encoding = folded.layers.encoding
    ends = np.stack([low, high]) if encoding is None else encoding.ends(low, high)
    own = float(np.abs((ends - folded.layers.centre) / folded.layers.scale).max())
    return max(reach, min(1.01 * own, MOST_REACH))


def best_units(folded: Folded, X: NDArray[Any], ready: Standardised) -> list[Floats]:
    """Choose what one step of each hidden unit stands for in the largest row, layer by layer."""
    h, largest = scaled(X, ready), []
    for layer in ready.dense[:-1]:
        h = np.maximum(h @ layer.weight.T + layer.bias, 0.0)
        largest.append(h.max(0))
    X = X[:: -(-len(X) // CHOICE_ROWS)]
    wanted, reach = folded.run(X), reach_of(folded, X, ready)

    def distance(units: list[Floats]) -> float:
        return _distance(wanted, folded.finish(integers(X, ready, units, reach).raw(X), X))

    return min(([_units(top, e) for top in largest] for e in EVENNESS), key=distance)


def together(network: Int8Network, X: NDArray[Any]) -> Int8Network:
    """Reorder hidden units, which keeps every sum: those that fire together in fours.

    Where four inputs of a layer that lie together are all zero, C may skip them; ReLU makes about
    half of the units zero, but in the order of training hardly ever four neighbours.
    """
    q, step, layers = network.inputs(X), np.ones((len(X), 1), np.float32), list(network.layers)
    for k in range(len(layers) - 1):
        layer, after = layers[k], layers[k + 1]
        q, step = to_bytes(layer, q, step)
        order = _paired(q, _fours(q > 0))
        q = q[:, order]
        layers[k] = replace(
            layer,
            weight=layer.weight[order],
            bias=layer.bias[order],
            factor=layer.factor[order],
        )
        layers[k + 1] = replace(after, weight=after.weight[:, order])
    if network.unit is None:
        return replace(network, layers=tuple(layers))
    return replace(network, layers=tuple(layers), unit=network.unit[order], order=order)


def _fours(fires: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Greedily: the quietest unit left, then three times the one that adds fewest rows to it.

    Of units that add about as many, those that fire more often go first: hence half the share.
    """
    rows, units = fires.shape
    of_unit = fires.T.astype(np.float32)
    share = of_unit.mean(1)
    order = np.empty(units, np.intp)
    for place in range(units):
        if place % 4 == 0:
            silent = np.ones(rows, np.float32)  # rows on which no unit of the four fires
        unit = np.argmin(of_unit @ silent / rows - 0.5 * share)
        silent *= 1 - of_unit[unit]
        share[unit] = -np.inf  # taken
        order[place] = unit
    return order


def _paired(q: NDArray[np.int64], order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Reorder the units of each four, so that two neighbours are seldom large on the same rows.

    AVX2 adds the products of two neighbours in 16 bits; those that do not fit cost it twice.
    """
    whole = len(order) // 4 * 4
    ways = order[:whole].reshape(-1, 4)[:, PAIRINGS]  # of each four
    large = (q[:, ways.reshape(-1, 2, 2)].sum(-1) > PAIR).any(-1).sum(0).reshape(ways.shape[:2])
    best = ways[np.arange(len(ways)), large.argmin(1)]
    return np.concatenate([best.ravel(), order[whole:]])


def _distance(wanted: Outputs, found: Outputs) -> float:
    """Measure how far predictions are, in units that the NLL cares for."""
    if isinstance(wanted, Probabilities):
        assert isinstance(found, Probabilities)
        return float(np.mean((wanted.probs - found.probs) ** 2))
    assert isinstance(found, MeanStd)
    mean = (wanted.mean - found.mean) / wanted.std
    return float(np.mean(mean**2 + np.log(found.std / wanted.std) ** 2))


def integers(
    X: NDArray[Any], ready: Standardised, units: list[Floats], reach: float, corrected: bool = True
) -> Int8Network:
    """Round the layers, each hidden unit in its own steps.

    `corrected` biases make the mean output over the rows that of the layers before rounding.
    """
    dense, z = ready.dense, scaled(X, ready)
    first, _ = _weights(dense[0].weight, np.zeros(len(dense[0].bias)), FIRST_BIAS)
    largest_sum = int(np.abs(first.astype(np.int64)).sum(1).max())
    levels = min(LEVELS, (SUM_LIMIT - 2**30) // max(largest_sum, 1))
    made = _without_layers(ready, levels, reach)
    q, zero = made.inputs(X), levels
    step = np.ones((len(X), 1), np.float32)
    read: list[Any] = [reach / levels, *units]  # the unit of what each layer reads
    written: list[Any] = [*units, 1.0]
    # The last layer's bias is added to its floats.
    biases = [*(layer.bias for layer in dense[:-1]), np.zeros(len(dense[-1].bias))]
    rounded = [
        _weights(layer.weight * unit, bias, BIAS if k else FIRST_BIAS)
        for k, (layer, unit, bias) in enumerate(zip(dense, read, biases, strict=True))
    ]
    # Twice, as corrected biases may be larger.
    least = [
        max(2 * float(np.abs(bias / scale).max()) / BIAS_LIMIT, LEAST_STEP)
        for (_, scale), bias in zip(rounded, biases, strict=True)
    ] + [LEAST_STEP]
    layers: list[Int8Layer] = []
    for k, ((weight, scale), layer) in enumerate(zip(rounded, dense, strict=True)):
        target = z @ layer.weight.T + layer.bias
        bias = layer.bias
        if corrected:
            bias = (target - _products(q - zero, weight) * scale * step).mean(0)
        in_sums = -zero * weight.astype(np.int64).sum(1)  # takes the inputs' zero off the sums
        if k < len(units):
            most = FIRST_BIAS if k == 0 else BIAS_LIMIT * least[k]
            in_sums = in_sums + np.clip(bias / scale, -most, most)
        factor = (scale / written[k]).astype(np.float32)
        layers.append(Int8Layer(weight, in_sums.astype(np.float32), factor, least[k + 1]))
        if k < len(units):
            z, (q, step), zero = np.maximum(target, 0.0), to_bytes(layers[k], q, step), 0
    unit = units[-1] if units else None
    return replace(made, layers=tuple(layers), head_bias=bias.astype(np.float32), unit=unit)


def _without_layers(ready: Standardised, levels: int, reach: float) -> Int8Network:
    """Make the part of a network that rounds inputs."""
    none = np.zeros(0, np.float32)
    if ready.embedding is None:
        per_step = (2 * ready.per_scale.astype(np.float64) * levels / reach).astype(np.float32)
        return Int8Network(ready.centre, per_step, levels, reach, (), none, encoding=ready.encoding)
    return Int8Network(
        ready.centre,
        np.full(1, 2 * levels / reach, np.float32),
        levels,
        reach,
        (),
        none,
        per_scale=ready.per_scale,
        embedding=ready.embedding,
        encoding=ready.encoding,
    )


def _units(largest: Floats, evenness: float) -> Floats:
    """Choose the step of each unit's byte, from the largest activation that calibration saw.

    With evenness 0 all units of a layer share one step, with 1 each fills its own range; what a
    unit's step gains, the weights that read it lose, so the best lies between.
    """
    top = max(float(largest.max()), 1e-30)
    own = np.maximum(largest, LEAST_SHARE * top)
    steps: Floats = own**evenness * top ** (1 - evenness) / BYTE
    return steps


def _weights(weight: Floats, bias: Floats, most: float) -> tuple[NDArray[np.int8], Floats]:
    """Round to whole numbers times a scale of each row, of which its bias is at most `most`."""
    scale = np.maximum(np.abs(weight).max(1) / WEIGHT, np.abs(bias) / most)
    scale = np.maximum(scale, 1e-30)
    return np.rint(weight / scale[:, None]).astype(np.int8), scale


def _products(q: NDArray[np.int64], weight: NDArray[np.int8]) -> NDArray[np.int64]:
    """q W^T, exactly: no sum reaches 2^53, and floats have a fast product."""
    sums: Floats = q.astype(np.float64) @ weight.T.astype(np.float64)
    return sums.astype(np.int64)


# --------------------------------------------------------------------------------------------------
# Errors for models that need float64
# --------------------------------------------------------------------------------------------------


def check_single(folded: Folded | FoldedGraph, to: str) -> None:
    """Refuse an input or a target that needs float64, by its name."""
    facts, part = folded.facts, folded.graph if isinstance(folded, FoldedGraph) else folded.layers
    for k in facts.double:
        raise refusal(to, column_label("input", k, facts.features))
    found = folded.run(part.rows_at(np.zeros((1, part.inputs))))
    if isinstance(found, MeanStd) and facts.guard is not None:
        for k in arrays.double_columns(found.mean[0], facts.guard.fallback):
            raise refusal(to, column_label("target", k, facts.targets))


def column_label(what: str, column: int, names: Sequence[str] | None) -> str:
    """Name an input or a target."""
    return f"{what} {column if names is None else repr(names[column])}"


def refusal(to: str, column: str, about: str = "") -> InputError:
    """Return the error that names a column and says what can be done."""
    about = f" ({about})" if about else ""
    return InputError(
        f"{to} computes in float32, which does not tell the values of {column} apart{about}; "
        "subtract a constant from it and fit again, or export with to='folded', which reads float64"
    )


# --------------------------------------------------------------------------------------------------
# Quantization of a folded model
# --------------------------------------------------------------------------------------------------

DTYPES = ("float32", "float16", "int8")


def prepare(folded: Folded, dtype: str, X: NDArray[Any]) -> FloatNetwork | Int8Network:
    """Round a network; the rows X calibrate int8 and show what float16 may round."""
    if dtype == "float32":
        return as_float32(folded)
    if dtype == "float16":
        return as_float16(folded, X)
    if dtype == "int8":
        return quantise(folded, X)
    accepted = ", ".join(map(repr, DTYPES))
    raise InputError(f"dtype={dtype!r} is unknown; accepted: {accepted}")
