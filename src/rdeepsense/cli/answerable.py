"""Rows without a prediction: they lack a value that no training row lacked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rdeepsense.cli.columns import plural
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from rdeepsense.arrays import Booleans
    from rdeepsense.cli.inference import Inputs
    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.estimators.loading import Estimator


def answerable(model: Estimator, inputs: Inputs) -> Booleans:
    """Tell which rows a model can answer; refuse a table of which it can answer none."""
    from rdeepsense.status import Status

    found: Booleans = (model.status(inputs) & Status.MISSING) == 0
    if not found.any():
        raise InputError(
            f"missing values in all {len(found):,} rows, where the training rows had none; "
            "--missing mean, at fit, fills them with the column's mean"
        )
    return found


def rows_of(inputs: Inputs, chosen: Booleans) -> Inputs:
    """Return some rows of a table or an array."""
    return inputs.filter(chosen) if hasattr(inputs, "filter") else inputs[chosen]


def without_strange_gaps(
    terminal: Terminal, model: Estimator, X: pl.DataFrame, chosen: Booleans
) -> Booleans:
    """Mark the rows that can be scored, and say how many of those chosen cannot."""
    import numpy as np

    found = np.ones(len(chosen), dtype=bool)
    found[chosen] = answerable(model, X.filter(chosen))
    report_unanswered(terminal, int((~found).sum()))
    return found


def report_unanswered(terminal: Terminal, rows: int) -> None:
    """Say how many rows have no answer, if any."""
    if rows:
        terminal.line(f"no answer {plural(rows, 'row')}: a required value is missing")
