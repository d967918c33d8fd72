"""The guard of a model: which rows lie beyond what it was trained on, and what it says of them.

The range of an input runs from its least to its greatest training value, and half their distance
beyond either. Where its tails are heavy that is not far enough for healthy rows to come, so it
reaches at least to where the tail is expected to be passed by one row in 400, all inputs together:

    median + (x_4 - median) g^D,   D = log2(4 / (rows p)),   p = 1 / (400 * 2 inputs)

with x_k the k-th largest value, and g = median over k = 1, 2, 4, ... of
(x_k - median) / (x_2k - median), what the distance to the median grows by when rows double. More
than 30 standard deviations from the mean is out of range, unless the training rows reach further.

Rows that are absurd must not blind it: of the rows that lie beyond that point and by more than half
the distance beyond the other rows, those that are furthest out do not count, one in 400 (one from
200 rows on). Of 2,000 rows the most extreme one, ten at most, is not taken for another row's end.

A category is a code: any that is none of its levels' is unknown, whatever the range.

The network reads a number that is out of range as the nearest end of its range, so that the mean
does not run away with it. The std of a flagged row is at least that of the training targets, and
its class probabilities are mixed half and half with the training frequencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats, needs_double
from rdeepsense.status import Status, Statuses

REACH = 1e6  # standard deviations; what a network reads at most where a model has no guard
EMBEDDING_REACH = 100.0  # the same of what periodic embeddings read
MARGIN = 0.5
FAR = 30.0  # standard deviations from the mean, where every range ends that the rows do not pass
MOST_ROWS, MOST_NUMBERS, ENOUGH_ROWS = 100_000, 4_000_000, 2_000  # that ranges are learnt from
ROWS_PER_OUTLIER = 400
FEWEST_FOR_OUTLIER = 200
ROWS_PER_END, MOST_ENDS = 2_000, 10
FROM = 4  # the value that a tail is continued from, or the first one that absurd rows leave alone
TAIL = 32  # one row in so many is of a tail
ROUNDING = 4 * float(np.finfo(np.float32).eps)  # of a value that passed through float32
DOUBLE_ROUNDING = 4 * float(np.finfo(np.float64).eps)  # of one that did not
LARGEST = float(np.finfo(np.float32).max)
FURTHEST = 1e300  # end of a range


@dataclass(frozen=True)
class Guard:
    """Ranges of inputs (of windows, of channels), and what to say of rows beyond them."""

    low: Floats
    high: Floats
    missing: Floats  # 1 where the training rows have NaN, else 0
    fallback: Floats  # of each output the training std, or of each class its frequency
    levels: Floats | None = None  # of each input that is a category, else 0; None without any

    @classmethod
    def fit(cls, X: NDArray[Any], fallback: Floats, levels: Floats | None = None) -> Self:
        """Learn the ranges of rows (rows, inputs), or windows (rows, time, channels).

        Of rows with categories, `levels` says how many each input has.
        """
        X = X[:: every(len(X), X.size // len(X))]
        times = tuple(range(1, X.ndim - 1))
        gaps = np.isnan(X)
        missing = gaps.any((0, *times))
        if levels is not None:  # codes have no tails, and no row is absurd by them
            X = np.where(levels > 0, 0.0, X)
        X = np.where(gaps.all((0, *times)), 0.0, X) if missing.any() else X
        least, greatest = np.fmin.reduce(X, times), np.fmax.reduce(X, times)
        tails = _tail(-least), _tail(greatest)
        double = _double(X)
        rounding = np.where(double, DOUBLE_ROUNDING, ROUNDING)
        needed = np.maximum(
            _margin(-least, tails[0], rounding), _margin(greatest, tails[1], rounding)
        )
        kept = _kept(needed.max(1))
        a = np.fmin.reduce(least[kept]).astype(np.float64)
        b = np.fmax.reduce(greatest[kept]).astype(np.float64)
        far = _far(X[kept])
        low = np.minimum(a, np.maximum(far[0], np.minimum(a - MARGIN * (b - a), -tails[0])))
        high = np.maximum(b, np.minimum(far[1], np.maximum(b + MARGIN * (b - a), tails[1])))
        rounding = rounding * np.maximum(np.abs(a), np.abs(b))
        low = _outward(low - rounding, -np.inf, double)
        high = _outward(high + rounding, np.inf, double)
        if levels is not None:
            low, high = np.where(levels > 0, 0.0, low), np.where(levels > 0, levels - 1, high)
        return cls(low, high, missing.astype(np.float64), np.asarray(fallback, np.float64), levels)

    def arrays(self) -> dict[str, Floats]:
        """Name the arrays, as files have them."""
        return {name: values for name, values in vars(self).items() if values is not None}

    def inside(self, X: NDArray[Any]) -> NDArray[Any]:
        """Move numbers into their ranges, as networks read them; NaN and categories stay."""
        low, high = self.low, self.high
        if self.levels is not None:
            low = np.where(self.levels > 0, -np.inf, low)
            high = np.where(self.levels > 0, np.inf, high)
        rows: NDArray[Any] = np.clip(X, low, high).astype(X.dtype, copy=False)
        return rows

    def beyond(self, X: NDArray[Any]) -> Booleans:
        """Tell which inputs of each row, (rows, inputs), are out of range or wrongly missing."""
        found = self._out(X) | self._missing(X) | self._unknown(X)
        return np.asarray(found.any(1) if X.ndim > 2 else found)

    def status(self, X: NDArray[Any]) -> Statuses:
        """Return the status of each row."""
        axes = tuple(range(1, X.ndim))
        out, missing = self._out(X).any(axes), self._missing(X).any(axes)
        found = out * Status.OUT_OF_RANGE.value + missing * Status.MISSING.value
        if self.levels is not None:
            found = found + self._unknown(X).any(axes) * Status.UNKNOWN_LEVEL.value
        return np.asarray(found, np.uint8)

    def _out(self, X: NDArray[Any]) -> Booleans:
        found: Booleans = np.less(X, self.low) | np.greater(X, self.high)
        return found if self.levels is None else found & (self.levels == 0)

    def _unknown(self, X: NDArray[Any]) -> Booleans:
        """Tell which inputs are categories with a code that is none."""
        if self.levels is None:
            return np.zeros((), np.bool_)
        with np.errstate(invalid="ignore"):
            known = np.isnan(X) | ((X >= 0) & (self.levels > X) & (np.floor(X) == X))
        found: Booleans = (self.levels > 0) & ~known
        return found

    def _missing(self, X: NDArray[Any]) -> Booleans:
        found: Booleans = np.isnan(X) & (self.missing == 0)
        return found

    def widened(self, std: Floats, status: Statuses) -> Floats:
        """Return stds (rows, outputs), at least the training targets' where a row is flagged."""
        found: Floats = np.where(status[:, None] > 0, np.maximum(std, self.fallback), std)
        return found

    def stretched(self, std: Floats, doubt: Floats) -> Floats:
        """Return stds moved towards the training targets' where they are less, by a row's doubt.

        The reciprocals are interpolated, so that a little doubt costs a certain row little.
        """
        share, wide = doubt[:, None], np.maximum(std, self.fallback)
        with np.errstate(invalid="ignore"):
            moved = std * wide / (wide - share * (wide - std))
        return np.where(share < 1, np.where(share > 0, moved, std), wide)

    def blended(self, probs: Floats, doubt: Floats) -> Floats:
        """Return probabilities moved towards the training frequencies, half the way at doubt 1."""
        found: Floats = probs + doubt[:, None] / 2 * (self.fallback - probs)
        return found

    def mixed(self, probs: Floats, status: Statuses) -> Floats:
        """Return probabilities, half the training frequencies where a row is flagged."""
        found: Floats = np.where(status[:, None] > 0, (probs + self.fallback) / 2, probs)
        return found


