"""A saved model and a table, brought together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rdeepsense.cli.columns import inputs_of, is_numeric, some
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rdeepsense.estimators.loading import Estimator

Inputs: TypeAlias = "pl.DataFrame | NDArray[np.float64]"
"""Columns with their names, or an array for a model that was fitted without."""


def load_model(path: Path) -> Estimator:
    """Return the model in a file."""
    from rdeepsense.estimators import load

    model: Estimator = load(path)
    return model


def model_inputs(
    model: Estimator, frame: pl.DataFrame, not_inputs: list[str]
) -> tuple[Inputs, list[str]]:
    """Return the columns the model was fitted on, in its order, and those that are not used."""
    names = getattr(model, "feature_names_in_", None)
    columns, left = frame.columns, set(not_inputs)
    if names is None:
        used = [n for n in columns if n not in left and is_numeric(frame[n])]
        if len(used) != model.n_features_in_:
            raise InputError(
                f"the model was fitted without column names on {model.n_features_in_} columns; the "
                f"table has {len(used)} numeric ones: {some(used)}"
            )
    else:
        used = [str(name) for name in names]
        known = set(columns)
        for name in used:
            if name not in known:
                raise InputError(
                    f"the model needs the column {name!r}; the table has {some(columns)}"
                )
    left.update(used)
    extra = [name for name in columns if name not in left]
    checked = inputs_of(frame, used, model.missing)
    # A model that was fitted without names would warn about a table that has them.
    return (checked if names is not None else checked.to_numpy()), extra
