"""Columns of tables from any library as numpy: numbers, categories, dates."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Booleans, Floats, Integers
from rdeepsense.encoding import MISSING_TYPES, MOST_LEVELS, MOST_TEXT, Category, Encoding, level_of
from rdeepsense.errors import InputError, nearest

# --------------------------------------------------------------------------------------------------
# Column values as numpy arrays, from any table library
#
# Targets, labels and groups come as lists, arrays, and columns of pandas, polars or pyarrow.
# Decimals and whole numbers of 128 bits are numbers like others; lists, structs, durations, dates
# and bytes are refused by name where they have no meaning, before numpy makes something else of
# them.
# --------------------------------------------------------------------------------------------------

NUMBERS = "numbers"
LABELS = "text, yes/no or whole numbers"
GROUPS = "text, yes/no, numbers or dates"
_MADE_OF = (  # how the names of types begin, in numpy, pandas, polars and pyarrow
    ("lists", r"(large_|fixed_size_)?list|array\(|tuple|set|frozenset|ndarray|series"),
    ("structs", r"struct|map|dict|union|sparse_union|dense_union"),
    ("durations", r"duration|timedelta|month_day_nano_interval|pandas_timedelta"),
    ("dates or times", r"date|time|timestamp|period"),
    ("bytes", r"(large_|fixed_size_)?binary|\|s\d|bytes"),
    ("complex numbers", r"complex"),
    ("records", r"void|\|v\d|\[\("),
)
_HINTS = {
    "durations": "; write it in seconds, as numbers",
    "dates or times": "; write it as numbers, or as text",
    "bytes": "; write it as text",
}
_SCALAR = ("durations", "dates or times", "bytes")  # that can tell groups apart


def as_numpy(name: str, values: ArrayLike, accepted: str) -> NDArray[Any]:
    """Return the values of a column, or of each column of a table, checked.

    `accepted` is NUMBERS, LABELS or GROUPS. What is missing becomes NaN among numbers, where it is
    found with its place, and is refused here otherwise.
    """
    if isinstance(values, np.ma.MaskedArray) and accepted != NUMBERS:
        values = values.astype(object)
    values = unmasked(values)
    columns = columns_of(values)
    if columns:
        return np.column_stack([_column(name, one, said, accepted) for said, one in columns])
    column = getattr(values, "name", None)
    return _column(name, values, column if isinstance(column, str) else None, accepted)


def groups_of(values: ArrayLike, rows: int) -> NDArray[Any]:
    """Return the group of each of so many rows, checked."""
    found = as_numpy("groups", values, GROUPS)
    if found.ndim == 0:
        raise InputError(f"groups is one value, {values!r:.60}; accepted: one for each row")
    if found.ndim > 1 and found.shape[1:] != (1,):
        raise InputError(f"groups has the shape {found.shape}; accepted: one value for each row")
    if len(found) != rows:
        raise InputError(f"groups has {len(found)} rows, X has {rows}; they must agree")
    return found.reshape(rows)


def unmasked(values: Any) -> Any:  # Any: whatever an argument takes
    """Return a masked array with NaN where it is masked; anything else as it is.

    What holds no numbers has None there.
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.getmaskarray(values).any():
        return values.data
    if values.dtype.kind in "biuf":
        kind = values.dtype if values.dtype.kind == "f" else np.float64
        return np.ma.filled(values.astype(kind), np.nan)
    found = np.array(values.data, dtype=object)
    found[np.ma.getmaskarray(values)] = None
    return found


def check_table(name: str, table: Any) -> None:  # Any: whatever an argument takes
    """Refuse a table that was not computed yet, and one with two columns of one name."""
    if type(table).__name__ == "LazyFrame":
        raise InputError(f"{name} is a LazyFrame, which holds no rows yet; call collect() on it")
    if isinstance(table, np.ndarray | list | tuple) or not hasattr(table, "columns"):
        return
    names = [said for said, _ in columns_of(table)]
    if len(set(names)) < len(names):
        twice = next(said for k, said in enumerate(names) if said in names[:k])
        raise InputError(f"{name} has two columns named {twice!r}")


def columns_of(table: Any) -> list[tuple[str, Any]]:  # Any: of pandas, polars or pyarrow
    """Return the columns of a table with their names, which may be the same; none of an array."""
    if not hasattr(table, "columns"):
        return []
    if hasattr(table, "iter_columns"):
        return [(column.name, column) for column in table.iter_columns()]
    if hasattr(table, "column_names"):
        return list(zip(table.column_names, table.columns, strict=True))
    return [(str(name), column) for name, column in getattr(table, "items", list)()]


