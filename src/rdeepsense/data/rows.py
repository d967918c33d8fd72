"""The rows of one fit: which train, which validate, which are held out; samples of large tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Floats
from rdeepsense.data.columns import groups_of
from rdeepsense.data.findings import Finding
from rdeepsense.data.splits import (
    Part,
    checked_times,
    counted,
    distinct,
    evenly,
    validation_fraction,
)
from rdeepsense.encoding import Encoding
from rdeepsense.errors import InputError
from rdeepsense.windowing.recipe import Recipe

# --------------------------------------------------------------------------------------------------
# Training, validation and held-out rows of a fit
# --------------------------------------------------------------------------------------------------

Pair = tuple[NDArray[Any], NDArray[Any]]
SET_ASIDE = 0.2  # of the rows, or of the groups, for conformal prediction
ENOUGH_GROUPS = 9  # set aside, promise a coverage of 0.9 for a new one


@dataclass(frozen=True)
class FitRows:
    """The rows of one fit: checked, encoded, split."""

    X: NDArray[Any]
    y: NDArray[Any]
    rows: Part  # all that may be learnt from, validation included where it is split off
    train: Part
    X_val: NDArray[Any]
    y_val: NDArray[Any]
    validation: Part
    labels: NDArray[Any] | None  # class numbers, for splits that keep every class's share
    split_off: bool  # whether the validation rows are rows of X
    seed: int
    aside: Pair | None  # for conformal prediction, seen by no other choice
    encoding: Encoding | None = field(default=None, kw_only=True)  # None where all are numbers
    # The label of each row of X; then a block of `rows` is a group. None without groups.
    groups: NDArray[Any] | None = field(default=None, kw_only=True)
    aside_groups: NDArray[Any] | None = field(default=None, kw_only=True)  # of the rows set aside
    recipe: Recipe | None = field(default=None, kw_only=True)  # of rows that are windows of a log
    in_time: bool = field(default=False, kw_only=True)  # whether the last rows in time validate
    findings: tuple[Finding, ...] = field(default=(), kw_only=True)  # of the check of the data
    dated: tuple[str, ...] = field(default=(), kw_only=True)  # columns of dates that are inputs
    runs: Sequence[slice] | None = field(default=None, kw_only=True)  # rows that are one hop apart

    @property
    def network_shape(self) -> tuple[int, ...]:
        """The shape of what networks read of a row."""
        shape: tuple[int, ...] = self.X.shape[1:]
        return shape if self.encoding is None else (self.encoding.width,)

    @property
    def held_out(self) -> Pair:
        """The validation rows."""
        return self.X_val[self.validation.index], self.y_val[self.validation.index]


def split_rows(
    X: NDArray[Any],
    y: NDArray[Any],
    weight: Floats | None,
    groups: ArrayLike | None,
    classes: bool,
    set_aside: bool,
    seed: int,
    time: ArrayLike | None = None,
) -> FitRows:
    """Hold validation rows out of the table: whole groups, or the last by their time."""
    labels = y if classes else None
    if groups is not None:
        groups = groups_of(groups, len(X))
    rows = distinct(X, y, weight, groups)
    if time is not None:
        times, aside = checked_times(time, len(X)), None
        if set_aside:
            rows, aside = rows.hold_out_last(SET_ASIDE, times)
        train, held = rows.hold_out_last(validation_fraction(len(rows)), times)
        own = _taken(X, y, aside)
        return FitRows(X, y, rows, train, X, y, held, labels, True, seed, own, in_time=True)
    share = SET_ASIDE if groups is None else share_of_groups(rows.blocks)
    rows, aside = _set_aside(rows, set_aside, seed, labels, share)
    train, held = rows.hold_out(validation_fraction(len(rows)), seed, labels)
    own = _taken(X, y, aside)
    kept = FitRows(X, y, rows, train, X, y, held, labels, True, seed, own, groups=groups)
    if aside is None or groups is None:
        return kept
    return replace(kept, aside_groups=groups[aside.index])


def with_validation(
    X: NDArray[Any],
    y: NDArray[Any],
    weight: Floats | None,
    validation: Pair,
    classes: bool,
    set_aside: bool,
    seed: int,
) -> FitRows:
    """Train on the whole table, for which validation rows are given."""
    labels = y if classes else None
    rows = evenly(np.arange(len(X)))
    if weight is not None:
        rows = Part(rows.index, weight, rows.block)[weight > 0]
    rows, aside = _set_aside(rows, set_aside, seed, labels)
    held = counted(*validation)
    return FitRows(X, y, rows, rows, *validation, held, labels, False, seed, _taken(X, y, aside))


def check_one_split(validation: object, groups: object, time: object = None) -> None:
    """Refuse two ways to split."""
    if validation is not None and groups is not None:
        raise InputError("give groups or validation, not both: groups only split off validation")
    for name, other in (("validation", validation), ("groups", groups)):
        if time is not None and other is not None:
            raise InputError(f"give time or {name}, not both: each of them splits off validation")


def share_of_groups(groups: int) -> float:
    """Return the share of the groups to set aside: a fifth, and nine if that is half at most."""
    fewest = ENOUGH_GROUPS / groups
    return max(SET_ASIDE, fewest) if fewest <= 0.5 else SET_ASIDE


def _set_aside(
    rows: Part, wanted: bool, seed: int, labels: NDArray[Any] | None, share: float = SET_ASIDE
) -> tuple[Part, Part | None]:
    return rows.hold_out(share, seed + 1, labels) if wanted else (rows, None)


def _taken(X: NDArray[Any], y: NDArray[Any], part: Part | None) -> Pair | None:
    return None if part is None else (X[part.index], y[part.index])


# --------------------------------------------------------------------------------------------------
# Samples of large tables, split like the whole table
# --------------------------------------------------------------------------------------------------

FEWEST_HELD = 500  # validation rows of a sample, where there are so many


def sampled(rows: FitRows, most: int, trained: int) -> FitRows:
    """Draw at most so many rows by the seed, those to train and to validate on in proportion.

    `trained` is how many train in the whole, of which `rows` may hold only some. Rows train or
    validate as they do in the whole, so that the whole's judges are strange to all that was chosen
    on the sample's training rows. Weights are kept, groups are whole (`Part.drawn`), and X is not
    copied.
    """
    held = len(rows.validation)
    share = min(1.0, most / (trained + held))
    judges = max(round(share * held), min(held, FEWEST_HELD, most // 2))
    train = rows.train.drawn(most - judges, rows.seed + 2, rows.labels)
    labels = None if rows.labels is None else rows.y_val
    return FitRows(
        rows.X,
        rows.y,
        train,
        train,
        rows.X_val,
        rows.y_val,
        rows.validation.drawn(judges, rows.seed + 3, labels),
        rows.labels,
        rows.split_off,
        rows.seed,
        aside=None,
        encoding=rows.encoding,
        groups=rows.groups,
        recipe=rows.recipe,
        in_time=rows.in_time,
    )
