"""Figures as the text of a table's cell."""

from __future__ import annotations

import math
from collections.abc import Mapping

NONE = "–"


def number(value: float | None, error: float | None = None, digits: int = 3) -> str:
    """Return `digits` significant digits, or the decimals that two digits of the error need."""
    if value is None or not math.isfinite(value):
        return NONE
    if error is not None and math.isfinite(error) and error > 0:
        decimals = min(4, max(0, 1 - math.floor(math.log10(error))))
        return f"{value:,.{decimals}f} ± {error:,.{decimals}f}"
    size = math.floor(math.log10(abs(value))) if value else 0
    return f"{value:,.{min(4, max(0, digits - 1 - size))}f}"


def count(value: float | None) -> str:
    """Return a whole number with its thousands apart."""
    return NONE if value is None else f"{value:,.0f}"


def percent(value: float | None) -> str:
    """Return a share as per cent with one decimal, without the sign."""
    return NONE if value is None else f"{100 * value:.1f}"


def area(figures: Mapping[str, float | None], key: str = "deviation_area") -> str:
    """Return a deviation area to four decimals, with its sign where it is the signed one."""
    value, error = figures.get(key), figures.get(f"{key}_se")
    if value is None:
        return NONE
    text = f"{value:{'+' if key.endswith('signed') else ''}.4f}"
    return f"{text} ± {error:.4f}" if error else text


def span(low: float | None, high: float | None) -> str:
    """Return a range of values."""
    if low is None or high is None:
        return NONE
    return f"{plain(low)} to {plain(high)}"


def plain(value: float | None) -> str:
    """Return five significant digits, without zeros at the end."""
    return NONE if value is None else f"{value:,.5g}"


def choices(chosen: Mapping[str, object] | None) -> str:
    """Return a method's choices in one line; a list where its trainings chose differently."""
    parts = [
        f"{key} " + " / ".join(map(_choice, value if isinstance(value, list) else [value]))
        for key, value in (chosen or {}).items()
    ]
    return ", ".join(parts) or NONE


def _choice(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def short(value: float) -> str:
    """Return three digits, and no exponent for anything that a bar can show."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
