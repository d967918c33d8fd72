"""`rdeepsense evaluate`: scores of a model on a labelled table, and its page."""

from __future__ import annotations

import hashlib
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rdeepsense._records import to_plain
from rdeepsense.cli.check import report_findings
from rdeepsense.cli.columns import check_known, labels
from rdeepsense.cli.inference import (
    Inputs,
    answerable,
    evaluate_log,
    flagged_rows,
    labelled_rows,
    load_model,
    model_inputs,
    report_unanswered,
    rows_of,
    target_columns,
    truth_of,
)
from rdeepsense.cli.options import TABLE, JsonFile, MissingMarks, Overwrite, Quiet
from rdeepsense.cli.reading.columns import as_dates, moments_of
from rdeepsense.cli.reading.content import STDIN
from rdeepsense.cli.reading.table import Table, read_table
from rdeepsense.cli.scores import caption, judged, report_groups, score_model, score_table
from rdeepsense.cli.scores import report as print_verdicts
from rdeepsense.cli.terminal import STDOUT, Terminal, check_outputs, write_json
from rdeepsense.errors import InputError, require

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from rdeepsense.arrays import Booleans
    from rdeepsense.estimators.loading import Estimator
    from rdeepsense.reporting.verdict import Verdict


# --------------------------------------------------------------------------------------------------
# `rdeepsense evaluate --report page.html`: the report page
# --------------------------------------------------------------------------------------------------


def time_column(table: Table, named: str | None, taken: list[str]) -> str | None:
    """Return the column of times: the one named, or the only column of dates that is free."""
    if named is not None:
        check_known(table.frame, [named], "--time")
        return named
    free = [name for name in table.frame.columns if name not in taken]
    found = [name for name in free if _is_dates(table.frame[name])]
    return found[0] if len(found) == 1 else None


def times(table: Table, name: str, chosen: Booleans) -> pl.Series:
    """Return the times of some rows, called as their column is; durations are in seconds."""
    import polars as pl

    return moments_of(table.frame, name).filter(pl.Series(chosen))


def training_pair(
    model: Estimator, path: Path | None, targets: list[str], marks: list[str]
) -> tuple[Inputs, NDArray[Any]] | None:
    """Read the table of --train as `evaluate` reads the other one."""
    if path is None:
        return None
    read = read_table(path, marks)
    check_known(read.frame, targets, "--target")
    read = labelled_rows(model, read, targets)
    values = model_inputs(model, read, targets).values
    chosen = answerable(model, values)
    return rows_of(values, chosen), truth_of(model, read, targets)[chosen]


def write_report(
    terminal: Terminal,
    page: Path,
    model: Estimator,
    pair: tuple[Any, NDArray[Any]],
    groups: pl.Series | None,
    time: pl.Series | None,
    train: Any,
    file: Path,
    about: str,
    row_numbers: NDArray[Any] | None = None,
) -> dict[str, Verdict]:
    """Write the page, and print its verdicts; returns them."""
    from rdeepsense.reporting.report import report

    called = ", ".join(model.fitted_.target.names or ())
    of = f" of {called}" if called else ""
    found = report(
        model,
        *pair,
        groups=groups,
        time=time,
        train=train,
        title=f"{file.name}: can you trust its predictions{of}?",
        about=about,
        row_numbers=row_numbers,
    )
    found.save(page)
    print_verdicts(terminal, found.verdicts)
    terminal.line(f"wrote {page}")
    return found.verdicts


def about(table: Path, name: str) -> str:
    """Say which rows a page is about, by the digest of their file, and when it was made."""
    digest = ""
    if table != STDIN:
        with table.open("rb") as file:
            digest = f" (SHA-256 {hashlib.file_digest(file, 'sha256').hexdigest()[:16]})"
    return f"Rows of {name}{digest}, {date.today().isoformat()}."


def _is_dates(series: pl.Series) -> bool:
    import polars as pl

    parsed = as_dates(series)
    if parsed is None or parsed[1] or parsed[0].null_count():
        return False
    return parsed[0].dtype == pl.Date or isinstance(parsed[0].dtype, pl.Datetime)


