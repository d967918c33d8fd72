"""The inputs of a model by name, and some of a table's rows to ask the model about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.data.dates import part_of, value_of, wave
from rdeepsense.fitting.fitted import Inputs

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
LEVELS = {"weekday": DAYS, "month": MONTHS}
CALLED = {"hour": "hour of the day", "weekday": "day of the week", "yearday": "day of the year"}


@dataclass(frozen=True)
class DatePart:
    """A part of a column of dates, and the columns of rows that encode it: sin and cos, or one."""

    source: str
    part: str
    columns: tuple[int, ...]

    @property
    def named(self) -> str:
        """What an axis along it is called."""
        return f"{self.source}: {CALLED.get(self.part, self.part)}"

    @property
    def is_level(self) -> bool:
        """Whether it is one of a few, and no number."""
        return self.part in LEVELS

    def decoded(self, rows: NDArray[Any]) -> Floats:
        """Return its value in each row, as it is encoded: from 0, but for years."""
        columns = [rows[..., k].astype(np.float64) for k in self.columns]
        if len(columns) == 1:
            return columns[0]
        value = value_of(columns[0], columns[1], self.part)
        return np.round(value, 6 if self.part == "hour" else 0)

    def encoded(self, values: Floats) -> list[Floats]:
        """Return the numbers of its columns for values as `decoded` returns them."""
        if len(self.columns) == 1:
            return [values]
        return [wave(values, self.part, which) for which in ("sin", "cos")]

    def shown(self, value: float) -> float:
        """Return a value as people count it: the first of January is day 1."""
        return value + 1 if self.part == "yearday" else value

    def words(self, value: float) -> str:
        """Return a value in words."""
        if np.isnan(value):
            return "missing"
        if self.is_level:
            return LEVELS[self.part][int(value) % len(LEVELS[self.part])]
        if self.part == "hour":
            minutes = round(60 * value) % 1440
            return f"{minutes // 60:02d}:{minutes % 60:02d}"
        return f"{'day ' if self.part == 'yearday' else ''}{self.shown(value):.0f}"


@dataclass(frozen=True)
class InputNames:
    """What the columns of rows are called, their units, and the levels of those with levels.

    Columns that encode one column of dates are one input, which goes by the first of them.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    levels: dict[int, tuple[str, ...]]
    dates: dict[int, tuple[DatePart, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, inputs: Inputs) -> InputNames:
        """Take them from a fitted model; inputs without a name have a number."""
        count = inputs.shape[-1]
        encoding = inputs.encoding
        names = list(inputs.names or (f"input {k}" for k in range(count)))
        dates = {}
        for source in inputs.dated:
            parts = _parts(names, source)
            if parts:
                dates[parts[0].columns[0]] = parts
        for first, parts in dates.items():
            names[first] = parts[0].source
        return cls(
            tuple(names),
            inputs.units or ("",) * count,
            {} if encoding is None else {c.column: c.levels for c in encoding.categories},
            dates,
        )

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """The columns of each input."""
        of_dates = {
            first: tuple(k for part in parts for k in part.columns)
            for first, parts in self.dates.items()
        }
        further = {k for columns in of_dates.values() for k in columns} - set(of_dates)
        return [of_dates.get(k, (k,)) for k in range(len(self.names)) if k not in further]

    def named(self, column: int) -> str:
        """Return a name with its unit."""
        unit = self.units[column]
        return f"{self.names[column]} ({unit})" if unit else self.names[column]

    def said(self, column: int, row: NDArray[Any]) -> str:
        """Return the value that an input has in a row, in words."""
        if column in self.dates:
            return ", ".join(part.words(float(part.decoded(row))) for part in self.dates[column])
        return self.words(column, float(row[column]))

    def words(self, column: int, value: float) -> str:
        """Return a value of a column in words."""
        if np.isnan(value):
            return "missing"
        if column in self.levels:
            levels = self.levels[column]
            return levels[int(value)] if 0 <= value < len(levels) else "a level never seen"
        return f"{value:.4g}".replace("-", "−")


def _parts(names: list[str], source: str) -> tuple[DatePart, ...]:
    """Return the parts of a column of dates that inputs of these names are."""
    found: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        made = part_of(name)
        if made is not None and made[0] == source:
            found.setdefault(made[1], []).append(k)
    return tuple(DatePart(source, part, tuple(columns)) for part, columns in found.items())


def sample(rows: int, most: int, seed: int) -> NDArray[Any]:
    """Choose rows at random, in their order."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
