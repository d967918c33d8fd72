"""`rdeepsense evaluate --report page.html`: the page about a model, from its file and a table."""

from __future__ import annotations

import hashlib
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdeepsense.cli.answerable import answerable, rows_of
from rdeepsense.cli.columns import check_known
from rdeepsense.cli.inference import Inputs, model_inputs
from rdeepsense.cli.labelled import labelled_rows, truth_of
from rdeepsense.cli.reading.content import STDIN
from rdeepsense.cli.reading.dates import as_dates
from rdeepsense.cli.reading.table import Table, read_table
from rdeepsense.cli.reading.times import moments_of
from rdeepsense.cli.verdict import report as print_verdicts

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from rdeepsense.arrays import Booleans
    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.estimators.loading import Estimator
    from rdeepsense.reporting.verdict import Verdict


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
