"""Eight-bit integer networks: weights per output channel, activations calibrated on rows.

Inputs are 16-bit steps of their own range, hidden activations bytes of steps that calibration rows
filled, weights whole numbers of at most 127 times one scale per output; sums are exact 32-bit
integers. A hidden sum becomes the next byte by one float32 multiplication and truncation (the half
that rounds is in the integer bias), so the numpy arithmetic here and the C agree to the bit. The
last layer's sums become floats and are never clipped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.device.folded import Dense, Floats, Folded
from rdeepsense.errors import InputError

# Centre and 1 / scale of the inputs, and the layers that take (x - centre) / scale.
Ready = tuple[NDArray[np.float32], NDArray[np.float32], list[Dense]]
LEVELS = 32_767  # steps of an input on each side of its centre
LEAST_REACH = 8.0  # standard deviations
BYTE = 255
WEIGHT = 127
BLOCK = 64  # outputs that lie together in a packed table
BIAS_LIMIT = 2.0**29
SUM_LIMIT = 2**31 - 1
LEAST_SHARE = 0.05  # of a layer's largest activation, for units that hardly ever fire
EVENNESS = (0.0, 0.25, 0.5, 0.75)
HEADROOM = (1.25, 1.6, 2.0, 2.5)  # of the largest activation seen; later rows go beyond
FAR = 2.0  # times as far from the centre as the rows: where a clipped unit shows
FAR_WEIGHT = 0.1  # beside a row: clipping is wrong by far more than rounding is
CHOICE_ROWS = 1_024  # are enough to tell ways to round apart
ORDER_ROWS = 512  # are enough to see which units fire together


@dataclass(frozen=True)
class Int8Layer:
    """Sums of weight (outputs, inputs) times integers, plus bias; times factor they have a unit."""

    weight: NDArray[np.int8]
    bias: NDArray[np.int32]
    factor: NDArray[np.float32]

    def sums(self, q: NDArray[np.int64]) -> NDArray[np.int64]:
        return _products(q, self.weight) + self.bias.astype(np.int64)

    def packed(self) -> NDArray[np.int8]:
        """Blocks of outputs, in them groups of four inputs, in them output by output."""
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
    per_step: NDArray[np.float32]  # in halves of a step
    levels: int
    reach: float
    layers: tuple[Int8Layer, ...]
    head_bias: NDArray[np.float32]
    dtype: str = "int8"

    def inputs(self, X: NDArray[Any]) -> NDArray[np.int64]:
        """Whole numbers from 0 to 2 levels."""
        limit = np.float32(2 * self.levels)
        z = np.nan_to_num((X.astype(np.float32) - self.centre) * self.per_step, nan=0.0)
        halves = np.clip(z, -limit, limit).astype(np.int64)
        q: NDArray[np.int64] = (halves + 2 * self.levels + 1) >> 1
        return q

    def raw(self, X: NDArray[Any]) -> Floats:
        """The columns of the last layer, bit by bit as in C but for the last multiplication."""
        q = self.inputs(X)
        for layer in self.layers[:-1]:
            q = to_bytes(layer, q)
        last = self.layers[-1]
        sums = last.sums(q).astype(np.float32)
        return (sums * last.factor + self.head_bias).astype(np.float64)


def to_bytes(layer: Int8Layer, q: NDArray[np.int64]) -> NDArray[np.int64]:
    """One hidden layer: ReLU, the float32 factor, at most 255, truncated."""
    h = np.maximum(layer.sums(q), 0).astype(np.float32) * layer.factor
    return np.minimum(h.astype(np.int64), BYTE)


def quantise(folded: Folded, X: NDArray[Any], ready: Ready) -> Int8Network:
    """The network that agrees best with the folded one on these rows, and bears more than them."""
    if folded.doubt is not None:
        raise InputError(
            "--dtype int8 cannot be exported with --epistemic laplace; accepted: float32, and "
            "for c99 float16"
        )
    if not len(X):
        raise InputError("int8 needs rows to calibrate the activations on")
    return together(integers(X, ready, best_steps(folded, X, ready)), X[:ORDER_ROWS])


def best_steps(folded: Folded, X: NDArray[Any], ready: Ready) -> list[Floats]:
    """What one step of each hidden unit's byte stands for, layer by layer.

    Small steps round less and clip sooner. Rows FAR times as far out weigh less than the rows
    themselves, but enough to tell a network that clips from one that does not.
    """
    centre, per_scale, dense = ready
    h = np.nan_to_num((X.astype(np.float32) - centre) * per_scale).astype(np.float64)
    largest = []
    for layer in dense[:-1]:
        h = np.maximum(h @ layer.weight.T + layer.bias, 0.0)
        largest.append(h.max(0))
    X = X[:: -(-len(X) // CHOICE_ROWS)]
    judged = [(X, 1.0), (folded.centre + FAR * (X - folded.centre), FAR_WEIGHT)]
    wanted = [folded.forward(rows) for rows, _ in judged]

    def distance(steps: list[Floats]) -> float:
        network = integers(X, ready, steps)
        return sum(
            weight * _distance(folded, truth, folded.finish(network.raw(rows)))
            for (rows, weight), truth in zip(judged, wanted, strict=True)
        )

    tried = [[_units(top, e, room) for top in largest] for room in HEADROOM for e in EVENNESS]
    return min(tried, key=distance)


def together(network: Int8Network, X: NDArray[Any]) -> Int8Network:
    """The same sums with hidden units in another order: those that fire together in fours.

    Where four inputs of a layer that lie together are all zero, C may skip them; ReLU makes about
    half of the units zero, but in the order of training hardly ever four neighbours.
    """
    q, layers = network.inputs(X), list(network.layers)
    for k in range(len(layers) - 1):
        layer, after = layers[k], layers[k + 1]
        q = to_bytes(layer, q)
        order = _fours(q > 0)
        q = q[:, order]
        layers[k] = Int8Layer(layer.weight[order], layer.bias[order], layer.factor[order])
        layers[k + 1] = replace(after, weight=after.weight[:, order])
    return replace(network, layers=tuple(layers))


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


def _distance(folded: Folded, wanted: Floats, found: Floats) -> float:
    """How far predictions are, in units that the NLL cares for."""
    if folded.is_classifier:
        return float(np.mean((wanted - found) ** 2))
    mean = (wanted[0] - found[0]) / wanted[1]
    return float(np.mean(mean**2 + np.log(found[1] / wanted[1]) ** 2))


def integers(
    X: NDArray[Any], ready: Ready, steps: list[Floats], corrected: bool = True
) -> Int8Network:
    """The layers rounded, each hidden unit's byte in its own steps.

    `corrected` biases make the mean output over the rows that of the layers before rounding.
    """
    centre, per_scale, dense = ready
    z = np.nan_to_num((X.astype(np.float32) - centre) * per_scale).astype(np.float64)
    reach = max(LEAST_REACH, 2 * float(np.abs(z).max()))
    first, _ = _weights(dense[0].weight, np.zeros(len(dense[0].bias)))
    largest_sum = int(np.abs(first.astype(np.int64)).sum(1).max())
    levels = min(LEVELS, (SUM_LIMIT - 2**30) // max(largest_sum, 1))
    unit: Any = reach / levels  # what one step of the layer's input stands for
    per_step = (2 * per_scale.astype(np.float64) / unit).astype(np.float32)
    none = np.zeros(0, np.float32)
    q, zero = Int8Network(centre, per_step, levels, reach, (), none).inputs(X), levels
    layers: list[Int8Layer] = []
    for layer, step in zip(dense[:-1], steps, strict=True):
        target = z @ layer.weight.T + layer.bias
        weight, scale = _weights(layer.weight * unit, layer.bias)
        bias = _corrected(weight, scale, q - zero, target) if corrected else layer.bias
        z = np.maximum(target, 0.0)
        unit = np.maximum(step, 2 * scale)
        # The factor is at most 1/2, so a sum times its factor stays an int32 in C.
        half = 0.5 * unit / scale
        rounded = np.rint(np.clip(bias / scale + half, -BIAS_LIMIT, BIAS_LIMIT)).astype(np.int64)
        layers.append(_layer(weight, rounded + _offset(weight, zero), scale / unit))
        q, zero = to_bytes(layers[-1], q), 0
    last = dense[-1]
    weight, scale = _weights(last.weight * unit, np.zeros(len(last.bias)))
    bias = last.bias
    if corrected:
        bias = _corrected(weight, scale, q - zero, z @ last.weight.T + last.bias)
    layers.append(_layer(weight, _offset(weight, zero), scale))
    return Int8Network(centre, per_step, levels, reach, tuple(layers), bias.astype(np.float32))


def _units(largest: Floats, evenness: float, headroom: float) -> Floats:
    """The step of each unit's byte, from the largest activation that calibration saw.

    With evenness 0 all units of a layer share one step, with 1 each fills its own range; what a
    unit's step gains, the weights that read it lose, so the best lies between.
    """
    top = max(float(largest.max()), 1e-30)
    own = np.maximum(largest, LEAST_SHARE * top)
    steps: Floats = headroom * own**evenness * top ** (1 - evenness) / BYTE
    return steps


def _weights(weight: Floats, bias: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Whole numbers and the scale of each row, at least so large that the bias fits an int32."""
    scale = np.maximum(np.abs(weight).max(1) / WEIGHT, np.abs(bias) / (BIAS_LIMIT / 2))
    scale = np.maximum(scale, 1e-30)
    return np.rint(weight / scale[:, None]).astype(np.int8), scale


def _corrected(
    weight: NDArray[np.int8], scale: Floats, q: NDArray[np.int64], target: Floats
) -> Floats:
    """The bias that makes the mean output right."""
    bias: Floats = (target - _products(q, weight) * scale).mean(0)
    return bias


def _offset(weight: NDArray[np.int8], zero: int) -> NDArray[np.int64]:
    """What takes the inputs' zero off the sums."""
    offset: NDArray[np.int64] = -zero * weight.astype(np.int64).sum(1)
    return offset


def _products(q: NDArray[np.int64], weight: NDArray[np.int8]) -> NDArray[np.int64]:
    """q W^T, exactly: no sum reaches 2^53, and floats have a fast product."""
    sums: Floats = q.astype(np.float64) @ weight.T.astype(np.float64)
    return sums.astype(np.int64)


def _layer(weight: NDArray[np.int8], bias: NDArray[np.int64], factor: Floats) -> Int8Layer:
    return Int8Layer(weight, bias.astype(np.int32), factor.astype(np.float32))
