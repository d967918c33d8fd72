"""Dates and times as inputs: the formulas, for every kind of table.

Of hour, weekday, month and yearday come two inputs each, sin and cos of 2 pi value / period, so
that midnight is near 23:59; year is a number. They are named after their column: `time (hour sin)`.

| part | value | period |
|---|---|---|
| hour | hours since midnight, with minutes and seconds as a fraction | 24 |
| weekday | 0 (Monday) to 6 (Sunday) | 7 |
| month | month - 1: 0 to 11 | 12 |
| yearday | day of the year - 1: 0 to 365 | 365.25 |
| year | the calendar year | none |

Times with a time zone are converted to UTC. It needs numpy alone.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats, Integers
from rdeepsense.data.categories import Columns, is_missing, named_columns, objects_of
from rdeepsense.data.kinds import NUMBERS, refuse_kind
from rdeepsense.errors import InputError, nearest

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
    return _of_objects(objects_of(values) if texts is None else texts)


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


def _of_objects(values: Sequence[Any]) -> Moments:
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
                f"{kind}, such as {moments.example()!r}; datetime={_written(moments.varying())} "
                "makes inputs of them"
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
