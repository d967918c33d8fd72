"""The truth of each window: its majority label, or a number at its end or on average.

Sums over windows are differences of running sums, so that nothing is done window by window:
sum of x over [s, s + L) = S_(s+L) - S_s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats, Integers
from rdeepsense.windowing.columns import ABSENT


@dataclass(frozen=True)
class Majority:
    """The most frequent label of each window, and its share of the window's samples."""

    code: Integers  # -1 where no sample has a label
    share: Floats

    @classmethod
    def of(cls, codes: NDArray[Any], starts: Integers, length: int) -> Majority:
        """Count labels; of two that are as frequent the first in order wins."""
        code = np.full(len(starts), ABSENT, np.int64)
        most = np.zeros(len(starts), np.int64)
        for label in np.unique(codes[codes != ABSENT]) if len(starts) else ():
            count = _sums(codes == label, np.int64, starts, length)
            more = count > most
            code[more], most[more] = label, count[more]
        return cls(code, most / length)


def mean_of(values: Floats, starts: Integers, length: int) -> Floats:
    """Return the mean of the values that are known in each window; NaN where none is."""
    known = np.isfinite(values)
    counts = _sums(known, np.int64, starts, length)
    centre = float(values[known].mean()) if known.any() else 0.0
    # Around their centre, so that running sums stay small.
    sums = _sums(np.where(known, values - centre, 0.0), np.float64, starts, length)
    found: Floats = np.full(len(starts), np.nan)
    some = counts > 0
    found[some] = centre + sums[some] / counts[some]
    return found


def at_end(values: NDArray[Any], starts: Integers, length: int) -> NDArray[Any]:
    """Return the value of each window's last sample."""
    found: NDArray[Any] = values[starts + length - 1]
    return found


def _sums(
    values: NDArray[Any] | Booleans, kind: type[np.generic], starts: Integers, length: int
) -> NDArray[Any]:
    running = np.zeros(len(values) + 1, kind)
    np.cumsum(values, out=running[1:])
    found: NDArray[Any] = running[starts + length] - running[starts]
    return found
