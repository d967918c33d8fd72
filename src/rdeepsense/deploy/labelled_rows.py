"""The labelled rows that an export is calibrated on and judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.data.categories import Columns, coded
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.windowing import Recipe, Windows


@dataclass(frozen=True)
class LabelledRows:
    """Inputs, and targets or the numbers of classes; there may be none."""

    X: NDArray[Any]
    y: NDArray[Any]
    origin: str
    runs: Sequence[slice] | None = None  # rows that are windows one hop apart, where that is known

    @classmethod
    def of(cls, fitted: Fitted, rows: tuple[ArrayLike, ArrayLike] | None = None) -> LabelledRows:
        """Take the rows that were given, else those that the model kept."""
        if rows is None:
            return cls(*fitted.kept_rows, "model file")
        if not isinstance(rows, tuple | list) or len(rows) != 2:
            raise InputError("rows= must be a pair (X, y)")
        columns = getattr(rows[0], "columns", None)
        if columns is not None and fitted.inputs.names is not None:
            found = tuple(map(str, columns))
            if found != fitted.inputs.names:
                raise InputError(
                    f"rows= has the columns {', '.join(found)}; the model was fitted on "
                    f"{', '.join(fitted.inputs.names)}"
                )
        runs = None
        if isinstance(rows[0], Windows) and _cut_alike(rows[0].recipe, fitted.recipe):
            runs = rows[0].runs
        X = _coded(fitted, rows[0])
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        y = _encoded(fitted, np.asarray(rows[1]))
        if X.shape[1:] != fitted.inputs.shape or len(X) != len(y):
            raise InputError(
                f"rows= has X of shape {X.shape} and y of shape {y.shape}; the model takes "
                f"(rows, {', '.join(map(str, fitted.inputs.shape))}) and as many targets"
            )
        return cls(X, y, "rows given", runs)

    def calibrating(self, dtype: str) -> NDArray[Any]:
        """Inputs to choose the rounding on: in int8 half of the rows, the other half judges."""
        return self.X[::2] if dtype == "int8" else self.X

    def judging(self, dtype: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Rows that nothing was chosen on."""
        return (self.X[1::2], self.y[1::2]) if dtype == "int8" else (self.X, self.y)


def _cut_alike(recipe: Recipe, own: Recipe | None) -> bool:
    """Tell whether windows follow each other as those of the model do."""
    return own is not None and (recipe.rate, recipe.step) == (own.rate, own.step)


def _coded(fitted: Fitted, X: ArrayLike) -> NDArray[Any]:
    """Turn levels into their codes."""
    encoding = fitted.inputs.encoding
    if encoding is not None and encoding.categories:
        columns = Columns.of(X, every=True)
        if columns is not None:
            return coded(columns, encoding)
    return np.asarray(X)


def _encoded(fitted: Fitted, y: NDArray[Any]) -> NDArray[Any]:
    """Turn labels into the numbers of their classes; leave numbers as they are."""
    target = fitted.target
    if target.classes is None:
        if y.shape[1:] != target.shape:
            raise InputError(
                f"rows= has y of shape {y.shape}; the model was fitted on {('rows', *target.shape)}"
            )
        return y.astype(np.float64)
    number = {label: k for k, label in enumerate(target.classes.tolist())}
    unknown = sorted({str(label) for label in y.tolist() if label not in number})
    if unknown:
        raise InputError(
            f"rows= has the class {unknown[0]!r}, which the model does not know; known: "
            f"{', '.join(map(str, number))}"
        )
    return np.array([number[label] for label in y.tolist()], dtype=np.int64)