def _column(name: str, values: Any, column: str | None, accepted: str) -> NDArray[Any]:
    said = name if column is None else f"{name}, column {column!r},"
    kind = getattr(values, "dtype", getattr(values, "type", None))
    kind = getattr(getattr(kind, "categories", None), "dtype", kind)  # pandas' categories
    refuse_kind(said, str(kind), accepted)
    try:
        array = np.asarray(values)
    except Exception as error:  # of any library, such as polars for 128 bits
        if not hasattr(values, "to_list"):
            raise InputError(f"{said} cannot be read as an array: {error}") from error
        array = np.array(values.to_list(), dtype=object)
    refuse_kind(said, array.dtype.str if array.dtype.kind == "S" else str(array.dtype), accepted)
    if array.ndim == 0:
        return array
    if array.dtype.kind == "O":
        array = _of_objects(said, array, accepted)
    if accepted == NUMBERS and array.dtype.kind in "OU":
        return _from_text(said, array)
    if accepted == LABELS and array.dtype.kind == "f" and (abs(array) >= 2.0**63).any():
        beyond = array[abs(array) >= 2.0**63].flat[0]
        raise InputError(f"{said} holds {beyond:g}; accepted: {accepted}, of 64 bits at most")
    if accepted == GROUPS and array.dtype.kind in "fmM":
        _check_all_there(said, np.flatnonzero(array != array), array, accepted)
    return array


def _of_objects(said: str, array: NDArray[Any], accepted: str) -> NDArray[Any]:
    """Return Python's objects as an array of their kind."""
    flat = array.ravel().tolist()
    missing = [k for k, v in enumerate(flat) if type(v).__name__ in MISSING_TYPES or _is_nan(v)]
    if accepted != NUMBERS:
        _check_all_there(said, missing, array, accepted)
    absent = set(missing)
    present = {type(v).__name__: type(v) for k, v in enumerate(flat) if k not in absent}
    for found in present:
        refuse_kind(said, found.lower(), accepted)
    if not present or all(issubclass(t, str) for t in present.values()):
        return array
    if all(issubclass(t, bool | np.bool_) for t in present.values()) and not missing:
        return array.astype(bool)
    if all(issubclass(t, int | float | Decimal | np.number | np.bool_) for t in present.values()):
        whole = all(issubclass(t, int | np.integer) for t in present.values())
        whole = whole or (Decimal in present.values() and all(map(_is_whole, flat)))
        return _numbers(said, array, whole and accepted != NUMBERS)
    if accepted == GROUPS and len(present) == 1:
        return array
    mix = " and ".join(sorted(present))
    raise InputError(f"{said} holds {mix}; accepted: {accepted}, of one kind")


def _numbers(said: str, array: NDArray[Any], whole: bool) -> NDArray[Any]:
    if not whole:
        filled = [
            np.nan if type(v).__name__ in MISSING_TYPES else v for v in array.ravel().tolist()
        ]
        return np.array(filled, dtype=np.float64).reshape(array.shape)
    try:
        return array.astype(np.int64)
    except OverflowError:
        largest = max(array.ravel().tolist(), key=abs)
        raise InputError(
            f"{said} holds the whole number {largest}, which takes more than 64 bits; write it as "
            "text"
        ) from None


