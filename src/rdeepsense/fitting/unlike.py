"""Rows unlike those trained on: the compact novelty that every form of a model flags them by.

Every fit learns a density of the inputs, of some thousand rows at most. A row is `Status.UNLIKE`
whose surprise is above the 0.99 quantile of rows that the density did not see:

- of K = min(groups, 4) folds of whole groups, each by a density of the others, all groups alike;
- of the rows that were held out, where they are enough for that quantile;
- else of four folds of all rows, and for less than 99 of them the quantile is that of an
  exponential tail beyond the largest surprise.

Models of fewer than 60 rows have none, nor have tables of more than 160 numbers (of more than 32,
if there are not 20 rows for each), windows of more than 32 channels, tables of categories alone,
and columns that float32 does not tell apart.

Files of before fits did this may hold a full novelty: the density is then that of columns drawn
from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats, Integers
from rdeepsense.compact_novelty import CompactNovelty
from rdeepsense.data.rows import FitRows
from rdeepsense.data.scaling import Scaler
from rdeepsense.errors import InputError
from rdeepsense.networks import Shape
from rdeepsense.uncertainty.novelty import (
    FEWEST_GROUPS,
    MOST_COMPONENTS,
    Marginals,
    Novelty,
    Units,
    described,
    drawn,
    drawn_columns,
    fit_compact,
    quantiles,
)

LEVEL = 0.99
FEWEST_ROWS = 40  # to set a threshold by, of a novelty that was fitted before
FEWEST_FITTED = 60  # rows, held-out ones among them, of a fit
ENOUGH_HELD_OUT = 99
MOST_ROWS, MOST_HELD_OUT = 2_000, 2_048
FOLDS = 4
LEAST_WIDTH = 1.0  # nats
ROUNDING = 1e-3  # of a surprise
ROWS_EACH_COLUMN = 20  # where columns are more than the components of a density


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


def fit_unlike(
    reading: Reading,
    known: NDArray[Any],
    held_out: NDArray[Any] | None = None,
    groups: NDArray[Any] | None = None,
) -> CompactNovelty:
    """Fit a density to rows, and set its threshold by rows that it did not see."""
    units, total = reading.units, len(known) + (0 if held_out is None else len(held_out))
    columns = len(units.scale)
    if total < max(FEWEST_FITTED, columns * ROWS_EACH_COLUMN * (columns > MOST_COMPONENTS)):
        raise InputError(
            f"{total} rows of {columns} columns are too few to tell which others are unlike them"
        )

    def density(X: NDArray[Any]) -> CompactNovelty:
        x = reading.columns(X)
        with np.errstate(over="ignore", invalid="ignore"):
            found = fit_compact(x, Marginals.of_rows(x), units)
        if not all(np.isfinite(part).all() for part in found.arrays().values()):
            raise InputError("the novelty has numbers that float32 cannot hold")
        return found

    if groups is not None and len(np.unique(groups)) >= FEWEST_GROUPS:
        some = drawn(len(known), MOST_ROWS)
        known, number = known[some], np.unique(groups[some], return_inverse=True)[1]
        order = np.random.default_rng(0).permutation(number.max() + 1)
        surprise = _crossed(known, order[number] % min(len(order), FOLDS), density, reading)
        surprise = quantiles(surprise, 1 / np.bincount(number)[number])
        return with_threshold(density(known), surprise)
    if held_out is not None and len(held_out) >= ENOUGH_HELD_OUT:
        found = density(known[drawn(len(known), MOST_ROWS)])
        judges = held_out[drawn(len(held_out), MOST_HELD_OUT)]
        return with_threshold(found, found.surprise(reading.raw(judges)))
    rows = known if held_out is None else np.concatenate([known, held_out])
    rows = rows[drawn(len(rows), MOST_ROWS)]
    fold = np.random.default_rng(0).permutation(len(rows)) % FOLDS
    return with_threshold(density(rows), _crossed(rows, fold, density, reading))


def unlike_of(rows: FitRows, scaler: Scaler) -> CompactNovelty | None:
    """Fit the novelty of a fit's rows; None where it cannot be had."""
    part, held = rows.train, rows.validation
    if len(part) + len(held) < FEWEST_FITTED or scaler.double_columns:
        return None
    try:
        reading = Reading(rows.X.shape[1:], scaler)
        if rows.groups is not None:
            index = part.index[drawn(len(part), MOST_ROWS)]
            if rows.split_off:
                every = np.concatenate([part.index, held.index])
                index = every[drawn(len(every), MOST_ROWS)]
            return fit_unlike(reading, rows.X[index], groups=rows.groups[index])
        known = rows.X[part.index[drawn(len(part), MOST_ROWS)]]
        judges = rows.X_val[held.index[drawn(len(held), MOST_HELD_OUT)]]
        return fit_unlike(reading, known, judges)
    except (InputError, np.linalg.LinAlgError):  # a fit is no worse for rows without a density
        return None


def _crossed(
    X: NDArray[Any],
    fold: Integers,
    density: Callable[[NDArray[Any]], CompactNovelty],
    reading: Reading,
) -> Floats:
    """Return the surprise of each row by a density of the other folds."""
    surprise = np.empty(len(X))
    for own in range(fold.max() + 1):
        out = fold == own
        surprise[out] = density(X[~out]).surprise(reading.raw(X[out]))
    return surprise


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
    """Set threshold and width by the surprise of rows that the density did not see."""
    threshold = quantile(surprise, LEVEL)
    width = max(threshold - float(np.median(surprise)), LEAST_WIDTH)
    # Rows that are alike to the number must not be flagged by rounding, here or on a device.
    threshold += ROUNDING * max(1.0, abs(threshold))
    held = {"threshold": threshold, "width": width}
    return replace(
        novelty,
        **{name: np.array([np.float32(value)], np.float64) for name, value in held.items()},
    )


def quantile(surprise: Floats, level: float) -> float:
    """Return the score that a further row of the same kind passes with at most 1 - level.

    Where rows are too few to have it among them the tail is continued as an exponential one, with
    the mean excess of the fifth that is most surprising.
    """
    ordered = np.sort(surprise)
    place = int(np.ceil((len(ordered) + 1) * level - 1e-9))
    if place <= len(ordered):
        return float(ordered[place - 1])
    tail = ordered[int(0.8 * len(ordered)) :]
    missing = np.log(1 / (1 - level) / (len(ordered) + 1))
    return float(ordered[-1] + missing * (tail - tail[0]).mean())
