"""Predicting a table that is larger than memory: in blocks of CSV, or row groups of Parquet."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rdeepsense._files import replacing
from rdeepsense._progress import Progress, progress_for
from rdeepsense.cli.pieces import CsvPieces, ParquetPieces, Piece, Pieces, Said
from rdeepsense.cli.predict_table import (
    SHOWN,
    Asked,
    check_answered,
    first_rows,
    predict_table,
    report_tally,
    report_written,
)
from rdeepsense.cli.reading.blocks import NotInBlocksError, look_at
from rdeepsense.cli.terminal import STDOUT, Terminal
from rdeepsense.predict.columns import Tally
from rdeepsense.predict.folder import MIB, ParquetSink, Sink, TextSink, in_order
from rdeepsense.predict.plan import Plan, Preparation

LARGE = 16 * MIB  # bytes of a file from which on it is not read at once
THREADS = 2


def is_large(table: Path) -> bool:
    """Tell whether a table had better be read in pieces."""
    return table.is_file() and table.stat().st_size >= LARGE


def predict_stream(
    terminal: Terminal,
    asked: Asked,
    table: Path,
    output: Path | None,
    memory: int,
    runner: str,
    quiet: bool,
) -> None:
    """Predict a large table piece by piece, or at once where it cannot be divided."""
    tally = Tally()
    try:
        columnar, rows = look_at(table)
        # The plan first: while it is made, this process has no library in its memory yet.
        plan = Preparation(asked.model, asked.wanted, runner, rows).plan()
        pieces: Pieces = ParquetPieces(table) if columnar else CsvPieces(table)
        pieces.prepare(asked, plan, memory * MIB)
        terminal.line(f"runs      {plan.said}")
        _predict(terminal, asked, pieces, plan, output, tally, progress_for(not quiet))
    except NotInBlocksError as reason:
        terminal.line(f"read      at once, whatever memory that takes: {reason}")
        # Of stdout, what is written cannot be taken back; it is what the whole would say, too.
        predict_table(terminal, asked, table, output, tally.rows if output == STDOUT else 0)


def _predict(
    terminal: Terminal,
    asked: Asked,
    pieces: Pieces,
    plan: Plan,
    output: Path | None,
    tally: Tally,
    progress: Progress,
) -> None:
    """Answer all pieces in order, and count rows in `tally` as they are written."""
    said, first = Said(), None
    progress.start("rows", pieces.rows, 0)
    try:
        with _opened(output) as sink:

            def answer(piece: Any) -> tuple[Any, Piece]:
                made = pieces.answer(piece)
                return sink.encode(made.table), made

            for encoded, made in in_order(answer, pieces.read(), THREADS):
                first = made.table.slice(0, SHOWN) if first is None else first
                sink.write(encoded)
                said.add(made, tally.rows)
                tally.add(made.tally)
                progress.update(min(tally.rows, pieces.rows), "")
            check_answered(tally)
    finally:
        progress.close()
    assert first is not None
    said.report(terminal, pieces, asked.marks)
    if plan.known.reach is not None:
        terminal.line("intervals: conformal, by rows that fit set aside")
    report_tally(terminal, tally)
    if output is None:
        terminal.table(first_rows(first, tally.rows))
    else:
        report_written(terminal, output, tally.rows, first.column_names)


@contextmanager
def _opened(output: Path | None) -> Iterator[Sink]:
    """Open what tables of answers are written to; nothing, where none was asked for."""
    if output is None:
        yield TextSink(len)
    elif output == STDOUT:
        yield TextSink(lambda data: sys.stdout.write(data.decode()))
    else:
        with replacing(output) as file:
            if output.suffix.lower() == ".parquet":
                with closing(ParquetSink(file)) as sink:
                    yield sink
            else:
                yield TextSink(file.write, "\t" if output.suffix.lower() == ".tsv" else ",")
