"""Large tables in pieces that are read, and answered, one by one: CSV and Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rdeepsense.cli.columns import report_assumed, report_extra, report_strays, some
from rdeepsense.cli.predict_table import Asked
from rdeepsense.cli.reading.blocks import BlockedCsv, NotInBlocksError
from rdeepsense.cli.reading.numbers import NAMED, Strays
from rdeepsense.cli.terminal import Terminal
from rdeepsense.data.parquet import NUMBER, ArrowTable, ParquetTable
from rdeepsense.errors import InputError, nearest, require
from rdeepsense.predict.columns import Answers, Tally
from rdeepsense.predict.folder import as_table, batches_of, rows_at_once, rows_of
from rdeepsense.predict.plan import Plan


@dataclass(frozen=True)
class Piece:
    """The answers to some rows, and the cells of these that are no numbers, or marked missing."""

    table: ArrowTable
    tally: Tally
    strays: Mapping[str, Strays] = field(default_factory=dict)
    marked: int = 0


class Pieces(Protocol):
    """A large table: `prepare` once, then `read` pieces here and `answer` them in any thread."""

    @property
    def rows(self) -> int:
        """How many rows there are, about."""

    @property
    def said(self) -> Sequence[str]:
        """What was assumed."""

    @property
    def extra(self) -> Sequence[str]:
        """Columns that are not used."""

    def prepare(self, asked: Asked, plan: Plan, memory: int) -> None:
        """Find the columns that a plan needs, and choose how many rows to read at once."""

    def read(self) -> Iterator[Any]:
        """Yield pieces as they lie in the file."""

    def answer(self, piece: Any) -> Piece:
        """Answer the rows of a piece."""


class CsvPieces:
    """Blocks of CSV."""

    def __init__(self, path: Path) -> None:
        self._csv = BlockedCsv.open(path)
        self.rows, self.said, self.extra = self._csv.rows, self._csv.said, list[str]()

    def prepare(self, asked: Asked, plan: Plan, memory: int) -> None:
        """Take texts for levels and ids, numbers for the others."""
        polars, csv, known = require("polars", "cli"), self._csv, plan.known
        _check_ids(asked.ids, csv.names)
        names = _names(plan, csv.names, asked.ids)
        levels = _levels(plan, names)
        if any(csv.kinds[name] != polars.String for name in levels):
            raise NotInBlocksError("a column of texts begins with numbers")
        if any(csv.kinds[name] == polars.Boolean for name in names):
            raise NotInBlocksError("a column of numbers begins with yes/no")
        self._numbers = [name for name in names if name not in levels]
        self._texts, self._names = [*levels, *asked.ids], names
        self._asked, self._answers, self._known = asked, plan.answers(), known
        self.extra = [name for name in csv.names if name not in {*names, *asked.ids}]
        rows = rows_at_once(memory, plan.runner, len(csv.names), 8 + len(asked.ids))
        self._bytes = int(csv.row_bytes * rows)

    def read(self) -> Iterator[bytes]:
        """Yield whole lines."""
        return self._csv.blocks(self._bytes)

    def answer(self, piece: bytes) -> Piece:
        """Parse and answer."""
        read = self._csv.read(piece, self._numbers, self._texts, self._asked.marks)
        table: Any = read.frame.to_arrow()
        found = self._answers.of(rows_of(table, self._names, self._known))
        ids = {name: table.column(name) for name in self._asked.ids}
        return Piece(as_table(found, ids), found.tally, read.strays, read.marked)


class ParquetPieces:
    """Batches of a Parquet file."""

    def __init__(self, path: Path) -> None:
        self._path, self._table = path, ParquetTable(path)
        self.rows, self.said, self.extra = self._table.rows, list[str](), list[str]()

    def prepare(self, asked: Asked, plan: Plan, memory: int) -> None:
        """Take columns as they are typed; texts that may be numbers need the whole."""
        kinds = self._table.columns
        _check_ids(asked.ids, list(kinds))
        names = _names(plan, list(kinds), asked.ids)
        levels = set(_levels(plan, names))
        for name in names:
            if kinds[name] not in (("text",) if name in levels else (NUMBER, "yes/no")):
                raise NotInBlocksError(f"the column {name!r} holds {kinds[name]}")
        if asked.marks:
            raise NotInBlocksError("--missing-mark looks at every column")
        self._names, self._ids, self._known = names, asked.ids, plan.known
        self._answers: Answers = plan.answers()
        self.extra = [name for name in kinds if name not in {*names, *asked.ids}]
        self._rows = rows_at_once(memory, plan.runner, len(names), 8 + len(asked.ids))

    def read(self) -> Iterator[Any]:
        """Yield batches of the columns that are used."""
        parquet = require("pyarrow.parquet", "cli")
        with parquet.ParquetFile(self._path, pre_buffer=False) as file:
            yield from batches_of(file, self._rows, [*self._names, *self._ids])

    def answer(self, piece: Any) -> Piece:
        """Answer a batch."""
        found = self._answers.of(rows_of(piece, self._names, self._known))
        return Piece(as_table(found, {n: piece.column(n) for n in self._ids}), found.tally)


class Said:
    """What is to be said of the cells of all pieces."""

    def __init__(self) -> None:
        self._columns: dict[str, Strays] = {}
        self._marked = 0

    def add(self, piece: Piece, before: int) -> None:
        """Add a piece, before which there were so many rows."""
        self._marked += piece.marked
        for name, one in piece.strays.items():
            old = self._columns.get(name, Strays(0, 0, ()))
            moved = ((row + before, value) for row, value in one.first)
            first = (*old.first, *moved)[:NAMED]
            self._columns[name] = Strays(old.cells + one.cells, old.filled + one.filled, first)

    def report(self, terminal: Terminal, pieces: Pieces, marks: Sequence[str]) -> None:
        """Print what was assumed, what is no number, and which columns are not used."""
        marked = [f"{self._marked:,} cells with {' or '.join(marks)} are missing"] if marks else []
        report_assumed(terminal, [*pieces.said, *marked])
        report_strays(terminal, {n: one for n, one in self._columns.items() if one.cells})
        report_extra(terminal, pieces.extra)


def _check_ids(ids: Sequence[str], columns: Sequence[str]) -> None:
    for name in ids:
        if name not in columns:
            raise InputError(
                f"--id {name!r}: there is no such column{nearest(name, columns)}; "
                f"the table has {some(columns)}"
            )


def _names(plan: Plan, columns: Sequence[str], ids: Sequence[str]) -> list[str]:
    """Return the model's inputs, which must be columns by their names, and no ids."""
    names = plan.known.names
    if names is None or not set(names) <= set(columns) or set(ids) & set(names):
        raise NotInBlocksError("the model's inputs are not columns by their names")
    return list(names)


def _levels(plan: Plan, names: Sequence[str]) -> list[str]:
    encoding = plan.known.encoding
    return [] if encoding is None else [names[own.column] for own in encoding.categories]
