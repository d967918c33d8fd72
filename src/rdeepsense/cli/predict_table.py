"""Predicting a table in memory, and what is said of any table that was predicted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdeepsense.cli.answerable import report_unanswered
from rdeepsense.cli.columns import check_known, plural, some
from rdeepsense.cli.flagged import FlaggedRows
from rdeepsense.cli.inference import load_model, model_inputs
from rdeepsense.cli.reading.table import read_table
from rdeepsense.cli.terminal import STDOUT, Terminal, new_table
from rdeepsense.cli.writing import write_table
from rdeepsense.errors import InputError
from rdeepsense.predict.columns import Wanted

if TYPE_CHECKING:
    from rich.table import Table

    from rdeepsense.data.parquet import ArrowTable
    from rdeepsense.predict.columns import Tally

SHOWN = 10


@dataclass(frozen=True)
class Asked:
    """A model by its file, what is wanted, columns to pass through, and marks of missing cells."""

    model: str
    wanted: Wanted
    ids: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


def predict_table(
    terminal: Terminal, asked: Asked, table: Path, output: Path | None, written: int = 0
) -> None:
    """Predict a table that fits into memory, whatever it is; some rows may be written already."""
    import polars as pl

    from rdeepsense.predict.columns import Answers
    from rdeepsense.predict.folder import as_table, rows_of
    from rdeepsense.predict.prepare import known_of, torch_runner

    model = load_model(asked.model)
    known = known_of(model, asked.wanted)
    read = read_table(table, asked.marks, asked.ids)
    check_known(read.frame, asked.ids, "--id")
    found = model_inputs(model, read, list(asked.ids), finite=False)
    found.report(terminal)
    X = found.values
    if isinstance(X, pl.DataFrame):
        names = X.columns
        X = rows_of(X.to_arrow(compat_level=pl.CompatLevel.oldest()), names, known)
    answer = Answers(known, asked.wanted, torch_runner(model, asked.wanted)).of(X)
    ids: dict[str, Any] = {name: read.frame[name].to_arrow() for name in asked.ids}
    predictions = as_table(answer, ids)
    check_answered(answer.tally)
    if known.reach is not None:
        terminal.line("intervals: conformal, by rows that fit set aside")
    report_tally(terminal, answer.tally)
    if output is None:
        terminal.table(first_rows(predictions.slice(0, SHOWN), predictions.num_rows))
        return
    frame: Any = pl.from_arrow(predictions)
    write_table(output, frame.slice(written), header=not written)
    report_written(terminal, output, frame.height, frame.columns)


def check_answered(tally: Tally) -> None:
    """Refuse a table of which no row has an answer."""
    if tally.missing == tally.rows > 0:
        raise InputError(
            f"missing values in all {tally.rows:,} rows, where the training rows had none; "
            "--missing mean, at fit, fills them with the column's mean"
        )


def report_tally(terminal: Terminal, tally: Tally) -> None:
    """Say which rows have no answer, and which are beyond what the model was trained on."""
    report_unanswered(terminal, tally.missing)
    if tally.infinite:
        terminal.line(f"no answer {plural(tally.infinite, 'row')}: a value is infinite")
    FlaggedRows(tally.answered, tally.flagged, dict(tally.inputs)).report(terminal)


def report_written(terminal: Terminal, output: Path, rows: int, columns: list[str]) -> None:
    """Say what was written where."""
    name = "stdout" if output == STDOUT else output
    terminal.line(f"wrote {name}: {rows:,} rows, {some(columns)}")


def first_rows(predictions: ArrowTable, rows: int) -> Table:
    """Show the first rows, and how many there are."""
    left = rows - SHOWN
    more = f"and {left:,} rows more; -o FILE writes all" if left > 0 else None
    table = new_table("Predictions", ["row", *predictions.column_names], more)
    for number, row in enumerate(predictions.to_pylist()):
        cells = ["" if cell is None else _shown(cell) for cell in row.values()]
        table.add_row(str(number), *cells)
    return table


def _shown(cell: object) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
