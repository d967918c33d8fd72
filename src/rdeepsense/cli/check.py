"""`rdeepsense check`: faults of a table that make a model look better than it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rdeepsense.cli.columns import (
    InspectedColumns,
    TaskKind,
    check_known,
    check_roles,
    decide,
    inspect,
    kind_of,
    labels,
    numeric_targets,
    some,
)
from rdeepsense.cli.options import TABLE, ForcedInputs, JsonFile, MissingMarks, Overwrite, Quiet
from rdeepsense.cli.reading.columns import as_dates, source_of
from rdeepsense.cli.reading.table import read_table, read_targets, with_truth
from rdeepsense.cli.terminal import STDOUT, Terminal, check_outputs, new_table, write_json

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from rdeepsense.data.check_table import Task
    from rdeepsense.data.findings import CheckReport, Finding


def check(
    tables: Annotated[list[Path], typer.Argument(help=f"{TABLE}; several are checked in turn.")],
    target: Annotated[
        list[str] | None, typer.Option(help="Column to predict; repeat for several.")
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column (user, record) whose rows must stay together.")
    ] = None,
    task: Annotated[
        TaskKind, typer.Option(help="auto: classes for text or yes/no targets.")
    ] = TaskKind.auto,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Exclude this column from the inputs; repeatable.")
    ] = None,
    inputs: ForcedInputs = None,
    missing_mark: MissingMarks = None,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
    json: JsonFile = None,
) -> None:
    """Look for leaks, copies, entities and other faults of a table before a fit."""
    terminal = Terminal(quiet, json)
    targets, left, forced = target or [], ignore or [], inputs or []
    check_roles(targets, groups, left, forced)
    check_outputs({"--json": json}, inputs=tuple(tables), overwrite=overwrite)
    content = []
    for place, path in enumerate(tables):
        if place:
            terminal.line()
        terminal.line(f"table     {path}")
        read = read_table(path, missing_mark or [])
        for option, names in (
            ("--target", targets),
            ("--groups", [groups] if groups else []),
            ("--ignore", left),
            ("--input", forced),
        ):
            check_known(read.frame, names, option)
        read = with_truth(read, targets) if targets else read
        frame, read_as = read_targets(read, targets)
        aside = [*targets, *([groups] if groups else []), *left]
        found = inspect(frame, aside, forced, (), read.comma_separated, read.said, read_as)
        found.report(terminal, targets or ["none: only the other columns are checked"])
        y, classes = None, False
        if targets:
            kinds = {name: kind_of(frame[name]) for name in targets}
            classes, why = decide(task, kinds)
            terminal.line(f"task      {'classification' if classes else 'regression'}: {why}")
            y = labels(frame, targets[0]) if classes else numeric_targets(frame, targets)
        group = labels(frame, groups, "--groups") if groups else None
        report = check_columns(found, aside, y, classes, group)
        report_findings(terminal, report.findings)
        content.append({"table": str(path), **report.to_json()})
    if json is not None:
        write_json(json, {"tables": content})
        if json != STDOUT:
            terminal.line(f"wrote {json}")


def check_columns(
    found: InspectedColumns,
    aside: Sequence[str],
    y: NDArray[Any] | None,
    classes: bool,
    groups: NDArray[Any] | None,
    time: pl.Series | None = None,
) -> CheckReport:
    """Check the inputs of a table, and the columns that are none for their order.

    `aside` are columns that options gave another role than that of an input.
    """
    import polars as pl

    from rdeepsense.data.check import check as find

    apart, columns = set(aside), list[pl.Series]()
    for series in found.frame.iter_columns():
        if series.name in apart or source_of(series.name) in found.left_out:
            continue
        if series.name not in found.left_out:
            columns.append(series)
        elif (parsed := as_dates(series)) is not None:
            times = parsed[0]
            if times.dtype == pl.Time:
                times = times.cast(pl.Int64) / 1e9
            columns.append(times.alias(series.name))
        elif series.dtype.is_integer():
            columns.append(series)
    task: Task = "classification" if classes else "regression"
    table = pl.DataFrame(columns)
    return find(table, y, groups, time=time, task=task).without(found.left_out)


def report_findings(terminal: Terminal, findings: Sequence[Finding]) -> None:
    """Print what was found as a table: severity, columns, and what it means with its cure."""
    if not findings:
        terminal.line("findings  none")
        return
    table = new_table("Findings", ["severity", "columns", "finding and cure"])
    for column in table.columns:
        column.justify = "left"
    table.columns[2].overflow = "fold"
    for one in findings:
        names = [name if name.isprintable() else repr(name) for name in one.columns]
        option = f" ({one.option})" if one.option else ""
        table.add_row(one.severity, some(names), f"{one.sentence}\n{one.cure}{option}")
    terminal.table(table)
