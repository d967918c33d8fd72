"""Bringing a saved model and a table together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdeepsense.cli.columns import inputs_of, is_numeric, some
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import polars as pl


def load_model(path: Path) -> Any:
    """The model in a file."""
    from rdeepsense.estimators import load

    return load(path)


def model_inputs(model: Any, frame: pl.DataFrame, not_inputs: list[str]) -> tuple[Any, list[str]]:
    """The columns the model was fitted on, in its order; and the columns that were not used."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        used = [n for n in frame.columns if is_numeric(frame[n]) and n not in not_inputs]
        if len(used) != model.n_features_in_:
            raise InputError(
                f"the model was fitted without column names on {model.n_features_in_} columns; the "
                f"table has {len(used)} numeric ones: {some(used)}"
            )
    else:
        used = [str(name) for name in names]
        for name in used:
            if name not in frame.columns:
                raise InputError(
                    f"the model needs the column {name!r}; the table has {some(frame.columns)}"
                )
    extra = [name for name in frame.columns if name not in used and name not in not_inputs]
    checked = inputs_of(frame, used, model.missing)
    # A model that was fitted without names would warn about a table that has them.
    return (checked if names is not None else checked.to_numpy()), extra