def every(rows: int, numbers: int) -> int:
    """Return the step at which rows of so many numbers are enough to learn from."""
    most = min(MOST_ROWS, max(ENOUGH_ROWS, MOST_NUMBERS // numbers))
    return -(-rows // most)


def _tail(values: NDArray[Any]) -> Floats:
    """Return how far up each input is expected to reach; the lower end is that of -values."""
    rows, inputs = values.shape
    if rows < FROM:
        return np.full(inputs, -np.inf)
    middle = np.nanmedian(values, axis=0)
    ordered = np.sort(np.where(np.isnan(values), -np.inf, values), axis=0)[::-1]
    places = 2 ** np.arange(_places(rows))
    above = np.maximum(ordered[places - 1] - middle, 0.0)
    with np.errstate(all="ignore"):
        growth = above[:-1] / above[1:]
        # Of a tail that is all at the median, or reaches only some of these places, those count.
        counted = np.where(np.isfinite(growth), growth, np.nan)
        found = np.isfinite(counted).any(0)
        g = np.where(found, np.nanmedian(np.where(found, counted, 1.0), axis=0), 1.0)
        ends = min(rows // ROWS_PER_END, MOST_ENDS)
        place = min(int(np.ceil(np.log2(max(FROM, ends + 2)))), len(places) - 1)
        doublings = np.log2(2 * inputs * ROWS_PER_OUTLIER * places[place] / rows)
        end: Floats = middle + above[place] * g**doublings
    return np.where(np.isfinite(end), end, -np.inf)


def _places(rows: int) -> int:
    """Return how many of the places 1, 2, 4, ... are of a tail."""
    return min(int(np.log2(max(rows, 1))), max(4, int(np.log2(max(rows // TAIL, 1))))) + 1


def _double(X: NDArray[Any]) -> Booleans:
    """Tell which inputs need float64, and so meet no form that rounds them to float32."""
    if X.dtype == np.float32:
        return np.zeros(X.shape[-1], np.bool_)
    axes = tuple(range(X.ndim - 1))
    with np.errstate(all="ignore"):
        mean, std = np.nanmean(X, axes), np.nanstd(X, axes)
    return needs_double(mean, std)


def _margin(values: NDArray[Any], tail: Floats, rounding: Floats) -> Floats:
    """Return the margin above the other rows that each row needs, (rows, inputs); 0 if inside."""
    filled = np.where(np.isnan(values), -np.inf, values).astype(np.float64)
    ends = min(len(values) // ROWS_PER_END, MOST_ENDS)
    place = min(ends + 1, len(values) - 1)
    # The end of the others for the rows above it; for the rest it does not matter.
    end = -np.partition(-filled, place, axis=0)[place]
    excess = filled - end
    with np.errstate(all="ignore"):
        span = end - np.fmin.reduce(np.where(np.isfinite(filled), filled, np.inf))
        out = (excess > rounding * np.abs(end)) & (filled > tail)
        return np.where(out, excess / span, 0.0)


def _far(X: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the points FAR standard deviations below and above the mean."""
    axes = tuple(range(X.ndim - 1))
    with np.errstate(all="ignore"):
        mean, std = np.nanmean(X, axes, np.float64), np.nanstd(X, axes, np.float64)
    return mean - FAR * std, mean + FAR * std


def _kept(needed: Floats) -> Booleans:
    """Tell which rows count for the ranges: all but those that need by far the largest margin."""
    rows = len(needed)
    budget = max(rows // ROWS_PER_OUTLIER, int(rows >= FEWEST_FOR_OUTLIER))
    out = np.argsort(-needed, kind="stable")[:budget]
    kept = np.ones(rows, dtype=np.bool_)
    kept[out[needed[out] > MARGIN]] = False
    return kept


def _outward(values: Floats, towards: float, double: Booleans) -> Floats:
    """Round to float32, outward, so that every form compares with the same number.

    Inputs that need float64 stay as they are.
    """
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
        inside = narrow > values if towards < 0 else narrow < values
        narrow = np.where(inside, np.nextafter(narrow, np.float32(towards)), narrow)
    held = np.isfinite(narrow) & ~double
    return np.where(held, narrow, np.clip(values, -FURTHEST, FURTHEST)).astype(np.float64)
