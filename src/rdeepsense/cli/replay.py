"""`rdeepsense replay`: a stream that has been, as the frozen and the live model would meet it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rdeepsense._files import write_whole
from rdeepsense._progress import progress_for
from rdeepsense.cli.columns import check_known
from rdeepsense.cli.inference import (
    answerable,
    labelled_windows,
    load_model,
    model_inputs,
    report_unanswered,
    rows_of,
    target_columns,
    truth_of,
)
from rdeepsense.cli.options import TABLE, JsonFile, MissingMarks, Overwrite, Quiet
from rdeepsense.cli.reading.columns import in_order, times_of
from rdeepsense.cli.reading.table import Table, read_table
from rdeepsense.cli.terminal import (
    STDOUT,
    Terminal,
    check_outputs,
    rich_table,
    stoppable,
    write_json,
)
from rdeepsense.errors import InputError, require, share

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rdeepsense.estimators.loading import Estimator
    from rdeepsense.live.replay import Replayed

WAYS = ("frozen", "live")


def replay(
    model: Annotated[Path, typer.Argument(help="Model file written by fit.")],
    table: Annotated[Path, typer.Argument(help=f"Stream with inputs and targets: {TABLE}.")],
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="Column with the actual value; default: those that the model file names."
        ),
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Column of times to order rows by; else as in the file.")
    ] = None,
    label_every: Annotated[
        int, typer.Option(min=1, help="Reveal every Nth label to the live model.")
    ] = 10,
    coverage: Annotated[float, typer.Option(help="What intervals, or sets, promise.")] = 0.9,
    report: Annotated[
        Path | None, typer.Option(help="Write a page with charts over time to this file.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="Write what was learnt to this file; model.live(state=...) goes on."),
    ] = None,
    missing_mark: MissingMarks = None,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
    json: JsonFile = None,
) -> None:
    """Replay recorded data: the fixed model beside one that learns from every Nth label.

    Each row is predicted before its own label comes. Rows without a label are predicted, neither
    learnt from nor judged.
    """
    terminal = Terminal(quiet, json)
    if not 0 < coverage < 1:
        raise InputError(f"--coverage {coverage}: must lie between 0 and 1{share(coverage)}")
    if report is not None:
        require("matplotlib", "report")
    outputs = {"--report": report, "--state": state, "--json": json}
    check_outputs(outputs, inputs=(model, table), overwrite=overwrite)
    estimator = load_model(model)
    if not hasattr(estimator, "live"):
        raise InputError(f"{model}: a {type(estimator).__name__} cannot be live; RDeepSense can")
    if estimator.fitted_.recipe is not None:
        if time is not None:
            raise InputError("--time: the model file says which column of a log is its time")
        inputs, y, targets = labelled_windows(terminal, estimator, table, target, missing_mark)
        times = None
    else:
        targets = target_columns(estimator, target)
        inputs, y, times = _rows(terminal, estimator, table, targets, time, missing_mark)
    with stoppable(lambda: "nothing is kept; the same command begins again"):
        told = _replayed(estimator, inputs, y, label_every, coverage, state, quiet)
    told = replace(told, times=times, timed_by=time or "")

    from rdeepsense.reporting.replay import replay_page, replay_table, replay_verdict

    unit = _unit(estimator)
    terminal.table(rich_table(replay_table(told, WAYS, unit)))
    said = replay_verdict(told, unit)
    for place, text in enumerate([said.headline, *said.sentences]):
        terminal.line(f"{'verdict' if place == 0 else '':10}{text}")
    if report is not None:
        order = f"in the order of {time}" if time else "in the order of the file"
        about = (
            f"{table.name}: {len(y):,} rows {order}, target {', '.join(targets)}. The live model "
            f"learns from {'every label' if label_every == 1 else f'one label of {label_every}'}, "
            "revealed after the row was predicted; the frozen model learns nothing."
        )
        title = f"{', '.join(targets)}: a stream replayed"
        write_whole(report, replay_page(title, about, told, unit))
    if json is not None:
        write_json(json, _figures(told, label_every))
    for path in (report, state, json):
        if path is not None and path != STDOUT:
            terminal.line(f"wrote {path}")


def _unit(model: Estimator) -> str:
    """Return the unit that all targets share, if any."""
    units = set(model.fitted_.target.units or ())
    return units.pop() if len(units) == 1 else ""


def _rows(
    terminal: Terminal,
    estimator: Estimator,
    table: Path,
    targets: list[str],
    time: str | None,
    missing_mark: list[str] | None,
) -> tuple[Any, NDArray[np.generic], NDArray[Any] | None]:
    """Read the rows that can be answered, in order, with their actual values and times."""
    read = read_table(table, missing_mark or [])
    check_known(read.frame, targets, "--target")
    if time is not None:
        check_known(read.frame, [time], "--time")
        read = replace(read, frame=in_order(read.frame, time))
    found = model_inputs(estimator, read, [*targets, *([time] if time else [])])
    found.report(terminal)
    answered = answerable(estimator, found.values)
    report_unanswered(terminal, int((~answered).sum()))
    truth = _truth(estimator, read, targets)[answered]
    times = None if time is None else times_of(read.frame, time).to_numpy()[answered]
    return rows_of(found.values, answered), truth, times


def _replayed(
    model: Any, X: Any, y: NDArray[np.generic], every: int, coverage: float,
    state: Path | None, quiet: bool,
) -> Replayed:  # fmt: skip
    from rdeepsense.live.replay import replay

    live, progress = model.live(coverage), progress_for(not quiet)
    progress.start("replay", len(y), 0)
    try:
        found = replay(
            model, X, y, every, live=live, seen=lambda rows: progress.update(rows, f"row {rows:,}")
        )
    finally:
        progress.close()
    if state is not None:
        live.save(state)
    return found


def _truth(model: Estimator, read: Table, targets: list[str]) -> NDArray[np.generic]:
    """Return the truth of each row, NaN or None where the table has none."""
    import numpy as np
    import polars as pl

    missing = pl.any_horizontal(
        pl.col(name).is_null()
        | (pl.col(name).is_nan().fill_null(False) if read.frame[name].dtype.is_float() else False)
        for name in targets
    )
    known = (~read.frame.select(missing.alias("missing")).to_series()).to_numpy()
    if not known.any():
        raise InputError(f"--target {targets[0]!r}: no row has a label")
    labels = truth_of(model, replace(read, frame=read.frame.filter(known)), targets)
    if known.all():
        return labels
    numbers = labels.dtype.kind == "f"
    shape = (len(known), *labels.shape[1:])
    full: NDArray[Any] = np.full(shape, np.nan) if numbers else np.full(shape, None, object)
    full[known] = labels
    return full


def _figures(told: Replayed, every: int) -> dict[str, object]:
    figures = {
        way: {key: _finite(value) for key, value in told.ways[way].figures().items()}
        for way in WAYS
    }
    if told.is_classes:
        for own in figures.values():
            wrong = own.pop("error")
            own["accuracy"] = None if wrong is None else 1 - wrong
    return {
        "task": "classification" if told.is_classes else "regression",
        "rows": len(told.labelled),
        "with_truth": int(told.labelled.sum()),
        "label_every": every,
        "labels": int(told.observed.sum()),
        "promised": told.coverage,
        "alarm_row": told.alarm,
        "figures": figures,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
