"""The widths of hidden layers, as commands take them."""

from __future__ import annotations

from rdeepsense.errors import InputError


def widths_of(hidden: str) -> tuple[int, ...] | str:
    """Read 64,64 as (64, 64); auto stays as it is."""
    if hidden == "auto":
        return hidden
    try:
        widths = tuple(int(width) for width in hidden.split(","))
    except ValueError:
        widths = ()
    if not widths or min(widths) < 1:
        raise InputError(
            f"--hidden {hidden!r}: give whole numbers separated by commas, such as 64,64, or auto"
        )
    return widths
