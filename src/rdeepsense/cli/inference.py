"""A saved model and a table, brought together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rdeepsense.cli.columns import (
    inputs_of,
    is_numeric,
    report_assumed,
    report_extra,
    report_strays,
    some,
)
from rdeepsense.cli.reading.dates import source_of, with_dates
from rdeepsense.cli.reading.numbers import NumbersInText, Strays, numbers_in, read_with
from rdeepsense.cli.reading.table import Table
from rdeepsense.errors import InputError, nearest

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.estimators.loading import Estimator

Inputs: TypeAlias = "pl.DataFrame | NDArray[np.float64]"
"""Columns with their names, or an array for a model that was fitted without."""


def load_model(path: Path | str) -> Estimator:
    """Return the model in a file."""
    from rdeepsense.estimators import load

    model: Estimator = load(path)
    return model


@dataclass(frozen=True)
class ModelInputs:
    """What a model takes of a table: its inputs, and what is to be said about the columns."""

    values: Inputs
    extra: list[str]  # columns that are not used
    strays: Mapping[str, Strays]
    said: Sequence[str]

    def report(self, terminal: Terminal) -> None:
        """Print what was assumed, what is missing though something is there, what is not used."""
        report_assumed(terminal, self.said)
        report_strays(terminal, self.strays)
        report_extra(terminal, self.extra)


def model_inputs(
    model: Estimator, table: Table, not_inputs: list[str], finite: bool = True
) -> ModelInputs:
    """Return the columns the model was fitted on, in its order, found by their names.

    Of numbers, any cell that is none is missing. Parts of dates are made of their column. Infinity
    is refused with `finite`.
    """
    if model.fitted_.recipe is not None:
        raise InputError(
            "the model takes windows of a log, and this command takes rows of a table; predict, "
            "evaluate, adapt, replay and export --data take a log"
        )
    names = getattr(model, "feature_names_in_", None)
    frame, made = with_dates(table.frame, [] if names is None else [str(name) for name in names])
    columns, left = table.frame.columns, set(not_inputs)
    if names is None:
        used = [n for n in columns if n not in left and is_numeric(frame[n])]
        if len(used) != model.n_features_in_:
            raise InputError(
                f"the model was fitted without column names on {model.n_features_in_} columns; the "
                f"table has {len(used)} numeric ones: {some(used)}"
            )
    else:
        used = [str(name) for name in names]
        known = set(frame.columns)
        for name in used:
            if name not in known:
                source = source_of(name)
                needed = repr(name) if source is None else f"{source!r}, for {name!r}"
                raise InputError(
                    f"the model needs the column {needed}{nearest(source or name, columns)}; "
                    f"the table has {some(columns)}"
                )
    texts = model_categories(model)
    frame, found = _numbers(frame, [n for n in used if n not in texts], table.comma_separated)
    left.update(used, made)
    extra = [name for name in columns if name not in left]
    checked = inputs_of(frame, used, "mean", texts, finite)
    # A model that was fitted without names would warn about a table that has them.
    values = checked if names is not None else checked.to_numpy()
    said = [*table.said, *(read_with(found.read_as) if found else [])]
    return ModelInputs(values, extra, found.strays if found else {}, said)


def model_categories(model: Estimator) -> list[str]:
    """Return those of a model's inputs that are categories."""
    encoding, names = model.fitted_.inputs.encoding, model.fitted_.inputs.names
    if encoding is None or names is None:
        return []
    return [names[category.column] for category in encoding.categories]


def _numbers(
    frame: pl.DataFrame, used: list[str], comma_separated: bool
) -> tuple[pl.DataFrame, NumbersInText | None]:
    import polars as pl

    texts = [name for name in used if frame[name].dtype == pl.String]
    if not texts:
        return frame, None
    found = numbers_in(frame.select(texts), comma_separated, most=1.0)
    return frame.with_columns(found.columns.values()), found
