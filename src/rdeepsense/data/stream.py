"""Opening a table in Parquet files: which columns do what, and which rows stay in memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from rdeepsense.data import checks
from rdeepsense.data.parquet import NUMBER, ParquetTable
from rdeepsense.data.rows import SET_ASIDE, Data
from rdeepsense.data.splits import Part, evenly, validation_fraction
from rdeepsense.data.survey import Bounds, Columns, Survey, group_draws, survey
from rdeepsense.errors import InputError
from rdeepsense.progress import progress_for

MOST_KEPT = 100_000  # rows of each kind
COPIES = 3  # of a kept row in float64: itself, and what is made of it to judge by

Pair = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class StreamedData(Data):
    """Rows that stay in their files; X and y are a sample of those to train on."""

    table: ParquetTable
    columns: Columns
    found: Survey
    memory: int


def open_table(
    estimator: Any,
    source: str | os.PathLike[str] | ParquetTable,
    y: Any,
    sample_weight: Any,
    validation: tuple[Any, Any] | None,
    groups: Any,
    memory: int,
) -> tuple[StreamedData, Pair | None]:
    """Read the table once; what training needs to know, and the rows set aside."""
    checks.check_whole("memory", memory, 1)
    if sample_weight is not None:
        raise InputError("sample_weight does not go with files; read the table into memory for it")
    table = source if isinstance(source, ParquetTable) else ParquetTable(source)
    columns = _columns(estimator, table, y, groups)
    if table.rows < checks.FEWEST_ROWS:
        raise InputError(
            f"{table.path}: has {table.rows} rows; at least {checks.FEWEST_ROWS} are needed"
        )
    if groups is not None and validation is not None:
        raise InputError("give groups or validation, not both: groups only split off validation")
    names = columns.inputs
    estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator.target_names_ = tuple(columns.targets)
    estimator.n_features_in_ = len(names)
    estimator.input_shape_ = (len(names),)
    seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    most = rows_to_keep(memory, len(names) + len(columns.targets))
    found = _survey(estimator, table, columns, most, seed, validation is None)
    single = isinstance(y, str)
    estimator._encode(_shaped(found.values, single), len(found.values), None)
    if not found.inputs.count.all():
        empty = names[int(found.inputs.count.argmin())]
        raise InputError(f"{table.path}: column {empty!r} has no value at all, so it has no mean")

    def rows_of(pair: Pair) -> Pair:
        return pair[0], estimator._encode_more(_shaped(pair[1], single), len(pair[0]))

    X, targets = rows_of(found.sample.rows())
    weight = np.full(len(X), sum(found.counts) / len(X))
    sample = Part(np.arange(len(X)), weight, np.arange(len(X)))
    if validation is None:
        X_val, y_val = rows_of(found.held.rows())
    else:
        X_val, y_val = estimator._check_validation(validation)
    held = evenly(np.arange(len(X_val)))
    data = StreamedData(
        X, targets, sample, sample, X_val, y_val, held, None, validation is None, seed,
        table, columns, found, memory,
    )  # fmt: skip
    return data, rows_of(found.aside.rows()) if len(found.aside) else None


def rows_to_keep(memory: int, columns: int) -> int:
    """Of each of three kinds, which share a quarter of the budget."""
    return max(1, min(MOST_KEPT, memory // 4 // 3 // (8 * COPIES * columns)))


def _columns(estimator: Any, table: ParquetTable, y: Any, groups: Any) -> Columns:
    """Which columns are inputs, targets and groups; refused where they cannot be."""
    targets = [y] if isinstance(y, str) else list(y) if isinstance(y, list | tuple) else []
    if not targets or not all(isinstance(name, str) for name in targets):
        raise InputError(
            f"X is {os.fspath(table.path)!r}, so y must name the target column, or be a list of "
            f"names; it is a {type(y).__name__}"
        )
    if not (groups is None or isinstance(groups, str)):
        raise InputError(f"groups must name a column of the files; it is a {type(groups).__name__}")
    for argument, names in (("y", targets), ("groups", [] if groups is None else [groups])):
        for name in names:
            if name not in table.columns:
                known = ", ".join(table.columns)
                raise InputError(
                    f"{argument}: there is no column {name!r} in {table.path}; {known}"
                )
    named = [*targets, *([] if groups is None else [groups])]
    for name in named:
        if named.count(name) > 1:
            raise InputError(f"column {name!r} is named twice in y and groups")
    classes = estimator._are_classes
    if classes and len(targets) > 1:
        raise InputError(f"a classifier has one target; y names {len(targets)}")
    inputs = [name for name in table.columns if name not in named]
    if not inputs:
        raise InputError(f"{table.path}: no column is left as an input")
    for name in inputs if classes else [*inputs, *targets]:
        if table.columns[name] not in (NUMBER, "yes/no"):
            raise InputError(
                f"{table.files[0]}: column {name!r} holds {table.columns[name]}; numbers are "
                "needed, so leave it out of the files or name it in ParquetTable(ignore=...)"
            )
    return Columns(inputs, targets, groups, classes, estimator.missing)


def _survey(
    estimator: Any, table: ParquetTable, columns: Columns, most: int, seed: int, hold: bool
) -> Survey:
    """The first pass, and another one where chance left a side without rows."""
    share = most / table.rows
    aside = min(SET_ASIDE, share) if estimator.calibrate == "conformal" else 0.0
    held = min(validation_fraction(table.rows), share) if hold else 0.0
    bounds = Bounds(aside, aside + held)
    if columns.groups is not None:
        bounds = _whole_groups(bounds, group_draws(table, columns.groups, seed), table)
    found = survey(table, columns, bounds, most, seed, progress_for(estimator.verbose))
    low, high = found.draws
    if hold and not aside and low < high and not (len(found.held) and len(found.sample)):
        bounds = Bounds(0.0, float(np.nextafter(low, 1)))
        found = survey(table, columns, bounds, most, seed, progress_for(estimator.verbose))
    for rows, needed in ((found.aside, aside), (found.held, held), (found.sample, True)):
        if needed and not len(rows):
            raise InputError(f"{table.path}: has too few different inputs to split")
    return found


def _whole_groups(bounds: Bounds, draws: NDArray[np.float64] | None, table: ParquetTable) -> Bounds:
    """Bounds between the groups, so that few of them are shared as truly as many."""
    if draws is None:
        return bounds
    aside = max(1, round(bounds.aside * len(draws))) if bounds.aside else 0
    held = aside + max(1, round((bounds.held - bounds.aside) * len(draws)))
    if held >= len(draws):
        raise InputError(f"{table.path}: has {len(draws)} groups, which are too few to split")
    return Bounds(float(draws[aside]) if aside else 0.0, float(draws[held]))


def _shaped(y: NDArray[Any], single: bool) -> NDArray[Any]:
    """(rows,) where one target was named alone."""
    return y[:, 0] if single and y.ndim == 2 else y
