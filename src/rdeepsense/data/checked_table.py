"""A table and its target as the check of the data looks at them: columns of numbers and codes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Floats, Integers
from rdeepsense.data.categories import Categorical, Columns, is_missing
from rdeepsense.data.dates import holds_dates, moments_of
from rdeepsense.data.dependence import ROWS_A_LEVEL
from rdeepsense.data.kinds import LABELS, NUMBERS, plain
from rdeepsense.errors import InputError

Task = Literal["auto", "regression", "classification"]

MOST_ROWS = 5_000  # that are drawn for tests of independent rows
MOST_COLUMNS = 500  # that are tested one by one
CLASS_VALUES = 20  # whole numbers with so few values may be classes
ISO = re.compile(r"\d{4}-\d{2}")
CALENDAR = {
    *("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    *("mon", "tue", "wed", "thu", "fri", "sat", "sun", ""),
}


@dataclass(frozen=True)
class Target:
    """The target: numbers (rows, outputs) or the number of each row's class."""

    values: NDArray[Any]
    labels: tuple[Any, ...] | None

    @property
    def rows(self) -> int:
        return len(self.values)

    @property
    def outputs(self) -> int:
        return 1 if self.values.ndim == 1 else self.values.shape[1]

    @property
    def is_classes(self) -> bool:
        return self.labels is not None

    @property
    def task(self) -> str | None:
        if not self.outputs:
            return None
        return "classification" if self.is_classes else "regression"

    @classmethod
    def of(cls, y: ArrayLike, task: Task) -> Target:
        try:
            array = plain("y", y, LABELS if task != "regression" else NUMBERS)
        except InputError:
            if task != "auto":
                raise
            array = plain("y", y, NUMBERS)  # beyond those that number classes
        classes = task == "classification"
        if task == "auto":
            classes = array.dtype.kind in "OUb" or (
                array.dtype.kind in "iu" and len(np.unique(array)) <= CLASS_VALUES
            )
        if classes:
            column = array.reshape(-1) if array.ndim == 2 and array.shape[1] == 1 else array
            if column.ndim != 1:
                raise InputError(f"y has shape {array.shape}; labels are accepted as (rows,)")
            if column.dtype.kind == "O":
                column = column.astype(str)
            names, numbers = np.unique(column, return_inverse=True)
            return cls(numbers.reshape(-1), tuple(names.tolist()))
        numbers = array.astype(np.float64)
        return cls(numbers.reshape(len(numbers), -1), None)

    def responses(self, rows: Integers) -> Floats:
        """Return what a regression predicts: standardized targets, or 1 for the row's class."""
        own = self.values[rows]
        if self.labels is None:
            std = own.std(axis=0)
            return cast(Floats, (own - own.mean(axis=0)) / np.where(std > 0, std, 1.0))
        classes = np.argsort(-np.bincount(own))[:4]
        return cast(Floats, (own[:, None] == classes).astype(np.float64))


@dataclass(frozen=True)
class Column:
    """One input: its values as numbers; codes of text and other categories."""

    name: str
    values: NDArray[Any]
    kind: Literal["number", "category", "time"]
    clock: Floats | None = None  # of text that is dates, in seconds
    calendar: bool = False  # of names of months or days of the week

    @property
    def is_dated(self) -> bool:
        """Whether the values are dates or times."""
        return self.kind == "time" or self.clock is not None

    @property
    def seconds(self) -> Floats:
        """The values as times: of dates in seconds, of numbers in their own unit."""
        values = self.values if self.clock is None else self.clock
        return values.astype(np.float64)

    @cached_property
    def whole(self) -> bool:
        """Whether the values are whole numbers, or categories."""
        if self.kind != "number":
            return self.kind == "category"
        if self.values.dtype.kind in "iub":
            return True
        some = self.values[:MOST_ROWS]
        return bool(np.all((some == np.rint(some)) & (np.abs(some) < 2.0**53)))

    def level_numbers(self) -> tuple[NDArray[Any], Integers]:
        """Return the levels in their order, and the number of each row's."""
        levels, number = np.unique(self.values, return_inverse=True)
        return levels, number.reshape(-1)


