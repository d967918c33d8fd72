"""What a caller must know of a deployed model, whatever runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Floats
from rdeepsense.errors import InputError
from rdeepsense.guard import Guard

Texts = tuple[str, ...]


@dataclass(frozen=True)
class Intervals:
    """The central interval of each coverage: from mean + low std to mean + high std.

    `low` and `high` are (coverages, outputs). `conformal`, where fitted, is the reach of
    mean +- conformal std; infinite where too few rows were set aside.
    """

    coverages: Floats
    low: Floats
    high: Floats
    conformal: Floats | None = None


@dataclass(frozen=True)
class Facts:
    """What goes in, what comes out, and where the model came from."""

    inputs: int
    outputs: int  # targets, or classes
    head: str = ""  # its public name, for reports
    features: Texts | None = None
    feature_units: Texts | None = None  # a text may be empty
    targets: Texts | None = None  # what the outputs are called; of classes the one they belong to
    target_units: Texts | None = None
    classes: NDArray[Any] | None = None  # labels of a classifier: numbers or texts
    missing: str = "refuse"
    one_output: bool = False  # a 1-D target, so 1-D predictions
    calibration: str | None = None
    intervals: Intervals | None = None  # None for classes
    guard: Guard | None = None  # None for models of before there was one
    version: str = ""  # of rdeepsense, when the model was trained
    source: str = ""  # digest of the model

    @property
    def is_classifier(self) -> bool:
        return self.classes is not None

    def floats(self, X: ArrayLike) -> NDArray[Any]:
        """Return X as (rows, inputs) floats, whatever they are."""
        try:
            rows: NDArray[Any] = np.asarray(X)
            rows = rows if rows.dtype == np.float32 else rows.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"X must hold numbers; {error}") from error
        if rows.ndim != 2 or rows.shape[1] != self.inputs:
            raise InputError(f"X has shape {rows.shape}; the model takes (rows, {self.inputs})")
        return rows

    def check(self, X: ArrayLike) -> NDArray[Any]:
        """Return X as (rows, inputs) floats; refuse what the model cannot take."""
        rows = self.floats(X)
        bad = np.isinf(rows) if self.missing == "mean" else ~np.isfinite(rows)
        if bad.any():
            row, column = (int(k) for k in np.argwhere(bad)[0])
            name = repr(self.features[column]) if self.features else str(column)
            raise InputError(f"X holds {rows[row, column]} in row {row}, column {name}")
        return rows
