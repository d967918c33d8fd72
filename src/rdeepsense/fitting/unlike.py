"""Rows unlike those trained on: the compact novelty that every form of a model flags them by.

Its density is that of columns drawn from the novelty that was fitted. A row is `Status.UNLIKE`
whose surprise is above the 0.99 quantile of rows that the density did not see.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.compact_novelty import CompactNovelty
from rdeepsense.data.scaling import Scaler
from rdeepsense.epistemic.drawn_columns import drawn_columns
from rdeepsense.epistemic.fit_compact import Marginals, Units, fit_compact
from rdeepsense.epistemic.novelty import Novelty, described
from rdeepsense.epistemic.novelty_groups import drawn
from rdeepsense.errors import InputError
from rdeepsense.networks import Shape

LEVEL = 0.99
FEWEST_ROWS = 40


@dataclass(frozen=True)
class Reading:
    """What a compact novelty reads of rows of a shape: raw numbers, and columns of scaled ones."""

    shape: Shape
    scaler: Scaler

    def __post_init__(self) -> None:
        if len(self.shape) > 2 or not self.numbers:
            raise InputError(
                f"a novelty is for tables of numbers and windows (time, channels), not for rows of "
                f"shape {self.shape} with {len(self.numbers)} numbers"
            )

    @property
    def is_window(self) -> bool:
        """Whether a row is a window (time, channels)."""
        return len(self.shape) == 2

    @property
    def numbers(self) -> list[int]:
        """The inputs that are no categories."""
        encoding = self.scaler.encoding
        return list(range(self.shape[-1]) if encoding is None else encoding.numbers)

    @property
    def units(self) -> Units:
        """The units of the columns."""
        count = len(self.numbers)
        return Units.of(self.scaler.shift[:count], self.scaler.scale[:count], self.is_window)

    def raw(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return what is read of rows."""
        return X if self.is_window else X[:, self.numbers]

    def columns(self, X: NDArray[Any]) -> Floats:
        """Return the scaled columns of rows."""
        found = described(self.scaler.transform(X).numpy())
        return found if self.is_window else found[:, : len(self.numbers)]


def compact(novelty: Novelty, reading: Reading, X: NDArray[Any]) -> CompactNovelty:
    """Make a novelty compact; `X` are rows to set its threshold by, see `judging`."""
    units = reading.units
    columns = len(units.shift)
    found = fit_compact(_drawn(novelty)[:, :columns], Marginals.of_novelty(novelty, columns), units)
    return with_threshold(found, found.surprise(reading.raw(X)))


def _drawn(novelty: Novelty) -> Floats:
    """Draw columns; refuse a density that cannot be drawn from, which a file may hold."""
    try:
        with np.errstate(all="ignore"):
            found = drawn_columns(novelty)
    except np.linalg.LinAlgError:
        found = np.full(1, np.nan)
    if not np.isfinite(found).all():
        raise InputError("the novelty's axes or factors are singular, so it cannot be compact")
    return found


def judging(X: NDArray[Any]) -> NDArray[Any]:
    """Draw rows to set a threshold by; refuse too few."""
    X = X[drawn(len(X))]
    if len(X) < FEWEST_ROWS:
        raise InputError(
            f"a novelty needs {FEWEST_ROWS} rows to set its threshold, and has {len(X)}; fit "
            "the model with keep_rows, or give rows="
        )
    return X


def with_threshold(novelty: CompactNovelty, surprise: Floats) -> CompactNovelty:
    """Set the threshold by the surprise of rows that the density did not see."""
    threshold = np.array([np.float32(quantile(surprise, LEVEL))], np.float64)
    return replace(novelty, threshold=threshold)


def quantile(surprise: Floats, level: float) -> float:
    """Return the score that a further row of the same kind passes with at most 1 - level."""
    place = int(np.ceil((len(surprise) + 1) * level - 1e-9))
    return float(np.sort(surprise)[min(place, len(surprise)) - 1])
