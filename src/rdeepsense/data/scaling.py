"""Standardisation inside the model: sensors in their own units outside, numbers about 1 inside."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rdeepsense import arrays
from rdeepsense.arrays import Floats, Integers
from rdeepsense.encoding import LEAST_SCALE, Encoding
from rdeepsense.guard import REACH, Guard

TARGETS = 10 * float(np.finfo(np.float64).eps)  # resolution of targets, which are always float64
FAR = 1e5  # times what is resolved: rounding is then nothing beside the scale
LEAST_LEARNT = 0.05  # of the target's standard deviation, which the vectors of levels are in
HUGE = 1e100  # its square is still a number; so is that of what is left of it by rounding
CHUNK = 65_536  # samples at a time, so that no copy of a whole table in float64 is ever made


@dataclass(frozen=True)
class Scaler:
    """(value - shift) / scale, column by column.

    Means are subtracted in float64. A column that varies by no more than its type resolves at its
    magnitude (`resolution` times it) is as good as constant. Its scale is 1, or more where rounding
    would be seen beside that: a row that passes through float32 on its way to the model must remain
    the same row.

    The columns of windows (rows, time, channels) are their channels, over all times. With an
    `encoding` values are rows of a table, and what is scaled is what it makes of them.
    """

    shift: Floats
    scale: Floats
    flat: tuple[int, ...] = ()  # columns that vary by no more than is resolved; not kept in files
    encoding: Encoding | None = None
    guard: Guard | None = None  # of a fitted model; `transform` moves numbers into its ranges

    @classmethod
    def standard(
        cls,
        values: NDArray[Any],
        index: Integers,
        weight: Floats,
        resolution: float | None = None,
        chunk: int = CHUNK,
    ) -> Scaler:
        """Scale by weighted mean and standard deviation of some rows; NaN entries are left out.

        A `resolution` is that of targets; None is that of inputs of the type of `values`.
        """
        low, high = _extremes(values, index, weight, chunk)
        unit = _unit(low, high)
        total, mean = _weighted_mean(values, index, weight, lambda part: part / unit, chunk)
        mean = np.where(total > 0, mean, 0.0)
        _, var = _weighted_mean(
            values, index, weight, lambda part: (part / unit - mean) ** 2, chunk
        )
        moments = mean * unit, np.sqrt(var) * unit, low, high
        if resolution is None:
            return cls.of_moments(*moments, arrays.resolution(values.dtype))
        return cls.of_moments(*moments, resolution, resolution)

    @classmethod
    def of_table(
        cls, values: NDArray[Any], index: Integers, weight: Floats, encoding: Encoding | None
    ) -> Scaler:
        """Scale the columns of a table, or what an encoding makes of them.

        Flags and one-hot inputs have a scale of LEAST_SCALE at least, vectors that are learnt one
        of LEAST_LEARNT: otherwise a rare level would lie far out.
        """
        own = cls.standard(values, index, weight)
        if encoding is None:
            return own
        numbers, total = list(encoding.numbers), max(float(weight.sum()), np.finfo(float).tiny)
        moments = np.zeros((2, encoding.width - len(numbers)))
        for some in _chunks(values, len(index), CHUNK):
            part = encoding.expand(values[index[some]])[:, len(numbers) :].astype(np.float64)
            moments += np.stack([weight[some] @ part, weight[some] @ part**2]) / total
        std = np.sqrt(np.maximum(moments[1] - moments[0] ** 2, 0.0))
        least = [LEAST_SCALE] * len(encoding.flagged)
        for category in encoding.categories:
            least += [LEAST_SCALE if category.is_one_hot else LEAST_LEARNT] * category.width
        same = {c.column for c in encoding.categories if len(c.levels) < 2}
        flat = tuple(k for k in own.flat if k in encoding.numbers or k in same)
        return cls(
            np.r_[own.shift[numbers], moments[0]],
            np.r_[own.scale[numbers], np.maximum(std, least)],
            flat,
            encoding,
        )

    @classmethod
    def of_moments(
        cls,
        mean: Floats,
        std: Floats,
        low: Floats,
        high: Floats,
        resolution: Floats | float,
        rounding: float = arrays.SINGLE,
    ) -> Scaler:
        """Scale by mean and standard deviation; `low` and `high` are the extremes of each column.

        `rounding` is the part of its magnitude that a later value may lose on its way. The extremes
        alone tell a constant column: the rounding of a mean grows with the rows, and what it leaves
        would pass for a standard deviation.
        """
        constant = ~(high > low)  # also where a column has no value at all
        size = np.maximum(np.abs(low), np.abs(high))
        shift = np.where(constant & np.isfinite(low), low, mean)
        flat = constant | (std <= resolution * size)
        beyond = np.maximum(1.0, FAR * (rounding * np.where(np.isfinite(size), size, 0.0)))
        return cls(shift, np.where(flat, beyond, std), tuple(np.flatnonzero(flat).tolist()))

    @classmethod
    def robust(
        cls,
        values: NDArray[Any],
        index: Integers,
        weight: Floats,
        resolution: float | None = None,
    ) -> Scaler:
        """Scale by median and inter-quartile range, or the std where that range is 0."""
        fallback = cls.standard(values, index, weight, resolution)
        low, mid, high = _quantiles(values[index], weight, (0.25, 0.5, 0.75))
        return cls(mid, np.where(high > low, high - low, fallback.scale))

    def transform(self, values: NDArray[Any], dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Return the scaled values as a tensor; a missing value becomes 0, its column's mean.

        What is out of range is moved to the end of its range, and what lies further out than REACH
        to that, as on a device.
        """
        values = values if self.guard is None else self.guard.inside(values)
        return self.gather(values, np.arange(len(values)), dtype).clamp_(-REACH, REACH)

    def gather(
        self,
        values: NDArray[Any],
        index: Integers,
        dtype: torch.dtype = torch.float32,
        chunk: int = CHUNK,
    ) -> torch.Tensor:
        """Return the scaled values of some rows, in that order."""
        out = torch.empty((len(index), *values.shape[1:-1], len(self.scale)), dtype=dtype)
        for some in _chunks(values, len(index), chunk):
            raw = values[index[some]]
            raw = raw if self.encoding is None else self.encoding.expand(raw)
            part = (raw - self.shift) / self.scale
            if np.isnan(part.sum()):
                part[np.isnan(part)] = 0.0
            out[some] = torch.from_numpy(part)
        return out

    @property
    def double_columns(self) -> tuple[int, ...]:
        """The columns of rows whose values float32 does not tell apart."""
        found = arrays.double_columns(self.shift, self.scale)
        if self.encoding is None:
            return found
        numbers = self.encoding.numbers
        return tuple(numbers[k] for k in found if k < len(numbers))

    def about(self, column: int) -> str:
        """Say what the values of a column of numbers are like."""
        k = column if self.encoding is None else self.encoding.numbers.index(column)
        return arrays.about(self.shift[k], self.scale[k])

    def rows_at(self, z: Floats) -> Floats:
        """Return rows whose numbers lie so many scales from their means, and all levels by turns.

        `z` is (rows, *what networks read).
        """
        rows: Floats = self.shift + z * self.scale
        if self.encoding is None:
            return rows
        return self.encoding.rows_of(rows[:, : len(self.encoding.numbers)])