def _from_text(said: str, array: NDArray[Any]) -> NDArray[np.float64]:
    """Return the numbers that texts hold."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        stray = next((v for v in array.ravel().tolist() if not is_number(v)), None)
        raise InputError(f"{said} holds text, such as {stray!r}; accepted: numbers") from None


def _check_all_there(
    said: str, missing: Sequence[int] | NDArray[Any], array: NDArray[Any], accepted: str
) -> None:
    if len(missing):
        row = int(missing[0]) // (array.size // len(array))
        raise InputError(f"{said} holds no value in row {row}; accepted: {accepted}")


def refuse_kind(said: str, kind: str, accepted: str) -> None:
    """Refuse a type by its name where its values cannot be what is accepted."""
    for what, begins in _MADE_OF:
        if re.match(begins, kind.lower()) and not (accepted == GROUPS and what in _SCALAR):
            raise InputError(
                f"{said} holds {what} ({kind}); accepted: {accepted}{_HINTS.get(what, '')}"
            )


def is_number(text: Any) -> bool:  # Any: a text, a number, or neither
    """Tell whether a text or a value reads as a number."""
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def _is_whole(value: Any) -> bool:  # Any: a number, or none at all
    try:
        return bool(value == int(value))
    except (OverflowError, TypeError, ValueError):
        return False


def _is_nan(value: object) -> bool:
    return isinstance(value, float | Decimal) and value != value


# --------------------------------------------------------------------------------------------------
# Categorical columns and their levels
#
# Text, yes/no and categorical columns of pandas, polars or pyarrow are categories, and so are
# columns of text in an array of objects. Numbers never are, unless they are named, and texts that
# all read as numbers are numbers. Where only most of them do it is hardly a category, so that is
# refused.
# --------------------------------------------------------------------------------------------------

Categorical = str | Sequence[str | int] | None  # the argument of estimators
ONE_HOT = 16  # levels at most, else vectors are learnt
MOST_OTHER = 0.1  # of the rows: where more are of rare levels, vectors are learnt as well
FEW_ROWS, FEW_SHARE = 10, 0.05  # a level of fewer rows than both is rare, and one of "other"
_LEVELS = re.compile(r"(category|categorical|enum|dictionary|bool)\b.*|boolean", re.IGNORECASE)
_MAYBE = re.compile(r"object|str|utf8|(large_)?string(_view|dtype)?([\[(].*)?|<u\d+", re.IGNORECASE)


@dataclass(frozen=True)
class Columns:
    """The columns of a table by number, whatever library it is of."""

    values: list[Any]  # arrays, or columns of the library's own
    names: list[str | int]  # numbers where there are no names

    @classmethod
    def of(cls, X: Any, every: bool = False) -> Columns | None:
        """Take a table or an array apart; one of plain numbers only for `every`, else it is None.

        None is also what has no columns. A mapping of names to columns is a table, too.
        """
        if isinstance(X, Columns):
            return X
        if isinstance(X, Mapping) and not hasattr(X, "shape"):  # sparse matrices may be mappings
            return cls._of_mapping(X)
        if isinstance(X, np.ndarray) and X.dtype.kind not in "OU" and not every:
            return None
        found = columns_of(X)
        if found:
            return cls([one for _, one in found], [name for name, _ in found])
        if not isinstance(X, np.ndarray):
            if not isinstance(X, list | tuple) or not (every or _holds_text(X)):
                return None
            X = np.array(X, dtype=object)
        if X.ndim != 2:
            return None
        return cls(list(X.T), list(range(X.shape[1])))

    @classmethod
    def _of_mapping(cls, X: Mapping[Any, Any]) -> Columns:
        values = [one if hasattr(one, "__len__") else list(one) for one in X.values()]
        lengths = {str(name): len(one) for name, one in zip(X, values, strict=True)}
        if len(set(lengths.values())) > 1:
            (first, rows), *others = lengths.items()
            other, more = next(pair for pair in others if pair[1] != rows)
            raise InputError(
                f"X has {rows:,} values in column {first!r}, and {more:,} in {other!r}; accepted: "
                "as many in each"
            )
        return cls(values, [str(name) for name in X])

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return len(self.values[0]) if self.values else 0

    def said(self, column: int) -> str:
        """Name a column in an error."""
        return f"X, column {self.names[column]!r},"

    def objects(self, column: int) -> list[Any]:
        """Return the values of a column as Python's objects."""
        return objects_of(self.values[column])

    def numbers(self, column: int) -> NDArray[Any]:
        """Return the numbers of a column; refuse anything else."""
        values = self.values[column]
        has_name = isinstance(getattr(values, "name", None), str)  # which is then said anyway
        found = as_numpy("X" if has_name else self.said(column), values, NUMBERS)
        return found if found.dtype == np.float32 else found.astype(np.float64)

    def chosen(self, categorical: Categorical) -> list[int]:
        """Return the columns that are categories."""
        if categorical is None:
            return []
        if isinstance(categorical, str):
            return [k for k in range(len(self.values)) if self._is_category(k)]
        return named_columns(categorical, self.names)

    def _is_category(self, column: int) -> bool:
        values = self.values[column]
        kind = str(getattr(values, "dtype", getattr(values, "type", "object")))
        if _LEVELS.fullmatch(kind):
            return True
        if not _MAYBE.fullmatch(kind):
            return False
        try:
            present = Counter((type(v), v) for v in self.objects(column) if not is_missing(v))
        except TypeError:
            return False  # of a kind that numbers refuse by name
        kinds = {kind for kind, _ in present}
        if kinds and all(issubclass(t, bool | np.bool_) for t in kinds):
            return True
        strays = {v: count for (_, v), count in present.items() if not is_number(v)}
        if not strays or not all(isinstance(v, str) for v in strays):
            return False
        if 2 * sum(strays.values()) < present.total():
            raise InputError(
                f"{self.said(column)} holds numbers and {sum(strays.values())} other texts, such "
                f"as {next(iter(strays))!r:.60}; write those as NaN, or name the column in "
                "categorical="
            )
        return True


