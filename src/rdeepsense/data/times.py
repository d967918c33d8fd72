"""The time of each row: which rows come last, and what to do about rows in the order of time."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Booleans, Floats
from rdeepsense.data.checks import check_length
from rdeepsense.errors import InputError

UNITS = {
    "year": 3.2e7,
    "month": 2.6e6,
    "week": 6e5,
    "day": 86_400.0,
    "date": 86_400.0,
    "hour": 3_600.0,
    "hr": 3_600.0,
    "minute": 60.0,
}
SAMPLES = 60  # seconds; rows that are closer are samples of a sensor


def checked_times(time: ArrayLike, rows: int) -> NDArray[Any]:
    """Return numbers or dates, one for each row; those with a time zone as UTC."""
    if getattr(getattr(time, "dtype", None), "tz", None) is not None:  # of pandas
        time = time.dt.tz_convert(None)  # type: ignore[union-attr]
    values = np.asarray(time)
    if values.dtype.kind in "OU":  # dates as text or as Python has them
        with suppress(TypeError, ValueError):
            values = values.astype("datetime64[us]")
    check_length("time", len(values), rows)
    if values.dtype.kind not in "iufM" or values.ndim != 1:
        raise InputError(
            f"time is of {values.dtype} with shape {values.shape}; accepted: a number or a date "
            "for each row"
        )
    if (values != values).any():
        place = int(np.argmax(values != values))
        raise InputError(f"time lacks a value in row {place} (the first row is 0)")
    return values


def last_rows(time: NDArray[Any], fraction: float) -> Booleans:
    """Mark about a `fraction` of the rows, the last in time; rows of one time stay together."""
    first, last = time.min(), time.max()
    if first == last:
        raise InputError("all rows have one time; a split needs two at least")
    at = np.sort(time)[min(len(time) - 1, round((1 - fraction) * len(time)))]
    held: Booleans = time >= at
    if held.all() or held.mean() > 2 * fraction:
        held = time > at
    return held if held.any() else time == last


def cure_of_order(step: float | None) -> str:
    """Return what to do about rows in order, by the step of their clock in seconds."""
    if step is not None and step < SAMPLES:
        return "Cut windows of several seconds (rdeepsense.windows), and keep recordings together."
    test = "Hold out the last part of the time (a chronological hold-out, time=)"
    if step is None:
        return f"{test}, and use earlier values (lags) as inputs where they are known."
    if step < 3_600:
        return f"{test}, and use means over longer windows or lags as inputs."
    return f"{test}, and use lags (values of the days or hours before) as inputs."


def step_of(name: str, values: Floats, is_dated: bool) -> float | None:
    """Return the step of a clock in seconds; None where its unit is not known."""
    steps = np.diff(values[np.isfinite(values)])
    step, name = float(np.median(steps[steps > 0])), name.lower()
    if is_dated or re.search(r"second|sec\b|secs", name):
        return step
    if re.fullmatch(r"ms|millis\w*|.*_ms", name):
        return step / 1e3
    if name in UNITS:
        return step * UNITS[name]
    # Without a unit, fractions are of seconds, as sensors count.
    return step if name in ("t", "time") and 0 < step < 1 else None
