"""Options that exports share, and the labelled rows that judge an export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.adaptation.rates import Rates
from rdeepsense.calibration.reject import RejectOption
from rdeepsense.data.columns import Columns, coded
from rdeepsense.deploy.quantise import DTYPES
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.windowing import Recipe, Windows
from rdeepsense.windowing.stream import Smoothing

# --------------------------------------------------------------------------------------------------
# Labeled rows for the calibration and evaluation of an export
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelledRows:
    """Inputs, and targets or the numbers of classes; there may be none."""

    X: NDArray[Any]
    y: NDArray[Any]
    origin: str
    runs: Sequence[slice] | None = None  # rows that are windows one hop apart, where that is known
    group: NDArray[Any] | None = None  # whose windows they are, in that case

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
        runs = group = None
        if isinstance(rows[0], Windows) and _cut_alike(rows[0].recipe, fitted.recipe):
            runs, group = rows[0].runs, next(iter(rows[0].groups.values()), None)
        X = _coded(fitted, rows[0])
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        y = _encoded(fitted, np.asarray(rows[1]))
        if X.shape[1:] != fitted.inputs.shape or len(X) != len(y):
            raise InputError(
                f"rows= has X of shape {X.shape} and y of shape {y.shape}; the model takes "
                f"(rows, {', '.join(map(str, fitted.inputs.shape))}) and as many targets"
            )
        return cls(X, y, "rows given", runs, group)

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


# --------------------------------------------------------------------------------------------------
# Options of an export, and those that each format takes
# --------------------------------------------------------------------------------------------------

FORMATS = ("folded", "c99", "onnx", "package", "web")
# The types that weights may be stored in, and the other options that are heard.
STORED = {"folded": ("float32",), "c99": DTYPES, "onnx": ("float32", "int8")}
STORED["package"] = STORED["web"] = STORED["c99"]
STREAM = ("live", "coverage", "rates")
WATCH = ("reject", "novelty")
JUDGED = ("rows", "epistemic", "max_nll_change", "fine_tune")
HEARD = {
    "folded": ("epistemic", "smoothing", "hop", *WATCH),
    "c99": (*JUDGED, "name", "stream", "smoothing", "hop", *STREAM, *WATCH),
    "onnx": (*JUDGED, "features", "reject"),
    "web": (*JUDGED, "stream", "smoothing", *STREAM, *WATCH),
}
HEARD["package"] = (*HEARD["c99"], "version")


@dataclass(frozen=True)
class Options:
    """How to export; `rdeepsense.export` explains each."""

    dtype: str = "float32"
    epistemic: str | None = None
    max_nll_change: float = 0.02
    fine_tune: bool = False
    name: str = "model"
    live: bool = False
    coverage: float = 0.9
    rates: Rates | None = None
    features: bool = False
    stream: str | None = None
    smoothing: Smoothing | None = None
    hop: str | float | None = None
    version: str | None = None
    reject: RejectOption | float | None = None
    novelty: bool | None = None


def check_options(to: str, options: Options, rows_given: bool = False) -> None:
    """Refuse an unknown format, and what a format does not take."""
    if to not in FORMATS:
        raise InputError(f"to={to!r} is unknown; accepted: {_list(FORMATS)}")
    if options.dtype not in STORED[to]:
        what = f"is not for to={to!r}" if options.dtype in DTYPES else "is unknown"
        raise InputError(f"dtype={options.dtype!r} {what}; accepted: {_list(STORED[to])}")
    given = {
        field.name: repr(getattr(options, field.name))
        for field in fields(options)
        if field.name != "dtype" and getattr(options, field.name) != field.default
    }
    for name, value in [*([("rows", "")] if rows_given else []), *given.items()]:
        if name not in HEARD[to]:
            accepted = ", ".join(f"{one}=" for one in ("dtype", *HEARD[to]))
            raise InputError(f"{name}={value} is not for to={to!r}; accepted there: {accepted}")
    if options.fine_tune and options.dtype != "int8":
        raise InputError(
            f"fine_tune=True is for dtype='int8'; {options.dtype} is exported as it was trained"
        )
    for name in ("coverage", "rates"):
        if name in given and not options.live:
            raise InputError(f"{name}={given[name]} is for live=True")
    if options.live and options.epistemic is not None:
        raise InputError(
            f"epistemic={options.epistemic!r} is not for live=True, which learns what rows were "
            "unlike; leave one of them out"
        )
    if options.reject is not None and options.epistemic is not None:
        raise InputError(
            f"reject= is a threshold of the std without its epistemic part, and epistemic="
            f"{options.epistemic!r} exports it with that part; leave one of them out"
        )


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))