def named_columns(categorical: Sequence[str | int], names: Sequence[str | int]) -> list[int]:
    """Return the numbers of columns that are named, or numbered, in `categorical`."""
    places = {name: k for k, name in enumerate(names)}
    found = set()
    for one in categorical:
        place = places.get(one)
        if place is None and isinstance(one, int | np.integer) and 0 <= one < len(names):
            place = int(one)
        if place is None:
            known = ", ".join(map(str, list(names)[:20]))
            raise InputError(
                f"categorical names {one!r}, which X does not have{nearest(one, names)}; it has "
                f"{known}"
            )
        found.add(place)
    return sorted(found)


def check_categorical(categorical: Any) -> None:
    """Refuse an argument that names no columns."""
    if categorical is None or categorical == "auto":
        return
    listed = isinstance(categorical, Sequence | np.ndarray) and not isinstance(categorical, str)
    if not listed or any(
        isinstance(one, bool) or not isinstance(one, str | int | np.integer) for one in categorical
    ):
        raise InputError(
            f"categorical = {categorical!r}; accepted: 'auto', None, or a list of names or numbers "
            "of columns"
        )


def coded(columns: Columns, encoding: Encoding) -> NDArray[Any]:
    """Return the table as numbers, with codes of levels."""
    if len(columns.values) != encoding.inputs:
        count = len(columns.values)
        raise InputError(
            f"X has {count} column{'s' * (count != 1)}, the model takes {encoding.inputs}"
        )
    numbers = [columns.numbers(k) for k in encoding.numbers]
    single = bool(numbers) and all(part.dtype == np.float32 for part in numbers)
    rows = len(columns.objects(0)) if not numbers else len(numbers[0])
    table = np.empty((rows, encoding.inputs), np.float32 if single else np.float64)
    for k, part in zip(encoding.numbers, numbers, strict=True):
        table[:, k] = part
    for category in encoding.categories:
        k = category.column
        table[:, k] = category.encode(columns.objects(k), columns.said(k))
    return table


def found_levels(columns: Columns, chosen: Sequence[int]) -> Encoding:
    """Find the levels of the chosen columns, without vectors yet.

    Where there are too many, those of the fewest rows are left out, and count as unseen.
    """
    found = [_counted(columns, k) for k in chosen]
    order = sorted((-count, k, name) for k, one in enumerate(found) for name, count in one.items())
    size = np.cumsum([len(name.encode(errors="replace")) + 3 for _, _, name in order])
    most = min(MOST_LEVELS, int(np.searchsorted(size, MOST_TEXT, "right")))
    kept: list[list[str]] = [[] for _ in found]
    for _, k, name in order[:most]:
        kept[k].append(name)
    none = np.zeros((0, 0))
    categories = [
        Category(k, tuple(sorted(names)), none) for k, names in zip(chosen, kept, strict=True)
    ]
    return Encoding(len(columns.values), (), tuple(categories))


def one_hot(category: Category, codes: NDArray[Any]) -> Floats | None:
    """Return one-hot vectors of the levels, or None where there are too many of them.

    Rare levels share an input, and missing values have one, where there are any; otherwise they
    count as the mean of all rows, as unseen levels do.
    """
    levels, rows = len(category.levels), len(codes)
    missing = np.isnan(codes)
    known = codes[~missing & (codes >= 0)].astype(np.int64)
    counts = np.bincount(known, minlength=levels)
    kept = np.flatnonzero(counts >= min(FEW_ROWS, FEW_SHARE * rows))
    other = int(len(known) - counts[kept].sum() + (codes < 0).sum())
    if len(kept) > ONE_HOT or (levels > ONE_HOT and other > MOST_OTHER * rows):
        return None
    held = np.array([*counts[kept], *[other] * bool(other), *[missing.sum()] * bool(missing.any())])
    vectors = np.tile(held / held.sum(), (levels + 2, 1))
    place = len(kept)
    if other:
        vectors[: levels + 1] = np.eye(len(held))[place]
        place += 1
    if missing.any():
        vectors[levels + 1] = np.eye(len(held))[place]
    vectors[kept] = np.eye(len(held))[np.arange(len(kept))]
    return vectors.astype(np.float32).astype(np.float64)


def _counted(columns: Columns, column: int) -> Counter[str]:
    said = columns.said(column)
    try:
        values = Counter((type(v), v) for v in columns.objects(column) if not is_missing(v))
    except TypeError:
        raise InputError(f"{said} holds values that name no level") from None
    found: Counter[str] = Counter()
    for (_, value), count in values.items():
        name = level_of(value, said)
        assert name is not None
        found[name] += count
    if not found:
        raise InputError(f"{said} has no value at all, so it has no levels")
    return found


def is_missing(value: Any) -> bool:
    """Tell whether a value is none: None, NaN, or what libraries have for it."""
    if type(value).__name__ in MISSING_TYPES:
        return True
    return isinstance(value, float | np.floating) and value != value


