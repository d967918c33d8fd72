"""How a log is cut: clock, columns, durations and the recipe that a model keeps."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats, needs_double
from rdeepsense.errors import InputError, nearest
from rdeepsense.modelfile.schema import (
    Json,
    Kind,
    check_fields,
    choice,
    maybe,
    number,
    several,
    text,
)

# --------------------------------------------------------------------------------------------------
# Durations: "5s", "200ms", or seconds
# --------------------------------------------------------------------------------------------------

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
WRITTEN = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*(ns|us|ms|s|min|h)?\s*")


def seconds(name: str, value: str | float) -> float:
    """Return a duration in seconds; refuse what is none, or not above zero."""
    found = math.nan
    if isinstance(value, str):
        if match := WRITTEN.fullmatch(value):
            found = float(match[1]) * UNITS[match[2] or "s"]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found = float(value)
    if not 0 < found < math.inf:
        raise InputError(
            f'{name} = {value!r} is no duration; accepted: "5s", "200ms", "1min", or seconds above '
            "zero"
        )
    return found


def written(value: float) -> str:
    """Write seconds briefly: 0.2 is "200 ms"."""
    for unit, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value / 1e-9:.4g} ns"


# --------------------------------------------------------------------------------------------------
# Columns of a log as numpy arrays, from any table library
#
# None of these libraries is imported. Texts come as numbers of their distinct values, because ten
# million objects of Python would take more memory than the log.
# --------------------------------------------------------------------------------------------------

Table = Any  # of pandas, polars or pyarrow, or a mapping of names to arrays
LISTED = 20
SOME = 1 << 20  # values that tell what a column is like
LARGEST = float(np.finfo(np.float32).max)
Codes = NDArray[np.int32]
ABSENT = -1  # the code of a value that is missing


def names_of(table: Table) -> list[str]:
    """Return the names of a table's columns."""
    if type(table).__name__ == "LazyFrame":
        raise InputError("table is a LazyFrame, which holds no rows yet; call collect() on it")
    names = getattr(table, "column_names", None)
    if names is None:
        names = getattr(table, "columns", None)
    if names is None:
        if not hasattr(table, "keys"):
            raise InputError(
                f"table is a {type(table).__name__}; accepted: a table of pandas, polars or "
                "pyarrow, or a dictionary of arrays"
            )
        names = table.keys()
    return [str(name) for name in names]


def check_columns(table: Table, argument: str, wanted: Sequence[str]) -> None:
    """Refuse a column that the table does not have."""
    names = names_of(table)
    for name in wanted:
        if name not in names:
            more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
            raise InputError(
                f"{argument}: there is no column {name!r}{nearest(name, names)}; the table has "
                f"{', '.join(names[:LISTED])}{more}"
            )


def check_lengths(table: Table, names: Sequence[str], rows: int, time: str) -> None:
    """Refuse columns of another length than the time's, which a dictionary may have."""
    for name in names:
        if (own := len(table[name])) != rows:
            raise InputError(f"column {name!r} has {own:,} values, and {time!r} has {rows:,}")


def values_of(table: Table, name: str) -> NDArray[Any]:
    """Return a column as an array, without a copy where the library allows that."""
    column = table[name]
    if hasattr(column, "combine_chunks"):
        array = np.asarray(_in_one(column).to_numpy(zero_copy_only=False))
    elif hasattr(column, "to_numpy"):
        array = np.asarray(column.to_numpy())
    else:
        array = np.asarray(column)
    if array.ndim != 1:
        raise InputError(f"column {name!r} has the shape {array.shape}; accepted: one value a row")
    return array


def numbers_of(table: Table, name: str) -> NDArray[Any]:
    """Return a column of numbers, in the type that it has; what is missing is NaN."""
    array = values_of(table, name)
    if array.dtype.kind in "iuf":
        return array
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    try:
        if array.dtype.kind != "O":
            raise TypeError
        return np.array([np.nan if v is None else v for v in array.tolist()], dtype=np.float64)
    except (TypeError, ValueError):
        kind = "text" if array.dtype.kind in "OUT" else str(array.dtype)
        raise InputError(f"column {name!r} holds {kind}; numbers are needed") from None