def _chunks(values: NDArray[Any], rows: int, chunk: int) -> Iterator[slice]:
    """Yield slices of some rows at a time."""
    step = max(1, chunk // math.prod(values.shape[1:-1]))
    return (slice(start, start + step) for start in range(0, rows, step))


def _weighted_mean(
    values: NDArray[Any],
    index: Integers,
    weight: Floats,
    of: Callable[[Floats], Floats],
    chunk: int,
) -> tuple[Floats, Floats]:
    """Sum the weights and average `of(rows)` by them, over the entries that are not NaN."""
    total = np.zeros(values.shape[-1])
    summed = np.zeros(values.shape[-1])
    axes = tuple(range(values.ndim - 1))
    for some in _chunks(values, len(index), chunk):
        part = of(values[index[some]].astype(np.float64))
        if part.ndim == 2 and not np.isnan(part.sum()):
            total += weight[some].sum()
            summed += weight[some] @ part
            continue
        w = np.where(np.isnan(part), 0.0, np.expand_dims(weight[some], (-1, *axes[1:])))
        total += w.sum(axes)
        summed += (w * np.nan_to_num(part, copy=False)).sum(axes)
    return total, summed / np.maximum(total, np.finfo(float).tiny)


def _extremes(
    values: NDArray[Any], index: Integers, weight: Floats, chunk: int
) -> tuple[Floats, Floats]:
    """Return least and greatest value of each column, over rows that count and are not NaN."""
    low = np.full(values.shape[-1], np.inf)
    high = -low
    axes = tuple(range(values.ndim - 1))
    index = index[weight > 0]
    for some in _chunks(values, len(index), chunk):
        part = values[index[some]]
        low = np.fmin(low, np.fmin.reduce(part, axes))
        high = np.fmax(high, np.fmax.reduce(part, axes))
    return low, high


def _unit(low: Floats, high: Floats) -> Floats:
    """Return a power of two near a column's size where squares would leave float64, else 1.

    It divides without rounding, so what is computed in it is the same number.
    """
    size = np.maximum(np.abs(low), np.abs(high))
    extreme = np.isfinite(size) & (size > 0) & ((size < 1 / HUGE) | (size > HUGE))
    return np.where(extreme, np.ldexp(1.0, np.frexp(np.where(extreme, size, 1.0))[1] - 1), 1.0)


def _quantiles(values: Floats, weight: Floats, levels: tuple[float, ...]) -> list[Floats]:
    """Return weighted quantiles of each column: where the weight passes the level."""
    columns = []
    for column in values.T:
        order = np.argsort(column)
        cumulative = np.cumsum(weight[order])
        at = np.searchsorted(cumulative, np.array(levels) * cumulative[-1])
        columns.append(column[order][np.minimum(at, len(column) - 1)])
    return list(np.array(columns, dtype=np.float64).T)