def objects_of(values: Any) -> list[Any]:
    """Return a column as Python's objects."""
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, name):
            found: list[Any] = getattr(values, name)()
            return found
    return list(values)


def _holds_text(X: ArrayLike) -> bool:
    """Tell whether a list of rows holds text or nothing, so that numpy would not make numbers."""
    rows = [row for row in X if isinstance(row, list | tuple)]  # type: ignore[union-attr]
    return any(isinstance(v, str) or v is None for row in rows for v in row)


# --------------------------------------------------------------------------------------------------
# Dates and times as inputs
#
# Of hour, weekday, month and yearday come two inputs each, sin and cos of 2 pi value / period, so
# that midnight is near 23:59; year is a number. They are named after their column: `time (hour
# sin)`.
#
# | part | value | period |
# |---|---|---|
# | hour | hours since midnight, with minutes and seconds as a fraction | 24 |
# | weekday | 0 (Monday) to 6 (Sunday) | 7 |
# | month | month - 1: 0 to 11 | 12 |
# | yearday | day of the year - 1: 0 to 365 | 365.25 |
# | year | the calendar year | none |
#
# Times with a time zone are converted to UTC. It needs numpy alone.
# --------------------------------------------------------------------------------------------------

Parts = str | Sequence[str] | None  # the argument `datetime` of estimators
PERIODS = {"hour": 24.0, "weekday": 7.0, "month": 12.0, "yearday": 365.25, "year": None}
WAVES: dict[str, Callable[[float], float]] = {"sin": math.sin, "cos": math.cos}
MADE = re.compile(rf"(.*) \(({'|'.join(PERIODS)})( sin| cos)?\)", re.DOTALL)
FORMULAS = {
    "hour": ("2 pi t / 24", "t the hours since midnight, hour + minute / 60 + second / 3600"),
    "weekday": ("2 pi d / 7", "d the day of the week, 0 Monday to 6 Sunday"),
    "month": ("2 pi (m - 1) / 12", "m the month, 1 to 12"),
    "yearday": ("2 pi (d - 1) / 365.25", "d the day of the year, 1 to 366"),
}
CLOCK = "Times are in UTC where the table had a time zone, and on the clock of the table otherwise."
ZONES = "some times have a time zone, others have none; convert all of them to UTC, or none"

_TYPED = re.compile(r"(datetime|date|timestamp|time|period)(\d+|[\[(].*|)(\[.*)?")
_PLAIN = re.compile(r"u?int|float|bool|complex|decimal|double", re.IGNORECASE)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
_KINDS = (dt.date, dt.time, np.datetime64)  # a datetime is a date
_FIRST = dt.date(1970, 1, 1)
SOME = 50_000  # rows that tell what a column varies in