def need_double(columns: Mapping[str, NDArray[Any]]) -> list[str]:
    """Return the names of columns of numbers that float32 does not tell apart, or cannot hold."""
    found = []
    for name, values in columns.items():
        if values.dtype.itemsize <= np.dtype(np.float32).itemsize and values.dtype.kind == "f":
            continue
        some = values[:: -(-len(values) // SOME) if len(values) else 1].astype(np.float64)
        some = some[np.isfinite(some)]
        if len(some):
            size = np.abs(some).max()
            if size > LARGEST or needs_double(some.mean(), some.std()):
                found.append(name)
    return found


def coded(table: Table, name: str) -> tuple[Codes, NDArray[Any]]:
    """Return the number of each row's value, -1 where it is missing, and the distinct values."""
    column = table[name]
    if hasattr(column, "combine_chunks"):
        return _of_arrow(_in_one(column))
    if type(column).__module__.partition(".")[0] == "polars" and hasattr(column, "to_physical"):
        column = column.to_arrow()
        if type(column).__module__.partition(".")[0] == "pyarrow":
            return _of_arrow(column)
    if hasattr(column, "factorize"):  # pandas
        codes, distinct = column.factorize(sort=True)
        return np.asarray(codes, np.int32), _plain(np.asarray(distinct))
    return _of_array(values_of(table, name))


def _in_one(column: Any) -> Any:  # Any: pyarrow ships no types
    """Return a chunked column in one piece; one that is, without a copy."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _of_arrow(column: Any) -> tuple[Codes, NDArray[Any]]:  # Any: pyarrow ships no types
    if not column.null_count and str(column.type).startswith(("int", "uint", "float", "double")):
        return _of_array(column.to_numpy())  # runs take less memory than a dictionary
    if not hasattr(column, "dictionary"):
        column = column.dictionary_encode()
    codes = column.indices.fill_null(ABSENT).to_numpy(zero_copy_only=False).astype(np.int32)
    distinct = _plain(np.array(column.dictionary.to_pylist()))
    return _ordered(codes, distinct)


def _of_array(array: NDArray[Any]) -> tuple[Codes, NDArray[Any]]:
    """Code the first value of each run: a log has few runs and many rows."""
    if not len(array):
        return np.zeros(0, np.int32), array
    heads = np.flatnonzero(np.r_[True, array[1:] != array[:-1]])
    runs = array[heads]
    if runs.dtype.kind == "O":
        absent = np.array([v is None or v != v for v in runs.tolist()])
    else:
        absent = runs != runs
    codes = np.full(len(runs), ABSENT, np.int32)
    distinct, codes[~absent] = np.unique(_plain(runs[~absent]), return_inverse=True)
    return np.repeat(codes, np.diff(np.r_[heads, len(array)])), distinct


def _ordered(codes: Codes, distinct: NDArray[Any]) -> tuple[Codes, NDArray[Any]]:
    """Number the values in their order, so that no number depends on where a log begins."""
    order = np.argsort(distinct, kind="stable")
    place = np.empty(len(order) + 1, np.int32)
    place[order], place[-1] = np.arange(len(order)), ABSENT
    values, kept = distinct[order], place[codes]
    if values.dtype.kind == "f" and len(values) and np.isnan(values[-1]):
        kept[kept == len(values) - 1] = ABSENT
        values = values[:-1]
    return kept, values


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return texts as numpy's own, which compare and sort alike everywhere."""
    if array.dtype.kind != "O":
        return array
    if all(isinstance(value, str) for value in array.tolist()):
        return array.astype(str) if len(array) else np.zeros(0, "U1")
    return np.array(array.tolist())


# --------------------------------------------------------------------------------------------------
# The time column: seconds since the earliest time, and the clock rate
#
# Numbers with a fraction are seconds. Whole numbers must come with their unit, and dates and times
# have one; those with a time zone are converted to UTC. Times are counted from the earliest of the
# log, in whole units where they are whole, so that a float holds them to a nanosecond.
# --------------------------------------------------------------------------------------------------

TIME_UNITS = ("s", "ms", "us", "ns")
LONGEST_LOG = 1e10  # seconds: 300 years, beyond which a float does not tell microseconds apart
NANOSECONDS = np.dtype("datetime64[ns]")


@dataclass(frozen=True)
class Clock:
    """Times of a log's rows, in seconds since `origin`; NaN where a row has none."""

    name: str
    seconds: Floats
    origin: Any  # of the column's own kind: a number of seconds, or a datetime64
    known: Booleans | None  # None where every row has a time

    def own(self, seconds: Floats) -> NDArray[Any]:
        """Return times as the column has them: seconds, or dates."""
        if isinstance(self.origin, np.datetime64):
            return self.origin + np.rint(seconds * 1e9).astype("timedelta64[ns]")
        absolute: NDArray[Any] = self.origin + seconds
        return absolute


def clock_of(table: Table, name: str, unit: str | None) -> Clock:
    """Read the time column."""
    if getattr(getattr(table[name], "dtype", None), "tz", None) is not None:  # of pandas
        table = {name: table[name].dt.tz_convert(None)}
    array = values_of(table, name)
    if array.dtype.kind == "O":
        array = _of_objects(name, array)
    if not len(array):
        raise InputError(f"the table has no rows; its column {name!r} is empty")
    if array.dtype.kind == "M":
        if unit is not None:
            raise InputError(f"time_unit = {unit!r}: column {name!r} holds dates; leave it out")
        return _of_dates(name, array)
    if array.dtype.kind in "iu":
        if unit is None:
            steps = abs(np.diff(array[:10_001].astype(np.int64)))
            step = int(np.median(steps)) if len(steps) else 0
            raise InputError(
                f"column {name!r} holds whole numbers, with steps of {step}; say their unit: "
                f'time_unit="ms", or {", ".join(one for one in TIME_UNITS if one != "ms")}'
            )
        first = int(array.min())
        since = (array.astype(np.int64) - first).astype(np.float64)
        since *= UNITS[unit]
        return Clock(name, since, first * UNITS[unit], None)
    if array.dtype.kind != "f":
        raise InputError(
            f"column {name!r} holds {array.dtype}; accepted as time: numbers, or dates and times"
        )
    return _of_floats(name, array, UNITS[unit or "s"])


def _of_floats(name: str, array: NDArray[Any], size: float) -> Clock:
    known = np.isfinite(array)
    if not known.any():
        raise InputError(f"column {name!r} has no time in any row")
    times = array if known.all() else array[known]
    first = times.min()
    if float(times.max()) * size - float(first) * size > LONGEST_LOG:
        middle = float(np.median(times))
        far = np.where(known, np.abs(array / 2 - middle / 2), -1.0)  # halves: they do not overflow
        row = int(np.argmax(far))
        raise InputError(
            f"column {name!r}: row {row:,} (the first row is 0) has the time {array[row]:g}, and "
            f"the median time is {middle:g}; correct or remove it"
        )
    since = array.astype(np.float64) - np.float64(first)
    if size != 1.0:
        since *= size
    return Clock(name, since, float(first) * size, None if known.all() else known)


def _of_dates(name: str, array: NDArray[Any]) -> Clock:
    known = ~np.isnat(array)
    if not known.any():
        raise InputError(f"column {name!r} has no time in any row")
    first = array[known].min()
    unit = np.datetime_data(array.dtype)[0]
    size = UNITS.get(unit, 86400.0 if unit == "D" else np.nan) * np.datetime_data(array.dtype)[1]
    since = (array - first).astype(np.int64).astype(np.float64) * size
    since[~known] = np.nan
    return Clock(name, since, first.astype(NANOSECONDS), None if known.all() else known)


def _of_objects(name: str, array: NDArray[Any]) -> NDArray[Any]:
    values = array.tolist()
    try:
        if any(hasattr(value, "year") for value in values):
            return _in_utc(values)
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    except InputError as error:
        raise InputError(f"column {name!r}: {error}") from None
    except (TypeError, ValueError, AttributeError):
        raise InputError(
            f"column {name!r} holds text; accepted as time: numbers, or dates and times"
        ) from None


def _in_utc(values: list[Any]) -> NDArray[Any]:
    zones = [getattr(value, "tzinfo", None) is not None for value in values]
    if any(zones) and not all(z or v is None or v != v for z, v in zip(zones, values, strict=True)):
        raise InputError("some times have a time zone, others have none")
    plain = [
        v.astimezone(UTC).replace(tzinfo=None) if zone else v
        for v, zone in zip(values, zones, strict=True)
    ]
    return np.array(plain, dtype="datetime64[us]")


# --------------------------------------------------------------------------------------------------
# The recipe: how windows are cut, in calls, model files and streams
# --------------------------------------------------------------------------------------------------

TARGETS = ("majority", "end", "mean")
FEWEST_SAMPLES, MOST_SAMPLES = 2, 1 << 20  # of a window
LONGEST = 1e6  # seconds
FASTEST = 1e6  # samples a second
MOST_COLUMNS = 10_000
ROUNDED = 1e-6  # of a sample: what floats make of 5 s times 50 a second
NAME = text(1_000)
NAMES = several(NAME, MOST_COLUMNS)
SENSORS = Kind(
    lambda value: (
        type(value) is dict
        and 1 <= len(value) <= MOST_COLUMNS
        and all(map(NAME.accepts, value))
        and all(several(NAME, MOST_COLUMNS, least=1).accepts(one) for one in value.values())
    ),
    "an object of sensors, each with its columns",
)
STEPS = Kind(
    lambda value: (
        type(value) is dict
        and all(map(NAME.accepts, value))
        and all(number(0.0, 1e6).accepts(step) for step in value.values())
    ),
    "an object of sensors, each with a step",
)
FLAG = Kind(lambda value: type(value) is bool, "true or false")
FIELDS = {
    "time": NAME,
    "time_unit": maybe(choice(*TIME_UNITS)),
    "sensors": SENSORS,
    "window": number(1e-6, LONGEST),
    "hop": number(1e-6, LONGEST),
    "rate": number(1e-6, FASTEST),
    "gap": number(1e-9, LONGEST),
    "by": NAMES,
    "label": NAMES,
    "target": choice(*TARGETS),
    "purity": number(0.0, 1.0),
}


@dataclass(frozen=True)
class Recipe:
    """What `windows` was told, with what it found: rate and gap are None until then."""

    time: str
    sensors: Mapping[str, tuple[str, ...]]
    window: float  # seconds
    hop: float
    rate: float | None = None  # samples a second
    gap: float | None = None  # seconds without a sample that end a window
    by: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    target: str = "majority"
    purity: float = 0.5
    time_unit: str | None = None
    rounding: Mapping[str, float] = field(default_factory=dict)  # steps that sensors round to
    double: bool = False  # whether samples are float64, because float32 does not tell them apart

    def __post_init__(self) -> None:
        if not isinstance(self.sensors, Mapping) or not self.sensors:
            raise InputError(
                f"sensors = {self.sensors!r:.80} is no dictionary of sensors with their columns, "
                'such as {"accelerometer": ["ax", "ay", "az"]}'
            )
        lists = {name: listed(f"sensors[{name!r}]", own) for name, own in self.sensors.items()}
        object.__setattr__(self, "sensors", lists)
        object.__setattr__(self, "by", listed("by", self.by))
        object.__setattr__(self, "label", listed("label", self.label))
        for name, own in lists.items():
            if not own:
                raise InputError(f"sensors[{name!r}] names no column")
        named = [self.time, *self.channels, *self.label]
        twice = next((name for k, name in enumerate(named) if name in named[:k]), None)
        if twice is not None:
            raise InputError(f"column {twice!r} is named twice, among time, sensors and label")
        object.__setattr__(self, "rounding", dict(self.rounding))
        check_fields({"rounding": self.rounding}, {"rounding": STEPS})
        if unknown := sorted(set(self.rounding) - set(lists)):
            raise InputError(
                f"rounding names the sensor {unknown[0]!r}; there are {', '.join(map(repr, lists))}"
            )
        plain = self._plain()
        known = {name: plain[name] for name in FIELDS if plain[name] is not None}
        check_fields(known, {name: FIELDS[name] for name in known})
        if self.rate is not None:
            self.check_length(self.rate)
        if self.target == "majority" and len(self.label) > 1:
            raise InputError(
                f'label = {list(self.label)} with target = "majority"; several are for numbers, '
                'with target = "mean" or "end"'
            )

    @property
    def channels(self) -> tuple[str, ...]:
        """The columns of all sensors, in the order of a window's channels."""
        return tuple(name for own in self.sensors.values() for name in own)

    @property
    def length(self) -> int:
        """Samples of a window: as many as are whole."""
        return math.floor(self.window * self._known_rate() + ROUNDED)

    @property
    def step(self) -> int:
        """Samples from window to window, one at least."""
        return max(1, round(self.hop * self._known_rate()))

    def check_length(self, rate: float) -> None:
        """Refuse a window of too few samples, or too many."""
        samples = self.window * rate
        if not FEWEST_SAMPLES <= samples + ROUNDED < MOST_SAMPLES:
            raise InputError(
                f"window = {self.window:g} s has {samples:.6g} samples at {rate:g} a second; "
                f"accepted: {FEWEST_SAMPLES} to {MOST_SAMPLES:,}"
            )

    @property
    def dtype(self) -> type[np.float32 | np.float64]:
        """The type of a sample."""
        return np.float64 if self.double else np.float32

    def without_label(self) -> Recipe:
        """Return the recipe for a log whose truth is not known."""
        return replace(self, label=())

    def to_json(self) -> dict[str, Any]:
        """Return what a model file keeps."""
        return self._plain()

    @classmethod
    def from_json(cls, value: Json) -> Recipe:
        """Read what a file holds, which anyone may have written."""
        check_fields(value, FIELDS, {"rounding": STEPS, "double": FLAG})
        kept = {name: value[name] for name in FIELDS}
        return cls(**kept, rounding=value.get("rounding", {}), double=value.get("double", False))

    def _plain(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in FIELDS}
        return {
            **kept,
            "sensors": {name: list(own) for name, own in self.sensors.items()},
            "by": list(self.by),
            "label": list(self.label),
            **({"rounding": dict(self.rounding)} if self.rounding else {}),
            **({"double": True} if self.double else {}),
        }

    def _known_rate(self) -> float:
        if self.rate is None:
            raise InputError("the recipe has no rate yet; windows(...) finds it in a log")
        return self.rate


def listed(argument: str, names: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return names of columns as a tuple: one name stands for itself, None for none."""
    if names is None:
        return ()
    found = (names,) if isinstance(names, str) else tuple(names)
    if not all(isinstance(name, str) for name in found):
        raise InputError(f"{argument} = {names!r:.80} is no list of names of columns")
    return found
