"""`rdeepsense fit`: from a table to a model file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rdeepsense._files import Remote, path_or_url
from rdeepsense._records import to_plain
from rdeepsense.cli.columns import TaskKind, check_roles, decide, some
from rdeepsense.cli.options import (
    TABLE,
    Address,
    At,
    By,
    Calibration,
    DateParts,
    Device,
    FitEngine,
    FitEngineOption,
    ForcedInputs,
    Gap,
    Hop,
    JsonFile,
    KeepRows,
    LogOptions,
    ManyClasses,
    MissingMarks,
    Overwrite,
    Purity,
    Quiet,
    Rate,
    Rounding,
    Sensor,
    Storage,
    Time,
    Unit,
    UseGpu,
    Window,
    Workers,
    budget_line,
    budget_of,
    calibrate_argument,
    front_beside,
    widths_of,
    workers_asked,
)
from rdeepsense.cli.reading.columns import parse_parts
from rdeepsense.cli.reading.content import STDIN
from rdeepsense.cli.reading.table import read_table
from rdeepsense.cli.sources import Folder, LogTable, MemoryTable
from rdeepsense.cli.terminal import (
    STDOUT,
    Terminal,
    check_outputs,
    in_options,
    kept_state,
    pictures,
    stop,
    stoppable,
    write_json,
)
from rdeepsense.errors import InputError, require

if TYPE_CHECKING:
    from rdeepsense.estimators import RDeepSenseClassifier, RDeepSenseRegressor


# --------------------------------------------------------------------------------------------------
# The choices of a fit and their alternatives, as text
# --------------------------------------------------------------------------------------------------

Json = Mapping[str, Any]  # Any: whatever JSON holds
KNOBS = {"likelihood": "{} head", "alpha": "alpha {:g}", "drop_prob": "drop probability {}"}


def choice_lines(selection: Json | None) -> list[str]:
    """Return a line for the network, one for its head and knobs; none where nothing was open."""
    if selection is None:
        return []
    lines = []
    if tried := selection.get("architectures"):
        (own,) = (one for one in tried if one["chosen"])
        said = f"network   {network_words(own)}"
        others = [one for one in tried if one is not own and one["nll"] is not None]
        if others:
            second = min(others, key=lambda one: one["nll"])
            said += f", of {len(tried)} tried; next: {network_words(second)}{_behind(second)}"
        lines.append(said)
    trials = selection["trials"]
    chosen = trials[selection["chosen"]]
    said = ", ".join(words.format(chosen[name]) for name, words in KNOBS.items())
    said = f"chosen    {said}: best of {len(trials)} by {selection['how']}"
    if second := selection.get("second"):
        other = trials[second["trial"]]
        differing = [
            words.format(other[name])
            for name, words in KNOBS.items()
            if other[name] != chosen[name]
        ]
        said += f"; next: {', '.join(differing)}{_behind(second)}"
    lines.append(said)
    if selection.get("cut"):
        lines.append("cut       the clock ended the search: another run may choose otherwise")
    return lines


def network_words(tried: Json) -> str:
    """Return what a tried network is."""
    arguments = tried["arguments"]
    widths = arguments.get("hidden")
    if tried["name"] not in ("Dense", "Periodic") or not isinstance(widths, list):
        inside = ", ".join(f"{name} {value}" for name, value in arguments.items())
        return f"{tried['name']} ({inside})"
    said = f"layers of {'-'.join(map(str, widths))}"
    if tried["name"] == "Periodic":
        said += f" on periodic embeddings (spread {arguments.get('std')})"
    return said


def _behind(other: Json) -> str:
    """Return how much worse, or better where that is within the error and the other smaller."""
    behind = other.get("behind")
    if not behind or behind["difference"] is None:
        return ""
    difference, error = behind["difference"], behind["standard_error"]
    spread = "" if error is None else f" ± {error:.3f}"
    side = "behind" if difference >= 0 else "better (not significant)"
    return f", {abs(difference):.3f}{spread} {side}"


# --------------------------------------------------------------------------------------------------
# `rdeepsense fit`: from a table to a model file and metrics on test rows
# --------------------------------------------------------------------------------------------------

OPTIONS = {"calibrate": "--calibrate", "device": "--device", "keep_rows": "--keep-rows"}


class Likelihood(StrEnum):
    """Heads of a regression."""

    gaussian = "gaussian"
    student = "student"
    auto = "auto"


class MissingInputs(StrEnum):
    """Ways to treat missing inputs."""

    auto = "auto"
    indicator = "indicator"
    mean = "mean"
    refuse = "refuse"


def fit(
    table: Annotated[
        str,
        typer.Argument(
            help=f"{TABLE}; one row per example. Or a folder of Parquet files, which may be "
            "larger than memory."
        ),
    ],
    target: Annotated[list[str], typer.Option(help="Column to predict; repeat for several.")],
    groups: Annotated[
        str | None, typer.Option(help="Column (user, record) whose rows must stay together.")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Model file.")] = Path(
        "model.safetensors"
    ),
    task: Annotated[
        TaskKind, typer.Option(help="auto: classes for text or yes/no targets.")
    ] = TaskKind.auto,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Fast first look: no search, fixed settings for what is auto."
        ),
    ] = False,
    hidden: Annotated[
        str, typer.Option(help="Widths of the hidden layers, or auto, which chooses the network.")
    ] = "auto",
    drop_prob: Annotated[
        str, typer.Option(help="Probability to drop a hidden unit, or auto.")
    ] = "auto",
    alpha: Annotated[
        str, typer.Option(help="Weight of the error against the NLL, auto or paper.")
    ] = "auto",
    likelihood: Annotated[
        Likelihood | None,
        typer.Option(help="Regression: gaussian, student for heavy tails, or auto (default)."),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the rows; by default from their number.")
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(min=0, help="Begin no further training after this, and take the best so far."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="What the model may need as C, such as "
            "flash=64kB,ram=8kB,multiply_adds=200000,dtype=int8; with --hidden auto the best "
            "network within it is chosen."
        ),
    ] = None,
    missing: Annotated[
        MissingInputs,
        typer.Option(help="Missing inputs: auto flags them to the network where there are any."),
    ] = MissingInputs.auto,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Exclude this column from the inputs; repeatable.")
    ] = None,
    inputs: ForcedInputs = None,
    datetime: DateParts = None,
    missing_mark: MissingMarks = None,
    many_classes: ManyClasses = False,
    no_check: Annotated[
        bool,
        typer.Option("--no-check", help="Do not look for faults of the table; split row by row."),
    ] = False,
    calibrate: Calibration = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=UNIT of a target or input, for what is exported; repeat for several."
        ),
    ] = None,
    test_fraction: Annotated[
        float | None,
        typer.Option(
            help="Share of rows (or groups) kept for the closing figures: 0.2, none of a folder."
        ),
    ] = None,
    memory: Annotated[
        int, typer.Option(min=1, help="Memory limit for rows of a folder, in MiB per worker.")
    ] = 1024,
    engine: FitEngineOption = FitEngine.local,
    workers: Workers = None,
    use_gpu: UseGpu = False,
    address: Address = None,
    storage: Storage = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Save the state here and go on from it after a stop.")
    ] = None,
    partial: Annotated[
        bool,
        typer.Option(
            "--partial", help="After Ctrl-C, let the partial model take the place of --output."
        ),
    ] = False,
    time: Time = None,
    time_unit: Unit = None,
    sensor: Sensor = None,
    window: Window = None,
    hop: Hop = None,
    rate: Rate = None,
    by: By = None,
    gap: Gap = None,
    purity: Purity = None,
    rounding: Rounding = None,
    window_target: At = None,
    keep_rows: KeepRows = 512,
    device: Device = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
    json: JsonFile = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw what was chosen among to PLOT.png and PLOT.svg.")
    ] = None,
) -> None:
    """Fit a network to a table and say how good its uncertainty is on rows it has not seen."""
    terminal = Terminal(quiet, json)
    widths, limits = widths_of(hidden), budget_of(budget)
    outputs = {"--output": output, "--json": json, **pictures(plot)}
    left, forced, parts = ignore or [], inputs or [], parse_parts(datetime)
    check_roles(target, groups, left, forced)
    if time is not None and window is None and groups is not None:
        raise InputError("give --groups or --time, not both: each of them says what the test is")
    source: Folder | MemoryTable | LogTable
    place = path_or_url(table)
    told = LogOptions(
        time, time_unit, sensor, window, hop, rate, by, gap, purity, window_target, rounding
    )
    recipe = told.recipe(groups)
    is_folder = isinstance(place, Remote) or (place.is_dir() and any(place.glob("*.parquet")))
    away = workers_asked(engine, workers, address, storage, use_gpu, is_folder and recipe is None)
    if recipe is not None:
        if left or forced or parts:
            raise InputError(
                "--ignore, --input and --datetime are for tables; of a log the columns that "
                "--time, --sensor, --by, --groups and --target name are read, and no others"
            )
        if isinstance(place, Remote):
            raise InputError(f"{place}: a log must be a file of this machine")
        at = None if window_target is None else window_target.value
        source = LogTable.inspect(
            place, recipe, target, groups, test_fraction, seed, at, missing_mark or []
        )
    elif isinstance(place, Remote) or is_folder:
        if parts or missing_mark or time:
            raise InputError(
                "--datetime, --missing-mark and --time are for a table in memory, not a folder"
            )
        limit = memory * 2**20
        source = Folder.inspect(place, target, groups, left, test_fraction, limit, forced, away)
    else:
        read = read_table(place, missing_mark or [])
        source = MemoryTable.inspect(
            read,
            target,
            groups,
            left,
            missing.value,
            test_fraction,
            seed,
            forced,
            parts,
            not no_check,
            time,
        )
    # A partial model is there to be replaced: the same command goes on.
    inputs_read = () if isinstance(place, Remote) else (place,)
    check_outputs({**outputs, "--checkpoint": checkpoint}, inputs=inputs_read)
    check_outputs(outputs, inputs=inputs_read, overwrite=overwrite or partial)
    terminal.line(f"table     {'stdin' if place == STDIN else place}")
    source.report(terminal)
    classes, why = decide(task, source.kinds())
    terminal.line(f"task      {'classification' if classes else 'regression'}: {why}")
    units = _units(unit or [], [*source.inputs, *([] if classes else target)])
    source.prepare(classes, many_classes)
    if isinstance(source, MemoryTable):
        source.report_findings(terminal)

    if plot is not None:
        _check_plot(plot, quick, {hidden, alpha, drop_prob, likelihood.value if likelihood else ""})
    settings = {
        "effort": "quick" if quick else "full",
        "hidden": widths,
        "drop_prob": _number_or_word("--drop-prob", drop_prob, ("auto",)),
        "alpha": _number_or_word("--alpha", alpha, ("auto", "paper")),
        "epochs": epochs,
        "max_seconds": max_seconds,
        "budget": limits,
        "missing": missing.value,
        "calibrate": calibrate_argument(calibrate),
        "keep_rows": keep_rows,
        "device": device,
        "checkpoint": checkpoint,
        "random_state": seed,
        "verbose": not quiet,
    }
    model = _estimator(classes, likelihood, settings)
    with stoppable(lambda: kept_state(checkpoint)), in_options(OPTIONS):
        source.fit(model)
        model.describe(
            target,
            {name: units[name] for name in target if name in units} or None,
            {name: units[name] for name in source.inputs if name in units} or None,
        )
        if model.training_["interrupted"]:
            path = output if partial else output.with_name(f"{output.stem}.partial{output.suffix}")
            model.save(path)
            stop(f"{path} holds the best step so far; {kept_state(checkpoint)}")
        replaced = output.exists()
        model.save(output)

    with stoppable(lambda: f"{output} is the finished model; what comes after it is not done"):
        known = set(source.constant)
        if constant := [n for n in model.fitted_.training.constant_inputs if n not in known]:
            terminal.line(f"constant  {some(constant)}: as good as one number in these rows")
        for line in choice_lines(model.selection_):
            terminal.line(line)
        if limits is not None:
            terminal.line(budget_line(limits, model.training_))
        closing = source.score(terminal, model)
        if closing.peers is not None:
            model.fitted_ = replace(model.fitted_, peers=closing.peers)
            model.save(output)
        if kept := len(model.fitted_.kept_rows[0]):
            terminal.line(
                f"note      the model file contains {kept:,} validation rows in plain "
                "form, to verify exports; --keep-rows 0 leaves them out"
            )
        terminal.line(f"wrote {output}{' (replaced the file that was there)' if replaced else ''}")
        if plot is not None:
            from rdeepsense.pages.pictures import save
            from rdeepsense.plot.selection import plot_selection

            for path in save(plot_selection(model), plot):
                terminal.line(f"wrote {path}")
            if "front" in (model.selection_ or {}):
                from rdeepsense.plot.selection import plot_front

                for path in save(plot_front(model), front_beside(plot)):
                    terminal.line(f"wrote {path}")
        if json is not None:
            task_name = "classification" if classes else "regression"
            content = {
                "task": task_name,
                "rows": dict(closing.rows),
                "inputs": source.inputs,
                "left_out": dict(source.left_out),
                "findings": [one.to_json() for one in model.findings_],
                "no_number": {name: str(one) for name, one in source.strays.items()},
                closing.name: to_plain(closing.scores),
                "verdict": to_plain(closing.verdicts),
                "groups": to_plain(closing.groups),
                "known_groups": dict(closing.known),
            }
            write_json(json, content)
            if json != STDOUT:
                terminal.line(f"wrote {json}")


def _units(given: list[str], known: list[str]) -> dict[str, str]:
    """Return the unit of each column that has one."""
    units, accepted = {}, set(known)
    for text in given:
        name, sign, unit = text.rpartition("=")
        if not sign:
            raise InputError(f"--unit {text!r}: give NAME=UNIT, such as speed=m/s")
        if name not in accepted:
            raise InputError(f"--unit {text!r}: {name!r} is no input or numeric target of this fit")
        units[name] = unit
    return units


def _check_plot(plot: Path, quick: bool, given: set[str]) -> None:
    """Refuse before the training, not after it, where there is nothing to draw or draw with."""
    require("matplotlib", "report")
    if not given & ({"paper"} if quick else {"auto", "paper"}):
        raise InputError(
            f"--plot {plot}: nothing is chosen; leave --quick out, and --alpha or --drop-prob auto"
        )


def _number_or_word(option: str, text: str, words: tuple[str, ...]) -> float | str:
    if text in words:
        return text
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{option} {text!r}: give a number, or {' or '.join(words)}") from None


def _estimator(
    classes: bool, likelihood: Likelihood | None, settings: dict[str, Any]
) -> RDeepSenseRegressor | RDeepSenseClassifier:
    from rdeepsense.estimators import RDeepSenseClassifier, RDeepSenseRegressor

    if not classes:
        kind = likelihood or Likelihood.auto
        return RDeepSenseRegressor(likelihood=kind.value, **settings)
    if likelihood is not None:
        raise InputError(
            f"--likelihood {likelihood.value}: is for regression; this is classification"
        )
    return RDeepSenseClassifier(**settings)