def checked_parts(parts: Parts, said: str = "datetime =") -> tuple[str, ...]:
    """Return the parts of dates that are asked for: names, or one text with commas."""
    found: Sequence[Any] = () if parts is None else parts
    if isinstance(parts, str):
        found = [part.strip() for part in parts.split(",")] if parts else ()
    if not isinstance(found, Sequence):
        raise InputError(f"{said} {parts!r}; accepted: None, or some of {', '.join(PERIODS)}")
    for part in found:
        if not isinstance(part, str) or part not in PERIODS:
            raise InputError(
                f"{said} {parts!r}: {part!r} is unknown; accepted: {', '.join(PERIODS)}"
            )
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, eq=False)
class Moments:
    """The dates or times of a column in UTC; times of day are those of the first day of 1970."""

    values: NDArray[np.datetime64]  # datetime64[us]
    has_days: bool = True  # not so of times of day

    @cached_property
    def known(self) -> Booleans:
        """The rows that have one."""
        return ~np.isnat(self.values)

    @cached_property
    def has_clock(self) -> bool:
        """Whether any value has a time of day other than midnight."""
        return not self.has_days or bool((self._seconds[self.known] != 0).any())

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that the column has."""
        return tuple(
            part for part in PERIODS if (self.has_clock if part == "hour" else self.has_days)
        )

    @cached_property
    def _days(self) -> NDArray[np.datetime64]:
        return self.values.astype("datetime64[D]")

    @cached_property
    def _seconds(self) -> Integers:
        """Whole seconds of the day; 0 where there is none."""
        return np.where(self.known, (self.values - self._days).astype(np.int64) // 1_000_000, 0)

    @cached_property
    def since(self) -> Floats:
        """Seconds since 1970, with their fraction; NaN where a row has none."""
        return np.where(self.known, self.values.astype(np.int64) / 1e6, np.nan)

    def value(self, part: str) -> Floats:
        """Return a part as a number; NaN where a row has none."""
        days, seconds = self._days, self._seconds
        if part == "hour":
            found = seconds // 3600 + seconds // 60 % 60 * (1 / 60) + seconds % 60 * (1 / 3600)
        elif part == "weekday":
            found = (days.astype(np.int64) + 3) % 7  # 1970 began on a Thursday
        elif part == "month":
            found = days.astype("datetime64[M]").astype(np.int64) % 12
        elif part == "yearday":
            found = (days - days.astype("datetime64[Y]").astype(days.dtype)).astype(np.int64)
        else:
            found = days.astype("datetime64[Y]").astype(np.int64) + 1970
        return np.where(self.known, found, np.nan)

    def inputs(self, name: str, parts: Sequence[str]) -> dict[str, Floats]:
        """Return the inputs that parts give, by name."""
        found: dict[str, Floats] = {}
        for part in parts:
            value = self.value(part)
            if PERIODS[part] is None:
                found[f"{name} ({part})"] = value
            else:
                found |= {f"{name} ({part} {w})": wave(value, part, w) for w in WAVES}
        return found

    def varying(self) -> tuple[str, ...]:
        """Return the parts that could tell something, by what the column varies in."""

        if not self.has_days:
            return ("hour",)
        some = self.values[self.known]
        own = Moments(some[:: -(-len(some) // SOME) or 1])

        def varies(part: str) -> bool:
            return len(np.unique(own.value(part))) > 1

        found = ["hour"] if varies("hour") else []
        months = varies("month")
        in_month = own._days - own._days.astype("datetime64[M]").astype(own._days.dtype)
        if len(np.unique(in_month)) > 1:  # not only the first of each month, say
            found += ["weekday"] * varies("weekday")
            found += ["yearday"] * (months and "hour" not in found)
        elif months:
            found.append("month")
        return tuple(found) or ("year",)

    def example(self) -> str:
        """Return the first value in words, without a time where no value has one."""
        if not self.known.any():
            return ""
        first = self.values[int(np.argmax(self.known))].astype("datetime64[s]")
        day, _, clock = str(first).partition("T")
        if not self.has_days:
            return clock
        return f"{day} {clock}" if self.has_clock else day


def wave(values: Floats, part: str, which: str) -> Floats:
    """Return "sin" or "cos" of the angle of values; equal bits for equal values everywhere."""
    period = PERIODS[part]
    assert period is not None
    # A column has few different values, and the functions of `math`, unlike those of numpy, do
    # not depend on how many values there are.
    distinct, place = np.unique(values * (2 * math.pi / period), return_inverse=True)
    found = np.array([WAVES[which](v) for v in distinct.tolist()], np.float64)
    return found[place.reshape(-1)]


def value_of(sin: Floats, cos: Floats, part: str) -> Floats:
    """Return the value of a part again, of its two inputs."""
    period = PERIODS[part]
    assert period is not None
    angle = np.arctan2(sin, cos) * (period / (2 * math.pi))
    found: Floats = np.where(angle < -1e-9, angle + period, np.maximum(angle, 0.0))
    return found


def formula(name: str, dated: Sequence[str]) -> str | None:
    """Say how to compute an input that is made of one of the `dated` columns; None of another."""
    made = MADE.fullmatch(name)
    if made is None or made[1] not in dated:
        return None
    part, which = made[2], (made[3] or "").strip()
    if part == "year":
        return "the calendar year, such as 2024"
    angle, meaning = FORMULAS[part]
    return f"{which}({angle}), {meaning}"


def source_of(name: str) -> str | None:
    """Return the column of dates that an input of this name is made from; None of another name."""
    made = MADE.fullmatch(name)
    return made[1] if made else None


def part_of(name: str) -> tuple[str, str, str] | None:
    """Return column, part, and "sin", "cos" or "" of an input of this name."""
    made = MADE.fullmatch(name)
    return (made[1], made[2], (made[3] or "").strip()) if made else None


def needed_for(name: str) -> str:
    """Return the column that a table without an input lacks: of a sine, that of its dates."""
    made = MADE.fullmatch(name)
    return made[1] if made and made[3] else name


def holds_dates(values: Any) -> bool:  # Any: a column of any library
    """Tell whether a column holds dates or times, or text that is dates as ISO 8601 has them."""
    kind = getattr(values, "dtype", getattr(values, "type", None))
    kind = getattr(getattr(kind, "categories", None), "dtype", kind)  # pandas' categories
    if isinstance(kind, np.dtype) and kind.kind != "O":
        return kind.kind == "M" or (kind.kind == "U" and _of_texts(values) is not None)
    said = str(kind).lower()
    if _TYPED.fullmatch(said):
        return True
    if kind is not None and not re.match(r"object|str|utf8|(large_)?string", said):
        return False
    first = next((v for v in _some(values) if not is_missing(v)), None)
    if isinstance(first, _KINDS):
        return all(isinstance(v, _KINDS) for v in objects_of(values) if not is_missing(v))
    return isinstance(first, str) and _of_texts(values) is not None


def moments_of(values: Any) -> Moments:  # Any: a column of which `holds_dates` is true
    """Return the dates or times of a column."""
    if getattr(getattr(values, "dtype", None), "tz", None) is not None:  # of pandas
        values = values.dt.tz_convert(None)
    said = str(getattr(values, "dtype", getattr(values, "type", ""))).lower()
    if said.startswith("period"):
        values = values.dt.to_timestamp()
    if not said.endswith("[pyarrow]") and re.match(r"datetime|date|timestamp", said):
        return Moments(np.asarray(values).astype("datetime64[us]"))  # of a zone, these are in UTC
    texts = _of_texts(values)
    return _dates_of_objects(objects_of(values) if texts is None else texts)


def _some(values: Any) -> Any:  # Any: something to iterate
    """Return the values without making Python's objects of all, where that can be."""
    return objects_of(values) if hasattr(values, "to_pylist") else values


