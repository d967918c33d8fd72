"""Options of a sensor log: its clock, its sensors, and the windows that are cut from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rdeepsense.errors import InputError

if TYPE_CHECKING:
    from rdeepsense.windowing import Recipe


class TimeUnit(StrEnum):
    """Units of whole numbers that are times."""

    s = "s"
    ms = "ms"
    us = "us"
    ns = "ns"


class WindowTarget(StrEnum):
    """Where a window has its number."""

    mean = "mean"
    end = "end"


Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        help="Column of times: of a table the last part is the test, of a log windows are cut by "
        "it (--window).",
    ),
]
Unit = Annotated[
    TimeUnit | None, typer.Option("--time-unit", help="Unit of times that are whole numbers.")
]
Sensor = Annotated[
    list[str] | None,
    typer.Option(
        "--sensor",
        help="NAME=COLUMN,COLUMN,... of a log, such as accelerometer=ax,ay,az; repeat for each.",
    ),
]
Window = Annotated[
    str | None,
    typer.Option("--window", help="Cut a log into windows of this length, such as 5s or 500ms."),
]
Hop = Annotated[
    str | None, typer.Option("--hop", help="Step between windows (default: no overlap).")
]
Rate = Annotated[
    float | None,
    typer.Option("--rate", help="Samples a second; by default the log's own, rounded."),
]
By = Annotated[
    list[str] | None,
    typer.Option("--by", help="Column that tells recordings apart; repeat for several."),
]
Gap = Annotated[
    str | None,
    typer.Option(
        "--gap", help="Time without a sample that ends a window: three periods, 0.1s at least."
    ),
]
Purity = Annotated[
    float | None,
    typer.Option("--purity", help="Share of a window that must have its label; 0.5 by default."),
]
At = Annotated[
    WindowTarget | None,
    typer.Option("--window-target", help="Numbers: mean over the window (default), or its end."),
]


Rounding = Annotated[
    list[str] | None,
    typer.Option(
        "--rounding",
        help="SENSOR=STEP that it rounds to on the device, such as accelerometer=0.1 in a "
        "browser: training has such windows as well.",
    ),
]


@dataclass(frozen=True)
class LogOptions:
    """What was given; all None where the table is no log."""

    time: str | None
    unit: TimeUnit | None
    sensors: Sequence[str] | None
    window: str | None
    hop: str | None
    rate: float | None
    by: Sequence[str] | None
    gap: str | None
    purity: float | None
    at: WindowTarget | None
    rounding: Sequence[str] | None = None

    def recipe(self, groups: str | None) -> Recipe | None:
        """Return the recipe that the options spell, without a label; None where there are none."""
        if self.window is None:
            for option, value in self._others().items():
                if value:
                    raise InputError(f"{option} requires --window (for example --window 5s)")
            return None
        if self.time is None or not self.sensors:
            raise InputError(
                "--window needs --time, the column of times, and --sensor NAME=COLUMN,... for each "
                "sensor"
            )
        from rdeepsense.windowing import Recipe
        from rdeepsense.windowing.recipe import seconds

        length = seconds("--window", self.window)
        names = list(dict.fromkeys([*([groups] if groups else []), *(self.by or [])]))
        return Recipe(
            self.time,
            sensors_of(self.sensors),
            length,
            length if self.hop is None else seconds("--hop", self.hop),
            self.rate,
            None if self.gap is None else seconds("--gap", self.gap),
            tuple(names),
            purity=0.5 if self.purity is None else self.purity,
            time_unit=None if self.unit is None else self.unit.value,
            rounding=steps_of(self.rounding or ()),
        )

    def _others(self) -> dict[str, object]:
        return {
            "--time-unit": self.unit,
            "--sensor": self.sensors,
            "--hop": self.hop,
            "--rate": self.rate,
            "--by": self.by,
            "--gap": self.gap,
            "--purity": self.purity,
            "--window-target": self.at,
            "--rounding": self.rounding,
        }


def sensors_of(given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read NAME=COLUMN,COLUMN,... of each sensor."""
    found = dict[str, tuple[str, ...]]()
    for text in given:
        name, sign, columns = text.partition("=")
        names = tuple(one.strip() for one in columns.split(","))
        if not sign or not name.strip() or not all(names):
            raise InputError(
                f"--sensor {text!r}: give NAME=COLUMN,COLUMN,..., such as accelerometer=ax,ay,az"
            )
        if name.strip() in found:
            raise InputError(f"--sensor {text!r}: {name.strip()!r} is named twice")
        found[name.strip()] = names
    return found


def steps_of(given: Sequence[str]) -> dict[str, float]:
    """Read SENSOR=STEP of each sensor that rounds."""
    found = dict[str, float]()
    for text in given:
        name, _, step = text.partition("=")
        try:
            found[name.strip()] = float(step)
        except ValueError:
            raise InputError(
                f"--rounding {text!r}: give SENSOR=STEP, such as accelerometer=0.1"
            ) from None
    return found
