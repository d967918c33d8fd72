"""The time column: seconds since its earliest value, and the rate at which it runs.

Numbers with a fraction are seconds. Whole numbers must come with their unit, and dates and times
have one; those with a time zone are converted to UTC. Times are counted from the earliest of the
log, in whole units where they are whole, so that a float holds them to a nanosecond.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats
from rdeepsense.errors import InputError
from rdeepsense.windowing.columns import Table, values_of
from rdeepsense.windowing.durations import UNITS

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
