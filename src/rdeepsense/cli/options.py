"""Options that several commands share: tables, logs, budgets, engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rdeepsense.errors import InputError, require

if TYPE_CHECKING:
    from rdeepsense.deploy.budget import Budget
    from rdeepsense.engines import Engine, Ray
    from rdeepsense.windowing import Recipe


def plain_typer(**settings: Any) -> typer.Typer:
    """Return a group of commands whose help is plain text: rich would name types of Python."""
    return typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,  # with --debug, Python's own traceback
        **settings,
    )


# --------------------------------------------------------------------------------------------------
# Parsing of hidden layer widths
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Parsing of device budgets
# --------------------------------------------------------------------------------------------------


def budget_of(text: str | None) -> Budget | None:
    """Read --budget flash=64kB,ram=8kB."""
    if text is None:
        return None
    from rdeepsense.deploy.budget import Budget

    try:
        return Budget.parse(text)
    except InputError as error:
        raise InputError(f"--budget: {error}") from None


def front_beside(plot: Path) -> Path:
    """Name the picture of the front, beside that of the selection."""
    return plot.with_name(f"{plot.name}-front")


def budget_line(budget: Budget, training: dict[str, Any]) -> str:
    """Say what of a budget the fitted model needs."""
    from rdeepsense.fitting.records import DeviceCost

    return f"budget    {budget.words(DeviceCost(**training['budget']['need']))}"


# --------------------------------------------------------------------------------------------------
# Engines for independent work: --engine, --address and --jobs
# --------------------------------------------------------------------------------------------------


class EngineName(StrEnum):
    """Engines by name."""

    local = "local"
    joblib = "joblib"
    ray = "ray"


EngineOption = Annotated[
    EngineName,
    typer.Option(
        "--engine", help="Where work is done: local (this machine), joblib, or a Ray cluster."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(help="Ray cluster address (auto or HOST:6379); default: $RAY_ADDRESS or local."),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", min=1, help="Processes, of one thread each; else 1.")
]


def engine_asked(
    name: EngineName, address: str | None, jobs: int | None, usual_jobs: int = 1
) -> Engine:
    """Return the engine of these options; `usual_jobs` is of local where --jobs is not given."""
    from rdeepsense.engines import Joblib, Local, Ray

    if address is not None and name is not EngineName.ray:
        raise InputError(f"--address {address}: is for --engine ray; the engine is {name.value}")
    if name is EngineName.local:
        return Local(jobs or usual_jobs)
    if name is EngineName.joblib:
        return Joblib(jobs)
    if jobs is not None:
        raise InputError(f"--jobs {jobs}: is for local and joblib; Ray uses the cluster's cores")
    require("ray", "ray")
    return Ray(address=address)


# --------------------------------------------------------------------------------------------------
# Workers of one fit: --engine, --workers, --use-gpu, --address and --storage
# --------------------------------------------------------------------------------------------------


class FitEngine(StrEnum):
    """Where one fit is done."""

    local = "local"
    ray = "ray"


FitEngineOption = Annotated[
    FitEngine,
    typer.Option("--engine", help="Where a folder is trained on: here, or on a Ray cluster."),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, help="Ray: how many train together, each on a share of the rows; all by default."
    ),
]
Storage = Annotated[
    str | None,
    typer.Option(help="Ray: folder or URL that all machines see, for checkpoints of the workers."),
]

UseGpu = Annotated[bool, typer.Option("--use-gpu", help="Ray: each worker has a GPU of its own.")]


def workers_asked(
    engine: FitEngine,
    workers: int | None,
    address: str | None,
    storage: str | None,
    use_gpu: bool,
    is_folder: bool,
) -> Ray | None:
    """Return the engine of these options, None for this process."""
    if engine is FitEngine.local:
        asked = {"--workers": workers, "--address": address, "--storage": storage}
        given = [f"{option} {value}" for option, value in asked.items() if value is not None]
        for option in [*given, *(["--use-gpu"] if use_gpu else [])]:
            raise InputError(f"{option}: is for --engine ray; the engine is local")
        return None
    if not is_folder:
        raise InputError("--engine ray: is for a folder of Parquet files, which workers can share")
    from rdeepsense.engines import Ray

    return Ray(workers, use_gpu, address, storage)


# --------------------------------------------------------------------------------------------------
# Options that several commands share
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Options of a sensor log: time, sensors and windows
# --------------------------------------------------------------------------------------------------


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
