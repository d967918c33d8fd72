"""Splitting a table in Parquet files: which columns do what, which rows stay in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.data.accumulators import Moments, Reservoir
from rdeepsense.data.checks import FEWEST_ROWS, check_whole, gaps_of
from rdeepsense.data.kinds import GROUPS, LABELS, refuse_kind
from rdeepsense.data.parquet import NUMBER, ParquetTable, first_repeated
from rdeepsense.data.rows import SET_ASIDE, Pair
from rdeepsense.data.splits import validation_fraction
from rdeepsense.data.survey import Bounds, Columns, Survey, group_draws, survey
from rdeepsense.errors import InputError, nearest
from rdeepsense.progress import progress_for

MOST_KEPT = 100_000  # rows of each kind
TINY = 1e-290  # a sum of squares that is still as exact as others
COPIES = 3  # of a kept row in float64: itself, and what is made of it to judge by


@dataclass(frozen=True)
class ParquetSplit:
    """A table in files after its first reading: rows that stay in memory, targets as in the files.

    Each pair is X and y; `values` are all labels of a class target, or the extremes of numbers.
    """

    table: ParquetTable
    columns: Columns
    found: Survey
    memory: int
    seed: int
    sample: Pair  # of the rows to train on
    held: Pair | None  # None where validation rows are given
    aside: Pair | None
    values: NDArray[Any]

    @property
    def missing(self) -> str:
        """How missing inputs are treated: "auto" fills them with the mean where there are any."""
        if self.columns.missing != "auto":
            return self.columns.missing
        kept = (pair[0] for pair in (self.held, self.aside) if pair is not None)
        lacking = (self.found.inputs.count < sum(self.found.counts)).any()
        return "mean" if lacking or any(gaps_of(X).any() for X in kept) else "refuse"


def split_parquet(
    table: ParquetTable,
    y: object,  # the name of the target column or a list of names, and
    groups: object,  # that of a column or None; anything else is refused
    *,
    classes: bool,
    missing: str,
    hold_out: bool,
    set_aside: bool,
    seed: int,
    memory: int,
    verbose: bool,
) -> ParquetSplit:
    """Read the table once: what training needs to know of it, and the rows that stay in memory."""
    check_whole("memory", memory, 1)
    if missing == "indicator":
        raise InputError(
            "missing = 'indicator' is for tables in memory; accepted for files: auto, mean, refuse"
        )
    columns = _columns(table, y, groups, classes, missing)
    if table.rows < FEWEST_ROWS:
        raise InputError(f"{table.path}: has {table.rows} rows; at least {FEWEST_ROWS} are needed")
    most = rows_to_keep(memory, len(columns.inputs) + len(columns.targets))
    found = _survey(table, columns, most, seed, hold_out, set_aside, verbose)
    if not found.inputs.count.all():
        empty = columns.inputs[int(found.inputs.count.argmin())]
        raise InputError(f"{table.path}: column {empty!r} has no value at all, so it has no mean")
    _check_moments(table, columns.inputs, found.inputs)
    single = isinstance(y, str)

    def rows_of(kept: Reservoir) -> Pair:
        X, targets = kept.rows()
        return X, _shaped(targets, single)

    return ParquetSplit(
        table,
        columns,
        found,
        memory,
        seed,
        sample=rows_of(found.sample),
        held=rows_of(found.held) if hold_out else None,
        aside=rows_of(found.aside) if len(found.aside) else None,
        values=_shaped(found.values, single),
    )


def rows_to_keep(memory: int, columns: int) -> int:
    """Return how many rows to keep of each of three kinds, which share a quarter of the budget."""
    return max(1, min(MOST_KEPT, memory // 4 // 3 // (8 * COPIES * columns)))


def _columns(
    table: ParquetTable,
    y: object,  # whatever a caller gave: refused here
    groups: object,
    classes: bool,
    missing: str,
) -> Columns:
    """Tell which columns are inputs, targets and groups, or refuse where they cannot be."""
    targets = [y] if isinstance(y, str) else list(y) if isinstance(y, list | tuple) else []
    if not targets or not all(isinstance(name, str) for name in targets):
        raise InputError(
            f"X is {str(table.path)!r}, so y must name the target column, or be a list of "
            f"names; it is a {type(y).__name__}"
        )
    if not (groups is None or isinstance(groups, str)):
        raise InputError(f"groups must name a column of the files; it is a {type(groups).__name__}")
    for argument, names in (("y", targets), ("groups", [] if groups is None else [groups])):
        for name in names:
            if name not in table.columns:
                known = ", ".join(table.columns)
                raise InputError(
                    f"{argument}: there is no column {name!r} in {table.path}"
                    f"{nearest(name, table.columns)}; {known}"
                )
    named = [*targets, *([] if groups is None else [groups])]
    if (name := first_repeated(named)) is not None:
        raise InputError(f"column {name!r} is named twice in y and groups")
    if classes and len(targets) > 1:
        raise InputError(f"a classifier has one target; y names {len(targets)}")
    left = set(named)
    inputs = [name for name in table.columns if name not in left]
    if not inputs:
        raise InputError(f"{table.path}: no column is left as an input")
    if groups is not None:
        refuse_kind(f"groups, column {groups!r},", table.columns[groups], GROUPS)
    for name in targets if classes else ():
        refuse_kind(f"y, column {name!r},", table.columns[name], LABELS)
    for name in inputs if classes else [*inputs, *targets]:
        if table.columns[name] not in (NUMBER, "yes/no"):
            raise InputError(
                f"{table.files[0]}: column {name!r} holds {table.columns[name]}; numbers are "
                "needed, so leave it out of the files or name it in ParquetTable(ignore=...)"
            )
    return Columns(inputs, targets, groups, classes, missing)


def _check_moments(table: ParquetTable, names: list[str], found: Moments) -> None:
    """Refuse inputs whose variance is no number: its square would be 0 or infinite."""
    varies = found.high > found.low
    lost = varies & ~((found.squares > TINY) & np.isfinite(found.squares))
    if lost.any():
        k = int(lost.argmax())
        raise InputError(
            f"{table.path}: column {names[k]!r} goes from {found.low[k]:g} to {found.high[k]:g}, "
            "and its variance is no number; multiply it by a constant"
        )


def _survey(
    table: ParquetTable,
    columns: Columns,
    most: int,
    seed: int,
    hold: bool,
    set_aside: bool,
    verbose: bool,
) -> Survey:
    """Read the table once, and again where chance left a side without rows."""
    share = most / table.rows
    aside = min(SET_ASIDE, share) if set_aside else 0.0
    held = min(validation_fraction(table.rows), share) if hold else 0.0
    bounds = Bounds(aside, aside + held)
    if columns.groups is not None:
        bounds = _whole_groups(bounds, group_draws(table, columns.groups, seed), table)
    found = survey(table, columns, bounds, most, seed, progress_for(verbose))
    low, high = found.draws
    if hold and not aside and low < high and not (len(found.held) and len(found.sample)):
        bounds = Bounds(0.0, float(np.nextafter(low, 1)))
        found = survey(table, columns, bounds, most, seed, progress_for(verbose))
    for rows, needed in ((found.aside, aside), (found.held, held), (found.sample, True)):
        if needed and not len(rows):
            raise InputError(f"{table.path}: has too few different inputs to split")
    return found


def _whole_groups(bounds: Bounds, draws: Floats | None, table: ParquetTable) -> Bounds:
    """Put the bounds between groups, so that a few groups are shared out as exactly as many."""
    if draws is None:
        return bounds
    aside = max(1, round(bounds.aside * len(draws))) if bounds.aside else 0
    held = aside + max(1, round((bounds.held - bounds.aside) * len(draws)))
    if held >= len(draws):
        raise InputError(f"{table.path}: has {len(draws)} groups, which are too few to split")
    return Bounds(float(draws[aside]) if aside else 0.0, float(draws[held]))


def _shaped(y: NDArray[Any], single: bool) -> NDArray[Any]:
    """Return (rows,) where one target was named alone."""
    return y[:, 0] if single and y.ndim == 2 else y
