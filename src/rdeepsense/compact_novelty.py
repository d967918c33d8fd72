"""A novelty that fits into a few kilobytes: how unlike the training rows an input is, in numpy.

Of a row's columns x (of windows five numbers of each channel, see `uncertainty.novelty`)

    t = (x - mean) rate + n(x),    h = t A,    surprise = min_g |h F_g - m_g|^2 / 2 - constant_g

n is half the normal score: interpolated between a few knots, and straight beyond the outermost
ones. Axes A and factors F_g are whole numbers from -127 to 127 times a step for each column, so
that they are bytes on a device; all of this is computed there without exp, log or a division by
what is not constant. A row whose surprise is above the threshold is `Status.UNLIKE`. Its doubt

    doubt = min(1, (surprise - threshold) / width)^2

says how far its spread goes from its own to that of the training targets (`Guard.stretched`). The
width is the distance from the median surprise of known rows to the threshold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats

FURTHEST = 1e15  # of an input, so that its square is a number in float32
FARTHEST = 1e6  # of t
NUMBERS = 5  # that describe a channel of a window
SCORE_STEP = 1 / 64  # of half a normal score
CHUNK = 1_024
BYTE = 127  # the largest of axes, factors and scores
LARGEST_SINGLE = 3e38
SINGLES = ("centre", "lines", "knots", "axis_steps", "factor_steps", "means", "constants",
           "threshold", "width")  # fmt: skip
WHOLE = ("scores", "axes", "factors")  # bytes on a device


@dataclass(frozen=True)
class CompactNovelty:
    """The tables of a compact novelty, each number one that a device holds, as float64."""

    centre: Floats  # of each input that is read: what a missing one counts as
    lines: Floats  # (columns, 4): mean, rate, and slopes of n below and above the knots
    knots: Floats  # (columns, knots), in order
    scores: Floats  # the same of n, counted in steps of 1/64
    axes: Floats  # (columns, components), counted in steps
    axis_steps: Floats
    factors: Floats  # (Gaussians, components, components), upper triangles counted in steps
    factor_steps: Floats  # (Gaussians, components)
    means: Floats  # (Gaussians, components), times their factors
    constants: Floats
    threshold: Floats  # (1,)
    # (1,); files of before there was one have no doubt of any row.
    width: Floats = field(default_factory=lambda: np.full(1, LARGEST_SINGLE))

    def surprise(self, rows: NDArray[Any]) -> Floats:
        """Return the surprise of raw rows (rows, inputs), or windows (rows, time, channels)."""
        found = np.empty(len(rows))
        for start in range(0, len(rows), CHUNK):
            with np.errstate(all="ignore"):  # a table from a file may hold any numbers
                t = self.column_scores(self.columns(rows[start : start + CHUNK]))
                found[start : start + CHUNK] = self.least(t @ (self.axes * self.axis_steps))
        return found

    def unlike(self, rows: NDArray[Any]) -> Booleans:
        """Tell which rows are above the threshold."""
        found: Booleans = self.surprise(rows) > self.threshold[0]
        return found

    def doubt(self, surprise: Floats) -> Floats:
        """Return the doubt of rows: 0 up to the threshold, rising to 1."""
        beyond = np.maximum(surprise - self.threshold[0], 0.0) / self.width[0]
        found: Floats = np.square(np.minimum(beyond, 1.0))
        return found

    def columns(self, rows: NDArray[Any]) -> Floats:
        """Return the columns of rows as a device reads them: in float32, none missing."""
        with np.errstate(over="ignore"):
            x = rows.astype(np.float32).astype(np.float64)
        x = np.clip(np.where(np.isnan(x), self.centre, x), -FURTHEST, FURTHEST)
        if x.ndim == 2:
            return x
        steps = np.diff(x, axis=1, prepend=x[:, :1])
        return np.hstack([x.mean(1), x.std(1), x.min(1), x.max(1), steps.std(1)])

    def column_scores(self, x: Floats) -> Floats:
        """Return t of columns."""
        mean, rate, low, high = self.lines.T
        last = self.knots.shape[1] - 1
        at = np.clip((self.knots <= x[:, :, None]).sum(2) - 1, 0, last)
        after = np.minimum(at + 1, last)
        every = np.arange(len(mean))
        left, right = self.knots[every, at], self.knots[every, after]
        first, second = (self.scores[every, place] * SCORE_STEP for place in (at, after))
        width = right - left
        share = np.divide(x - left, width, out=np.zeros_like(x), where=width > 0)
        n = first + np.clip(share, 0.0, 1.0) * (second - first)
        n += np.minimum(x - self.knots[:, 0], 0) * low + np.maximum(x - self.knots[:, -1], 0) * high
        t: Floats = np.clip((x - mean) * rate + n, -FARTHEST, FARTHEST)
        return t

    def least(self, h: Floats) -> Floats:
        """Return the surprise of components, by the Gaussian that they surprise least."""
        away = (h @ self._all_factors).reshape(len(h), *self.means.shape) - self.means
        found: Floats = (np.square(away).sum(2) / 2 - self.constants).min(1)
        return found

    @cached_property
    def _all_factors(self) -> Floats:
        """The factors side by side, (components, Gaussians x components)."""
        factors = self.factors * self.factor_steps[:, None, :]
        return factors.transpose(1, 0, 2).reshape(self.components, -1)

    def arrays(self) -> dict[str, Floats]:
        """Name the arrays, as files have them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def stored(self) -> dict[str, NDArray[Any]]:
        """Name the arrays in the types that a device has, as a model file keeps them."""
        kinds = dict.fromkeys(WHOLE, np.int8)
        return {name: a.astype(kinds.get(name, np.float32)) for name, a in self.arrays().items()}

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Take the arrays that `stored` gave."""
        return cls(**{name: array.astype(np.float64) for name, array in arrays.items()})

    @property
    def components(self) -> int:
        return len(self.axis_steps)

    @property
    def gaussians(self) -> int:
        return len(self.constants)

    @property
    def bytes(self) -> int:
        """Of the tables on a device."""
        columns, knots = self.knots.shape
        return table_bytes(columns, knots, self.components, self.gaussians)

    @property
    def multiply_adds(self) -> int:
        """Count those of a row's columns, without describing a window."""
        k = self.components
        return self.axes.size + self.gaussians * k * (k + 1) // 2


def table_bytes(columns: int, knots: int, components: int, gaussians: int) -> int:
    """Return the bytes of the tables of such a novelty: floats, and bytes."""
    own = columns * (16 + 5 * knots) + columns * components + 4 * components
    return own + gaussians * gaussian_bytes(components)


def gaussian_bytes(components: int) -> int:
    """Return the bytes of one Gaussian."""
    return components * (components + 1) // 2 + 8 * components + 4
