"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

TABLE = "CSV, Parquet, Arrow, Excel or JSON lines, packed or not; - reads stdin"


class Calibrate(StrEnum):
    """Ways to calibrate."""

    scale = "scale"
    isotonic = "isotonic"
    temperature = "temperature"
    auto = "auto"
    conformal = "conformal"
    off = "off"


Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Overwrite existing files.")]
JsonFile = Annotated[
    Path | None, typer.Option("--json", help="Write the figures to this file too; - for stdout.")
]
MissingMarks = Annotated[
    list[str] | None,
    typer.Option(
        "--missing-mark",
        help="Value that stands for a missing one, such as -999; repeat for several. NA, n/a, ?, "
        "-, null, nan, None and empty cells are known.",
    ),
]
ForcedInputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input", help="Keep this column as an input even if it looks like an id; repeatable."
    ),
]
DateParts = Annotated[
    str | None,
    typer.Option(
        "--datetime",
        help="Parts of dates that become inputs, with commas: hour, weekday, month, yearday, year. "
        "Without it dates are left out.",
    ),
]
ManyClasses = Annotated[
    bool,
    typer.Option(
        "--many-classes", help="Take more than 50 classes, or more than half as many as rows."
    ),
]
Calibration = Annotated[
    Calibrate | None,
    typer.Option(
        "--calibrate",
        help="scale (or temperature, of classes) by default; isotonic; auto; conformal; off.",
    ),
]
Device = Annotated[
    str, typer.Option("--device", help="auto, cpu, cuda or cuda:N: where networks are trained.")
]
KeepRows = Annotated[
    int,
    typer.Option(
        "--keep-rows", min=0, help="Validation rows that the file keeps, readable, for exports."
    ),
]


def calibrate_argument(asked: Calibrate | None) -> bool | str:
    """Return the estimators' argument `calibrate`."""
    if asked is None:
        return True
    return False if asked is Calibrate.off else asked.value