def _of_texts(values: Any) -> list[Any] | None:
    """Return dates for texts that all are; None of others."""
    first = next((v for v in _some(values) if not is_missing(v)), None)
    if not isinstance(first, str) or not _ISO.fullmatch(first.strip()):
        return None
    read: dict[str, Any] = {}
    found: list[Any] = []
    for value in objects_of(values):
        if is_missing(value):
            found.append(None)
            continue
        if not isinstance(value, str):
            return None
        if value not in read:
            text = value.strip()
            try:
                read[value] = dt.datetime.fromisoformat(text) if _ISO.fullmatch(text) else None
            except ValueError:
                return None
            if read[value] is None:
                return None
        found.append(read[value])
    return found


def _dates_of_objects(values: Sequence[Any]) -> Moments:
    present = [v for v in values if not is_missing(v) and v == v]
    has_days = not (present and all(isinstance(v, dt.time) for v in present))
    if has_days and any(isinstance(v, dt.time) for v in present):
        raise InputError("a column holds dates and times of day; write whole dates")
    # A date alone is a date in every zone.
    zones = {v.tzinfo is not None for v in present if isinstance(v, dt.datetime | dt.time)} | {
        False for v in present if isinstance(v, np.datetime64)
    }
    if len(zones) > 1:
        raise InputError(ZONES)
    found = np.full(len(values), "NaT", "datetime64[us]")
    for row, value in enumerate(values):
        if is_missing(value) or value != value:
            continue
        found[row] = _utc(value)
    return Moments(found, has_days)


def _utc(value: Any) -> np.datetime64:
    if isinstance(value, dt.time):
        value = dt.datetime.combine(_FIRST, value)
        if value.tzinfo is not None:
            moved = value.astimezone(dt.UTC).replace(tzinfo=None)
            value = dt.datetime.combine(_FIRST, moved.time())
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


# Whole tables.


@dataclass(frozen=True)
class DatedColumns:
    """The inputs of a fit, and what became of the columns of dates."""

    columns: Columns
    places: Mapping[int, int]  # where columns of the table are now
    dated: tuple[str, ...]  # those of which inputs were made
    left_out: Mapping[str, str]  # the others, and why


def table_with_dates(X: Any, aside: Sequence[str | int] = ()) -> tuple[Columns, set[int]] | None:
    """Take a table apart that has columns of dates, or is a mapping; return these by number.

    None of any other. Columns that are named in `aside` are no dates.
    """
    if isinstance(X, np.ndarray) and (X.dtype.kind not in "OUMm" or X.ndim != 2):
        return None
    if isinstance(X, list | tuple) and not _rows_hold_dates(X):
        return None
    kinds = getattr(X, "dtypes", None)
    if kinds is not None and all(_PLAIN.match(str(kind)) for kind in set(kinds)):
        return None
    columns = None if hasattr(X, "nnz") else Columns.of(X, every=True)  # sparse has no dates
    if columns is None:
        return None
    for name, one in zip(columns.names, columns.values, strict=True):
        kind = str(getattr(one, "dtype", getattr(one, "type", ""))).lower()
        if kind.startswith(("duration", "timedelta")):
            refuse_kind(f"X, column {name!r},", kind, NUMBERS)
    others = set(named_columns(aside, columns.names)) if len(aside) else set[int]()
    found = {k for k, one in enumerate(columns.values) if k not in others and holds_dates(one)}
    return (columns, found) if found or isinstance(X, Mapping | Columns) else None