# --------------------------------------------------------------------------------------------------
# `rdeepsense evaluate`: metrics on a labeled table
# --------------------------------------------------------------------------------------------------


def evaluate(
    model: Annotated[Path, typer.Argument(help="Model file written by fit.")],
    table: Annotated[Path, typer.Argument(help=f"Table with inputs and targets: {TABLE}.")],
    target: Annotated[
        list[str] | None,
        typer.Option(help="Column with the truth; by default those that the model file names."),
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column (user, record) that standard errors are between.")
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--report", help="Write a page about the model to this HTML file."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(help="Column of times, to find a drift by; by default the only one of dates."),
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(help="The table of the fit: boosted trees are fitted on it and compared."),
    ] = None,
    missing_mark: MissingMarks = None,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
    json: JsonFile = None,
) -> None:
    """Score a model's predictions and their uncertainty on a labelled table."""
    # Late: --help of any command answers without numpy.
    from rdeepsense.data.check import check, check_seen
    from rdeepsense.predict.prepare import predict_many

    terminal = Terminal(quiet, json)
    outputs = {"--json": json, "--report": page}
    check_outputs(outputs, inputs=(model, table), overwrite=overwrite)
    if page is not None:
        require("matplotlib", "report")
    estimator = load_model(model)
    if estimator.fitted_.recipe is not None:
        if time is not None or train is not None:
            raise InputError("--time, --train: a log has its time; its windows take no table")
        evaluate_log(terminal, estimator, table, target, groups, missing_mark, json, page, model)
        return
    targets = target_columns(estimator, target)
    read = read_table(table, missing_mark or [])
    check_known(read.frame, targets, "--target")
    check_known(read.frame, [groups] if groups else [], "--groups")
    read = labelled_rows(estimator, read, targets)
    classes = hasattr(estimator, "classes_")
    taken = [*targets, *([groups] if groups else [])]
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    timed = time_column(read, time, [*taken, *names])
    found = model_inputs(estimator, read, [*taken, *([timed] if timed else [])])
    found.report(terminal)
    answered = answerable(estimator, found.values)
    report_unanswered(terminal, int((~answered).sum()))
    inputs, y = rows_of(found.values, answered), truth_of(estimator, read, targets)[answered]
    group = labels(read.frame, groups, "--groups")[answered] if groups else None
    dist = predict_many(estimator, inputs)
    scores = score_model(estimator, dist, y, targets, group)
    flagged_rows(estimator, inputs).report(terminal)
    title = f"Figures on {len(y):,} rows of {read.name}"
    terminal.table(score_table(title, scores, caption(classes, groups)))
    figures = report_groups(terminal, dist, y, targets, groups, group)
    when = times(read, timed, answered) if timed else None
    pair = training_pair(estimator, train, targets, missing_mark or [])
    if pair is not None:
        own = check(*pair, task="classification" if classes else "regression")
        report_findings(terminal, own.findings)
    if page is None:
        from rdeepsense.reporting.baselines import simple_models, trees_of
        from rdeepsense.reporting.verdict import Constant

        trees = None if pair is None else trees_of(simple_models(estimator, pair, inputs))
        known, status = Constant.of_model(estimator.fitted_), estimator.status(inputs)
        findings = estimator.findings_
        if pair is not None:
            findings = findings or own.findings  # of models that were fitted without the check
            findings += check_seen(estimator.as_rows(inputs), estimator.as_rows(pair[0]))
        verdicts = judged(dist, y, targets, known, group, when, status, trees, findings)
        print_verdicts(terminal, verdicts)
    else:
        import numpy as np
        import polars as pl

        verdicts = write_report(
            terminal,
            page,
            estimator,
            (inputs, y),
            None if group is None else pl.Series(groups, group.tolist()),
            when,
            pair,
            model,
            about(table, read.name),
            np.flatnonzero(answered),
        )
    if json is not None:
        content = {
            "task": "classification" if classes else "regression",
            "rows": len(y),
            "figures": to_plain(scores),
            "findings": [one.to_json() for one in estimator.findings_],
            "verdict": to_plain(verdicts),
            "groups": to_plain(figures),
        }
        write_json(json, content)
        if json != STDOUT:
            terminal.line(f"wrote {json}")
