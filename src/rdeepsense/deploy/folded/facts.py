"""What a caller must know of a deployed model, whatever runs it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Booleans, Floats
from rdeepsense.compact_novelty import CompactNovelty
from rdeepsense.data.categories import Columns, objects_of
from rdeepsense.data.dates import further_columns
from rdeepsense.encoding import MISSING_TYPES, Encoding
from rdeepsense.errors import InputError, nearest
from rdeepsense.guard import Guard
from rdeepsense.refusal import Refusal, unanswerable
from rdeepsense.windowing.recipe import Recipe, seconds
from rdeepsense.windowing.stream import Smoothing

Texts = tuple[str, ...]
LISTED = 20


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

    def row(self, coverage: float) -> int:
        """Return the place of a coverage, or say which are stored."""
        at = np.flatnonzero(np.isclose(self.coverages, coverage, rtol=0, atol=1e-9))
        if not len(at):
            accepted = ", ".join(f"{c:g}" for c in self.coverages)
            raise InputError(f"coverage = {coverage!r} is not stored here; stored: {accepted}")
        return int(at[0])


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
    encoding: Encoding | None = None  # of categories and flags; None where all are plain numbers
    version: str = ""  # of rdeepsense, when the model was trained
    source: str = ""  # digest of the model
    window: tuple[int, ...] = ()  # axes of a row before that of the inputs: the times of a window
    recipe: Recipe | None = None  # how windows are cut from a log; None where nobody said
    smoothing: Smoothing | None = None  # of decisions in a stream, for classes
    refusal: Refusal | None = None  # None where no reject option was exported
    novelty: CompactNovelty | None = None
    dated: Texts = ()  # the columns of dates that inputs are made from, see `data.dates`
    double: tuple[int, ...] = ()  # columns whose values float32 does not tell apart

    @property
    def is_classifier(self) -> bool:
        return self.classes is not None

    def streamed(self, smoothing: Smoothing | None, hop: str | float | None) -> Facts:
        """Return them for a stream with another smoothing, or another hop between its windows.

        A smoothing that is given is for that hop; the model's own is made to fit it.
        """
        if smoothing is not None and self.smoothing is None:
            raise InputError(
                "smoothing= is for classes of windows that rdeepsense.windows(...) cut; this model "
                "has no such decisions"
            )
        recipe, own = self.recipe, smoothing or self.smoothing
        if hop is not None:
            if recipe is None:
                raise InputError(
                    f"hop={hop!r} is for models of windows that rdeepsense.windows(...) cut"
                )
            apart = seconds("hop", hop)
            if own is not None and smoothing is None:
                own = own.spaced(apart / recipe.hop)
            recipe = replace(recipe, hop=apart)
        return replace(self, recipe=recipe, smoothing=own)

    def inside(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return rows as networks read them: numbers out of range are moved to its end."""
        return X if self.guard is None else self.guard.inside(X)

    def numbers(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the inputs of rows that are no categories."""
        if self.encoding is None or not self.encoding.categories:
            return X
        return X[:, list(self.encoding.numbers)]

    def floats(self, X: ArrayLike) -> NDArray[Any]:
        """Return X as (rows, inputs) floats, whatever they are; levels by name become codes.

        Columns of a table are taken by their names, in any order, and inputs that the model makes
        of dates are made of theirs.
        """
        if isinstance(X, np.ma.MaskedArray):
            X = np.ma.filled(X.astype(np.float64), np.nan)
        columns = None if self.window else further_columns(X, self.features)
        X = self._by_name(X) if columns is None else self._of_columns(columns)
        try:
            if self.encoding is not None and self.encoding.categories:
                X = self._coded(np.asarray(X, dtype=object), self.encoding)
            rows: NDArray[Any] = np.asarray(X)
            rows = rows if rows.dtype == np.float32 else rows.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"X must hold numbers; {error}") from error
        if rows.ndim < 2 or rows.shape[1:] != (*self.window, self.inputs):
            accepted = ", ".join(map(str, (*self.window, self.inputs)))
            raise InputError(f"X has shape {rows.shape}; the model takes (rows, {accepted})")
        if self.double and rows.dtype == np.float32:
            name = repr(self._name(self.double[0]))
            raise InputError(
                f"X is float32, which cannot tell the values of column {name} apart; give float64"
            )
        return rows

    def check(self, X: ArrayLike) -> NDArray[Any]:
        """Return X as floats, (rows, inputs) or windows; refuse what the model cannot take."""
        rows = self.floats(X)
        self.refuse(rows)
        return rows

    def unanswerable(self, rows: NDArray[Any]) -> Booleans:
        """Tell which numbers the model cannot take: infinite ones, and NaN that it does not."""
        gaps = None if self.guard is None else self.guard.missing > 0
        return unanswerable(rows, self.missing, gaps)

    def refuse(self, rows: NDArray[Any]) -> None:
        """Refuse numbers that the model cannot take."""
        bad = self.unanswerable(rows)
        if bad.any():
            row, *times, column = (int(k) for k in np.argwhere(bad)[0])
            name = repr(self._name(column)) if self.features else str(column)
            at = "".join(f", time {time}" for time in times)
            value = rows[(row, *times, column)]
            raise InputError(f"X holds {value} in row {row}{at}, column {name}")

    def _by_name(self, X: Any) -> Any:  # Any: an array, or a table of pandas, polars or pyarrow
        """Return a table's columns in the order of the inputs; an array as it is."""
        if self.features is None or self.window:
            return X
        names = getattr(X, "column_names", getattr(X, "columns", None))
        if names is None or not all(isinstance(name, str) for name in names):
            return X
        given, wanted = list(names), list(self.features)
        if given == wanted:
            return X
        strange = [name for name in given if name not in set(wanted)]
        missing = [name for name in wanted if name not in set(given)]
        if missing or strange or len(given) != len(wanted):
            said = [f"lacks {one!r}{nearest(one, strange)}" for one in missing[:1]]
            said += [f"has {one!r}, which is no input" for one in strange[:1]]
            raise InputError(
                f"X {' and '.join(said) or 'has a column twice'}; the inputs are "
                f"{', '.join(wanted[:LISTED])}"
            )
        return X.select(wanted) if hasattr(X, "select") else X[wanted]

    def _of_columns(self, columns: Columns) -> NDArray[Any]:
        """Return a table of numbers and the names of levels as an array."""
        coded = () if self.encoding is None else self.encoding.categories
        categories = {category.column for category in coded}
        rows = np.empty((columns.rows, len(columns.values)), dtype=object)
        for k, values in enumerate(columns.values):
            rows[:, k] = objects_of(values) if k in categories else columns.numbers(k)
        return rows if categories else rows.astype(np.float64)

    def _coded(self, table: NDArray[Any], encoding: Encoding) -> NDArray[Any]:
        if table.ndim != 2 or table.shape[1] != self.inputs:
            return table  # is refused by its shape
        codes = encoding.encode(
            lambda k: table[:, k].tolist(), lambda k: f"X, column {self._name(k)!r},"
        )
        rows = np.empty(table.shape)
        rows[:, [category.column for category in encoding.categories]] = codes
        for k in encoding.numbers:
            missing = [type(value).__name__ in MISSING_TYPES for value in table[:, k]]
            rows[:, k] = np.where(missing, np.nan, table[:, k]).astype(np.float64)
        return rows

    def _name(self, column: int) -> str | int:
        return self.features[column] if self.features else column