@dataclass(frozen=True)
class Table:
    """The inputs by column."""

    columns: list[Column]
    rows: int
    named: bool
    inputs: int
    windows: NDArray[Any] | None = None  # (rows, time, channels), where rows are these

    @classmethod
    def of(cls, X: Any, categorical: Categorical) -> Table:
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) == 3:
            windows = X if isinstance(X, np.ndarray) and X.dtype.kind in "iuf" else None
            return cls([], len(X), False, int(shape[-1]), windows)
        columns = Columns.of(X, every=True)
        if columns is None:  # of what numpy alone knows to read
            X = np.asarray(X)
            columns = Columns.of(X, every=True)
        if columns is None:
            raise InputError(f"X has no columns; accepted: (rows, features); got {type(X)}")
        plain_numbers = isinstance(X, np.ndarray) and X.dtype.kind not in "OU"
        automatic = isinstance(categorical, str) or categorical is None
        chosen = set() if automatic and plain_numbers else set(_categories(columns, categorical))
        named = any(isinstance(name, str) for name in columns.names)
        found = [
            one
            for k, name in enumerate(columns.names[:MOST_COLUMNS])
            if (one := _column(columns, k, str(name), k in chosen)) is not None
        ]
        rows = len(columns.values[0]) if columns.values else 0
        return cls(found, rows, named, len(columns.values))


def _categories(columns: Columns, categorical: Categorical) -> list[int]:
    try:
        return columns.chosen(categorical)
    except InputError:  # of a column that is neither; `fit` says so
        return []


def _column(columns: Columns, k: int, name: str, category: bool) -> Column | None:
    values = columns.values[k]
    if holds_dates(values):
        try:
            return Column(name, moments_of(values).since, "time")
        except InputError:
            return None
    if not category:
        if isinstance(values, np.ndarray) and values.dtype.kind in "iufb":
            return Column(name, values, "number")
        try:
            numbers = columns.numbers(k)
        except InputError:
            category = True
        else:
            return Column(name, numbers, "number")
    try:
        texts = np.array(["" if is_missing(v) else str(v) for v in columns.objects(k)])
    except (TypeError, ValueError):
        return None
    levels, codes = np.unique(texts, return_inverse=True)
    codes = codes.reshape(-1).astype(np.int64)
    clock = _dates(levels)
    if clock is not None:
        clock = clock[codes]
    if len(levels) * ROWS_A_LEVEL <= len(texts):  # else they name rows, and have no order
        order = sorted(range(len(levels)), key=lambda place: _natural(str(levels[place])))
        rank = np.empty(len(levels), dtype=np.int64)
        rank[order] = np.arange(len(levels))
        codes = rank[codes]
    calendar = {str(level)[:3].lower() for level in levels} <= CALENDAR
    return Column(name, codes, "category", clock, calendar)


def _dates(levels: NDArray[Any]) -> Floats | None:
    """Return ISO dates as seconds; None of other text."""
    known = levels[levels != ""]
    if not len(known) or not ISO.match(str(known[0])):
        return None
    try:
        found = np.array([text or "NaT" for text in levels.tolist()], dtype="datetime64[us]")
    except ValueError:
        return None
    return np.where(np.isnat(found), np.nan, found.astype(np.int64) / 1e6)


def _natural(text: str) -> list[tuple[int, int, str]]:
    """Return a key by which R2 comes before R10."""
    parts = re.findall(r"\d{1,18}|\D+|\d+", text)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def counts_rows(values: NDArray[Any]) -> bool:
    """Tell whether whole numbers number the rows: in order, or all of a range, each once."""
    if not np.isfinite(values[[0, -1]].astype(np.float64)).all():
        return False
    for some in (values[:1_000], values):
        up, down = (some[1:] > some[:-1]).all(), (some[1:] < some[:-1]).all()
        if not (up or down):
            break
    else:
        return True
    low, high = values.min(), values.max()
    if float(high) - float(low) != len(values) - 1:
        return False
    return len(np.unique(values)) == len(values)


def matrix(columns: Sequence[Column], rows: Integers) -> Floats:
    """Return some rows of columns as numbers, missing values as NaN."""
    found = np.empty((len(rows), len(columns)))
    for k, one in enumerate(columns):
        found[:, k] = one.values[rows]
    found[~np.isfinite(found)] = np.nan
    return found