def first_columns(
    X: Any, parts: Sequence[str], aside: Sequence[str | int] = ()
) -> DatedColumns | None:
    """Make inputs of the dates of a table that a model is fitted on; None where it has none."""
    found = table_with_dates(X, aside)
    if found is None:
        return None
    columns, dates = found
    is_named = all(isinstance(name, str) for name in columns.names)
    values: list[Any] = []
    names: list[str | int] = []
    places: dict[int, int] = {}
    dated: list[str] = []
    left_out: dict[str, str] = {}
    for k, (name, one) in enumerate(zip(columns.names, columns.values, strict=True)):
        if k not in dates:
            places[k] = len(values)
            values.append(one)
            names.append(name)
            continue
        said = str(name) if is_named else f"x{name}"
        try:
            moments = moments_of(one)
        except InputError as error:
            raise InputError(f"X, column {name!r}: {error}") from None
        made = moments.inputs(said, [part for part in parts if part in moments.parts])
        if made:
            dated.append(said)
            values += made.values()
            names += made
        else:
            kind = "dates" if moments.has_days else "times"
            left_out[str(name)] = (
                f"{kind}, such as {moments.example()!r}; "
                f"add datetime={_written(moments.varying())} to use them"
            )
    if not values:
        only = "; ".join(f"{name!r} holds {why}" for name, why in left_out.items())
        raise InputError(f"X has no column that is an input: {only}")
    if dated and not is_named:  # so that every input has one
        names = [one if isinstance(one, str) else f"x{one}" for one in names]
    elif not is_named:
        names = list(range(len(values)))
    return DatedColumns(Columns(values, names), places, tuple(dated), left_out)


def further_columns(X: Any, names: Sequence[str] | None) -> Columns | None:
    """Make of a table's dates what a model of inputs of these names takes; None without dates.

    Columns are taken by their names. Dates that are no inputs are left out.
    """
    found = table_with_dates(X)
    if found is None:
        return None
    columns, dates = found
    if names is None:
        kept = [k for k in range(len(columns.values)) if k not in dates]
        return Columns([columns.values[k] for k in kept], list(range(len(kept))))
    given = [name if isinstance(name, str) else f"x{name}" for name in columns.names]
    by_name = dict(zip(given, columns.values, strict=True))
    sources = {given[k] for k in dates}
    moments: dict[str, Moments] = {}
    values: list[Any] = []
    lacking: list[str] = []
    used = set[str]()
    for name in names:
        if name in by_name:
            values.append(by_name[name])
            used.add(name)
            continue
        made = part_of(name)
        if made is None or made[0] not in by_name:
            lacking.append(needed_for(name))
            continue
        source, part, _ = made
        used.add(source)
        if source not in moments:
            moments[source] = _checked(source, by_name[source], source in sources, part)
        if part != "hour" and not moments[source].has_days:
            raise InputError(
                f"X, column {source!r}, holds times of day; the model needs its {part}"
            )
        values.append(moments[source].inputs(source, [part])[name])
    strange = [name for name in given if name not in used and name not in sources]
    if lacking or strange:
        said = [f"lacks {one!r}{nearest(one, strange)}" for one in lacking[:1]]
        said += [f"has {one!r}, which is no input" for one in strange[:1]]
        raise InputError(f"X {' and '.join(said)}; the inputs are {', '.join(names[:20])}")
    return Columns(values, list(names))


def _checked(name: str, values: Any, has_dates: bool, part: str) -> Moments:
    """Return the dates of a column that a model needs a part of."""
    if not has_dates:
        objects = objects_of(values)
        if not all(is_missing(v) for v in objects):
            raise InputError(f"X, column {name!r}, holds no dates; the model needs its {part}")
        return Moments(np.full(len(objects), "NaT", "datetime64[us]"))
    try:
        return moments_of(values)
    except InputError as error:
        raise InputError(f"X, column {name!r}: {error}") from None


def _written(parts: Sequence[str]) -> str:
    """Write the argument `datetime`."""
    return repr(tuple(parts) if len(parts) > 1 else parts[0]).replace("'", '"')


def _rows_hold_dates(X: Sequence[Any]) -> bool:
    try:
        if np.asarray(X).dtype.kind in "biufc":  # the faster by far for numbers
            return False
    except (TypeError, ValueError):
        pass  # of values that have no kind in common
    return any(row_holds_dates(row) for row in X if isinstance(row, list | tuple))


def row_holds_dates(row: Any) -> bool:  # Any: a row, which may be none
    """Tell whether any value of a row is a date."""
    return any(
        isinstance(v, _KINDS) or (isinstance(v, str) and _ISO.fullmatch(v) is not None) for v in row
    )
