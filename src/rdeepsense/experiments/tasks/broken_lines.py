"""A walk that names the broken line of a CSV file; the fast reader says only that there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rdeepsense.errors import InputError

SHOWN = 80  # characters of a broken line that an error repeats

Reading = Callable[[str], object]  # raises ValueError on a field that it cannot read


def refuse_broken_lines(path: Path, readings: Mapping[str, Reading], header: bool = True) -> None:
    """Raise InputError at the first line with a wrong number of fields or an unreadable one.

    `readings` tells how to read a column, by its name in the header or, without one, as `positions`
    names it. Blank lines are no damage. A walk takes microseconds a line, too long for files of
    millions unless they are known to have something wrong.
    """
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        names: list[str] = []
        for number, line in enumerate(file, start=1):
            found = fields(line)
            if found == [""]:
                continue
            if not names:
                names = found if header else positions(found)
                if header:
                    continue
            if len(found) != len(names):
                raise InputError(
                    f"{path}, line {number}: {len(found)} fields, not {len(names)}: "
                    f"{line.rstrip()[:SHOWN]!r}"
                )
            for name, field in zip(names, found, strict=True):
                if name in readings:
                    try:
                        readings[name](field)
                    except ValueError as error:
                        raise InputError(f"{path}, line {number}: {name} = {error}") from None


def fields(line: str) -> list[str]:
    """Return the fields of a line, without quotes; [""] for a blank line."""
    return [field.strip().strip('"') for field in line.rstrip("\r\n").split(",")]


def positions(fields: Sequence[str]) -> list[str]:
    """Return names for the columns of a file without a header."""
    return [f"column {position}" for position, _ in enumerate(fields, start=1)]


def whole_number(field: str) -> int:
    """Read an integer, as the clocks of devices write it."""
    try:
        return int(field)
    except ValueError:
        raise ValueError(f"{field!r} is no whole number") from None


def number(field: str) -> float:
    """Read a number; an empty field is a missing value, which is no broken line."""
    try:
        return float(field or "nan")
    except ValueError:
        raise ValueError(f"{field!r} is no number") from None


def one_of(*accepted: str) -> Reading:
    """Return a reading that accepts one of these words."""

    def word(field: str) -> str:
        if field not in accepted:
            raise ValueError(f"{field!r}; accepted: {', '.join(accepted)}")
        return field

    return word


def word(field: str) -> str:
    """Read any name but an empty one."""
    if not field:
        raise ValueError("nothing; a name is needed")
    return field
