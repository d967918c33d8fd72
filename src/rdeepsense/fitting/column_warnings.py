"""Warnings of columns whose numbers make a poor model: far too large or small, or a few far out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats, about
from rdeepsense.data.rows import FitRows
from rdeepsense.data.scaling import Scaler
from rdeepsense.errors import ColumnWarning
from rdeepsense.fitting.target import Target

SMALL, LARGE = 1e-30, 1e30  # float32 ends at 1e-38 and 3e38
FAR = 100  # inter-quartile ranges that a standard deviation may be
UNIQUE = 0.5  # levels of a row: a category with more is a name of the row
LISTED = 5  # columns that are named
SOME = 10_000  # rows, or times of windows, that tell the inter-quartile range
RESCALE = (
    "single precision, in which devices compute, ends at 1e-38 and 3e38: multiply the values by a "
    "constant"
)
MEND_INPUT = "the others look alike to the model: mend or clip them, or take logarithms"
MEND_TARGET = (
    'the Gaussian follows them: mend them, or fit with likelihood="student" or likelihood="auto"'
)


def warn_of_columns(
    rows: FitRows,
    inputs: Scaler,
    names: Sequence[str] | None,
    target: Target,
    targets: Scaler | None,
    heavy_tailed: bool,
) -> None:
    """Name the columns that a user should look at; `heavy_tailed` heads stand targets far out."""
    said = [str(k) if names is None else repr(names[k]) for k in range(rows.X.shape[-1])]
    X = rows.X
    if rows.encoding is not None:  # levels and flags are as they are
        _warn_of_levels(rows, said)
        numbers = list(rows.encoding.numbers)
        X, said = X[:: max(1, len(X) // SOME)][:, numbers], [said[k] for k in numbers]
        flat = tuple(k for k, column in enumerate(numbers) if column in inputs.flat)
        inputs = Scaler(inputs.shift[: len(numbers)], inputs.scale[: len(numbers)], flat)
    if X.shape[-1]:
        _warn("X", said, X, inputs, inputs.scale, MEND_INPUT)
    if targets is None:
        return
    y = rows.y.reshape(len(rows.y), -1)
    held = rows.y_val.reshape(len(rows.y_val), -1)
    said = [str(k) for k in range(y.shape[1])]
    if target.names is not None:
        said = [repr(name) for name in target.names]
    # Rows far out among those that validate are seen by the calibration.
    std = np.maximum(targets.scale, np.maximum(_std(y), _std(held)))
    _warn("y", said, y, targets, std, None if heavy_tailed else MEND_TARGET)


def _warn_of_levels(rows: FitRows, said: Sequence[str]) -> None:
    """Name the categories that tell single rows apart."""
    assert rows.encoding is not None
    found = [c for c in rows.encoding.categories if len(c.levels) > UNIQUE * len(rows.X)]
    chosen = np.isin(np.arange(len(said)), [c.column for c in found])
    if found:
        warnings.warn(
            f"{_listed('X', said, chosen)[1]}: {len(found[0].levels):,} levels in {len(rows.X):,} "
            "rows, so that most are of one row alone and teach nothing: leave it out",
            ColumnWarning,
            stacklevel=2,
        )


def _warn(
    what: str,
    said: Sequence[str],
    values: NDArray[Any],
    scaler: Scaler,
    std: Floats,
    mend: str | None,
) -> None:
    some = values[:: max(1, values.size // values.shape[-1] // SOME)]
    some = np.where(np.isnan(some), scaler.shift, some).reshape(-1, values.shape[-1])
    size = np.abs(some).max(axis=0)
    varies = np.ones(len(said), dtype=bool)
    varies[list(scaler.flat)] = False
    extreme = varies & ((scaler.scale < SMALL) | (np.maximum(scaler.scale, size) > LARGE))
    low, high = np.quantile(some, (0.25, 0.75), axis=0)
    far = varies & ~extreme & (high > low) & (std / FAR > high - low)
    lost = ~varies & (np.ptp(some, axis=0) > 0)
    if lost.any() and values.dtype == np.float32:
        k, columns = _listed(what, said, lost)
        warnings.warn(
            f"{columns}: float32 does not tell the values apart, which are "
            f"{about(scaler.shift[k], np.std(some[:, k], dtype=np.float64))}, so they count as "
            "constant: give float64",
            ColumnWarning,
            stacklevel=2,
        )
    if extreme.any():
        k, columns = _listed(what, said, extreme)
        warnings.warn(
            f"{columns}: the standard deviation is {scaler.scale[k]:.3g}, and {RESCALE}",
            ColumnWarning,
            stacklevel=2,
        )
    if far.any() and mend is not None:
        k, columns = _listed(what, said, far)
        warnings.warn(
            f"{columns}: the standard deviation is {std[k]:.3g}, while half of the rows are within "
            f"{high[k] - low[k]:.3g}; a few are far out, and {mend}",
            ColumnWarning,
            stacklevel=2,
        )


def _listed(what: str, said: Sequence[str], chosen: Booleans) -> tuple[int, str]:
    """Return the first of some columns, and the names of all."""
    numbers = np.flatnonzero(chosen).tolist()
    named = ", ".join(said[k] for k in numbers[:LISTED])
    more = f" and {len(numbers) - LISTED} more" if len(numbers) > LISTED else ""
    return numbers[0], f"{what}, column{'s' * (len(numbers) > 1)} {named}{more}"


def _std(values: NDArray[Any]) -> Floats:
    """Return the standard deviation of columns, whatever their size."""
    index = np.arange(len(values))
    return Scaler.standard(values, index, np.ones(len(values)), 0.0).scale
