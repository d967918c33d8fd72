"""Warnings of columns whose numbers make a poor model: far too large or small, or a few far out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats
from rdeepsense.data.rows import FitRows
from rdeepsense.data.scaling import Scaler
from rdeepsense.errors import ColumnWarning
from rdeepsense.fitting.target import Target

SMALL, LARGE = 1e-30, 1e30  # float32 ends at 1e-38 and 3e38
FAR = 100  # inter-quartile ranges that a standard deviation may be
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
    said = [str(k) if names is None else repr(names[k]) for k in range(len(inputs.scale))]
    _warn("X", said, rows.X, inputs, inputs.scale, MEND_INPUT)
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
