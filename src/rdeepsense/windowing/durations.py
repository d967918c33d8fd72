"""Durations as people write them: "5s", "200ms", or a number of seconds."""

from __future__ import annotations

import math
import re

from rdeepsense.errors import InputError

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
