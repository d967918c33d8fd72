"""Eight-bit integer networks: weights per output channel, activations in steps of each row's own.

Inputs are 16-bit steps of their own range (an embedding of them is computed in floats, and counts
as further inputs), hidden activations bytes, weights whole numbers of at
most 127 times one scale per output; sums are exact 32-bit integers. The largest activation of a
layer becomes 255, row by row, so none is ever clipped and small ones are not rounded coarsely.
Units have a step of their own beside it, from calibration rows, where that helps. The few float32
operations in between are products, quotients and truncations, one at a time, so the numpy
arithmetic here and the C agree to the bit. The last layer's sums become floats.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats, Singles
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.folded.runner import MeanStd, Outputs, Probabilities
from rdeepsense.deploy.networks import Standardised, standardised
from rdeepsense.deploy.stored_embedding import StoredEmbedding
from rdeepsense.encoding import Encoding
from rdeepsense.errors import InputError

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
