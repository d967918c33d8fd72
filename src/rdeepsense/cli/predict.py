"""`rdeepsense predict`: a distribution for each row of a table or of a folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from rdeepsense._files import Remote, path_or_url, replacing
from rdeepsense._progress import Progress, long_progress, progress_for
from rdeepsense.cli.columns import (
    check_known,
    plural,
    report_assumed,
    report_extra,
    report_strays,
    some,
)
from rdeepsense.cli.inference import (
    FlaggedRows,
    load_model,
    model_inputs,
    predict_log,
    reads_logs,
    report_unanswered,
)
from rdeepsense.cli.options import (
    TABLE,
    Address,
    EngineName,
    EngineOption,
    MissingMarks,
    Overwrite,
    Quiet,
    engine_asked,
)
from rdeepsense.cli.reading.columns import NAMED, POINT, Strays, numbers_in
from rdeepsense.cli.reading.content import PACKED, kind_of
from rdeepsense.cli.reading.table import read_table
from rdeepsense.cli.reading.text import DIALECT_PROBE as PROBE
from rdeepsense.cli.reading.text import MARKS, as_utf8, assumed, dialect_of, without_sentinels
from rdeepsense.cli.terminal import (
    STDOUT,
    Terminal,
    check_outputs,
    check_suffix,
    in_options,
    new_table,
    stoppable,
    write_table,
)
from rdeepsense.data.parquet import NUMBER, ArrowTable, ParquetTable
from rdeepsense.errors import InputError, RDeepSenseError, nearest, require
from rdeepsense.predict.columns import FURTHER, STATUS, Answers, OutputColumns, Tally
from rdeepsense.predict.folder import (
    MIB,
    ParquetSink,
    Sink,
    TextSink,
    as_table,
    batches_of,
    in_order,
    input_names,
    rows_at_once,
    rows_of,
)
from rdeepsense.predict.plan import Plan, Preparation

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from rdeepsense.engines import Engine
    from rdeepsense.predict.folder import Place


# --------------------------------------------------------------------------------------------------
# CSV that is larger than memory, read in blocks of whole lines
#
# The beginning of the file decides how it is divided, as it does for a table in memory, and every
# block is read by those rules. What only the whole file could decide, such as another encoding or
# decimal commas, is not guessed at: `NotInBlocksError` says so, and the table has to be read whole.
# --------------------------------------------------------------------------------------------------

END, QUOTE = b"\n", b'"'
NO_CSV = "it is packed, or no CSV"
UNLIKE = "a line is not like the header"


class NotInBlocksError(RDeepSenseError):
    """A table that has to be read whole, and why."""


def look_at(path: Path) -> tuple[bool, int]:
    """Tell whether a file is Parquet, else CSV, and about how many rows it has.

    It takes no library to see this; rows of Parquet are guessed to have 50 bytes.
    """
    with path.open("rb") as file:
        head = file.read(PROBE)
    if head.startswith(b"PAR1"):
        return True, path.stat().st_size // 50
    if any(head.startswith(magic) for magic in PACKED) or kind_of(str(path), head) != "CSV":
        raise NotInBlocksError(NO_CSV)
    return False, path.stat().st_size * head.count(END) // len(head)


@dataclass(frozen=True)
class Block:
    """The columns of some rows: inputs as floats, other texts as they are.

    `strays` says of every column of numbers how many cells are filled, and which are no numbers;
    `marked` is how many cells held a further mark of missing values.
    """

    frame: pl.DataFrame
    strays: dict[str, Strays]
    marked: int


@dataclass(frozen=True)
class BlockedCsv:
    """A CSV file and how it is divided."""

    path: Path
    start: int  # the byte at which rows begin
    separator: str
    names: list[str]
    kinds: dict[str, Any]  # of each column, by the first rows
    said: list[str]
    row_bytes: float  # of the first rows, on average

    @classmethod
    def open(cls, path: Path) -> BlockedCsv:
        """Look at the beginning of a file; anything unusual about it is `NotInBlocksError`."""
        with path.open("rb") as file:
            head = file.read(PROBE)
        try:
            return cls._of_head(path, head)
        except InputError as error:  # which may be for want of the rest
            raise NotInBlocksError(str(error)) from error

    @classmethod
    def _of_head(cls, path: Path, head: bytes) -> BlockedCsv:
        whole = head[: head.rfind(END) + 1]
        text, encoding = as_utf8(str(path), whole)
        if encoding is not None or END not in text:
            raise NotInBlocksError("it is not UTF-8 with lines")
        found = dialect_of(str(path), text)
        header, _, rows = found.data.partition(END)
        if not text.endswith(found.data) or header.count(QUOTE) % 2 or len(found.names) < 2:
            raise NotInBlocksError("its header is unusual")
        polars = require("polars", "cli")
        try:
            frame = polars.read_csv(
                found.data,
                separator=found.separator,
                null_values=list(MARKS),
                infer_schema_length=None,
            )
        except polars.exceptions.PolarsError as error:
            raise NotInBlocksError(UNLIKE) from error
        if frame.width != len(found.names) or not frame.height:
            raise NotInBlocksError("its header is unusual")
        kinds = dict(zip(found.names, frame.dtypes, strict=True))
        start = len(whole) - len(rows)
        row = len(rows) / frame.height
        return cls(path, start, found.separator, found.names, kinds, assumed(found, None), row)

    @property
    def rows(self) -> int:
        """How many rows there are, about."""
        return int((self.path.stat().st_size - self.start) / self.row_bytes)

    def blocks(self, size: int) -> Iterator[bytes]:
        """Yield whole lines, about so many bytes at a time; no empty ones at the end."""
        with self.path.open("rb") as file:
            file.seek(self.start)
            rest, held = b"", b""
            while piece := file.read(size):
                piece = rest + piece
                cut = _last_end(piece)
                rest = piece[cut:]
                if cut:
                    if held:
                        yield held
                    held = piece[:cut]
            held += rest
            if held.strip():
                yield held.rstrip(b"\r\n") + END

    def read(
        self, block: bytes, numbers: Sequence[str], texts: Sequence[str], sentinels: Sequence[str]
    ) -> Block:
        """Read some columns of a block: numbers as floats, texts without space around."""
        _check_utf8(block)
        used = [*numbers, *texts]
        # A short row is known by a last column that lacks its value.
        last = self.names[-1] if self.names[-1] not in used else None
        strays: dict[str, Strays] = {}
        polars = require("polars", "cli")
        try:
            frame = self._parsed(block, numbers, [*used, *([last] if last else [])])
        except polars.exceptions.PolarsError as error:
            if "could not parse" not in str(error):
                raise NotInBlocksError(UNLIKE) from error
            frame = self._parsed(block, (), [*used, *([last] if last else [])])
            frame, strays = self._with_numbers(frame, numbers)
        if frame[self.names[-1]].null_count() and not self._is_even(block, frame.height):
            raise NotInBlocksError(UNLIKE)
        frame = frame.select(used).with_columns(polars.selectors.string().str.strip_chars())
        gaps = dict(zip(used, frame.null_count().row(0), strict=True))
        for name in numbers:
            if name not in strays:
                strays[name] = Strays(0, frame.height - gaps[name], ())
        frame, marked = without_sentinels(frame, sentinels)
        return Block(frame, strays, marked)

    def _is_even(self, block: bytes, rows: int) -> bool:
        """Tell whether every line has as many separators as the header, where none is quoted."""
        wanted = rows * (len(self.names) - 1)
        return QUOTE not in block and block.count(self.separator.encode()) == wanted

    def _parsed(self, block: bytes, numbers: Sequence[str], used: Sequence[str]) -> pl.DataFrame:
        polars = require("polars", "cli")
        floats = set(numbers)
        schema = {
            f"column_{k + 1}": polars.Float64 if name in floats else polars.String
            for k, name in enumerate(self.names)
        }
        place = {name: f"column_{k + 1}" for k, name in enumerate(self.names)}
        frame: pl.DataFrame = polars.read_csv(
            block,
            has_header=False,
            schema=schema,
            columns=[place[name] for name in used],
            separator=self.separator,
            null_values=list(MARKS),
        )
        return frame.select(polars.col(place[name]).alias(name) for name in used)

    def _with_numbers(
        self, frame: pl.DataFrame, numbers: Sequence[str]
    ) -> tuple[pl.DataFrame, dict[str, Strays]]:
        """Read texts as numbers with decimal points; cells that are none are missing."""
        polars = require("polars", "cli")
        found = numbers_in(frame.select(numbers), self.separator == ",", most=1.0)
        empty = [name for name, text in found.texts.items() if text == ""]
        read = {*found.columns, *empty}
        if any(way != POINT for way in found.read_as.values()) or read != set(numbers):
            raise NotInBlocksError("its numbers are not written with decimal points")
        gaps = [polars.lit(None).cast(polars.Float64).alias(name) for name in empty]
        return frame.with_columns(*found.columns.values(), *gaps), found.strays


def _last_end(piece: bytes) -> int:
    """Return the place after the last line that ends outside of quotes; 0 where none does."""
    cut = piece.rfind(END) + 1
    quotes = piece.count(QUOTE, 0, cut)
    while cut and quotes % 2:
        before = piece.rfind(END, 0, cut - 1) + 1
        quotes -= piece.count(QUOTE, before, cut)
        cut = before
    return cut


def _check_utf8(block: bytes) -> None:
    if block.isascii():
        return
    try:
        block.decode()
    except UnicodeDecodeError as error:
        raise NotInBlocksError("it is not UTF-8") from error


# --------------------------------------------------------------------------------------------------
# `rdeepsense predict`: a distribution for each row of a table or of a folder
# --------------------------------------------------------------------------------------------------

# --------------------------------------------------------------------------------------------------
# Prediction of a table in memory, and the summary of any table
# --------------------------------------------------------------------------------------------------

SHOWN = 10


@dataclass(frozen=True)
class Asked:
    """A model by its file, what is wanted, columns to pass through, and marks of missing cells."""

    model: str
    wanted: OutputColumns
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
    found = model_inputs(model, read, [*asked.ids, *(known.targets or ())], finite=False)
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


# --------------------------------------------------------------------------------------------------
# Chunks of large CSV and Parquet tables
# --------------------------------------------------------------------------------------------------


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
        self.extra = _extra(plan, names, csv.names, asked.ids)
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
        self.extra = _extra(plan, names, list(kinds), asked.ids)
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


def _extra(
    plan: Plan, names: Sequence[str], columns: Sequence[str], ids: Sequence[str]
) -> list[str]:
    """Return the columns that are neither inputs nor ids, nor the model's targets."""
    taken = {*names, *ids, *(plan.known.targets or ())}
    return [name for name in columns if name not in taken]


def _levels(plan: Plan, names: Sequence[str]) -> list[str]:
    encoding = plan.known.encoding
    return [] if encoding is None else [names[own.column] for own in encoding.categories]


# --------------------------------------------------------------------------------------------------
# Prediction of a table that is larger than memory
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Prediction of a folder of Parquet files
# --------------------------------------------------------------------------------------------------

ROW_BYTES, MANY = 50, 1_000_000_000
KEPT = "finished files are kept in {}; the same command goes on from there"


@dataclass(frozen=True)
class FolderOptions:
    """How a folder is predicted."""

    memory: int  # MiB
    runner: str
    engine: Engine | None  # None is this process
    overwrite: bool
    quiet: bool


def predict_folder(
    terminal: Terminal, asked: Asked, source: Place, target: Place | None, options: FolderOptions
) -> None:
    """Predict every Parquet file of a folder that is not predicted yet."""
    from rdeepsense.data.parquet import ParquetTable
    from rdeepsense.predict.folder import predict_shards, shards_of, sources_of

    _check_target(source, target)
    assert target is not None
    shown = target
    if options.engine is not None:  # other processes may stand elsewhere
        asked = replace(asked, model=str(_absolute(path_or_url(asked.model))))
        source, target = _absolute(source), _absolute(target)
    # The plan first: while it is made, this process has no library in its memory yet.
    rows = _rows_about(source)
    plan = Preparation(asked.model, asked.wanted, options.runner, rows).plan()
    table = ParquetTable(str(source))
    for name in asked.ids:
        if name not in table.columns:
            raise InputError(
                f"--id {name!r}: there is no such column{nearest(name, table.columns)}; "
                f"the files have {some(list(table.columns))}"
            )
    names = input_names(plan.known, list(table.columns), asked.ids)
    report_extra(terminal, _extra(plan, names, list(table.columns), asked.ids))
    rows = rows_at_once(options.memory * MIB, plan.runner, len(names), 8 + len(asked.ids))
    engine = options.engine
    if isinstance(target, Path):
        target.mkdir(parents=True, exist_ok=True)
    threads = THREADS if engine is None else 1
    shards = shards_of(sources_of(table), target, plan, asked.ids, rows, threads)
    terminal.line(f"runs      {plan.said}; {rows:,} rows at a time")
    with stoppable(lambda: KEPT.format(shown)):
        done = predict_shards(shards, engine, long_progress(options.quiet), options.overwrite)
    report_tally(terminal, done.tally)
    there = f", {done.kept:,} of them there already" if done.kept else ""
    terminal.line(f"wrote {shown}: {table.rows:,} rows in {done.shards:,} files{there}")


def _absolute(place: Place) -> Place:
    return place if isinstance(place, Remote) else place.resolve()


def _rows_about(source: Place) -> int:
    """Guess the rows of a folder by its size, at 50 bytes each; of a URL there are many."""
    if isinstance(source, Remote):
        return MANY
    return sum(file.stat().st_size for file in source.glob("*.parquet")) // ROW_BYTES


def _check_target(source: Place, target: Place | None) -> None:
    """Refuse a target that is none, or is the source."""
    if target is None or target == STDOUT:
        raise InputError("--output: a folder of Parquet files needs another folder to write to")
    if isinstance(target, Remote) or isinstance(source, Remote):
        if str(source).rstrip("/") == str(target).rstrip("/"):
            raise InputError(f"--output {target}: would overwrite the input; give another folder")
        return
    if target.exists() and not target.is_dir():
        raise InputError(f"--output {target}: is a file; give a folder")
    if source.resolve() == target.resolve():
        raise InputError(f"--output {target}: would overwrite the input; give another folder")


# --------------------------------------------------------------------------------------------------
# `rdeepsense predict`: a distribution for each row
# --------------------------------------------------------------------------------------------------

OPTIONS = {
    "coverage": "--coverage",
    "quantiles": "--quantiles",
    "with": "--with",
    "accept": "--accept",
    "id": "--id",
    "memory": "--memory",
    "runner": "--runner",
}


class RunnerName(StrEnum):
    """What may run a model."""

    auto = "auto"
    c = "C"
    torch = "torch"


def predict(
    model: Annotated[str, typer.Argument(help="Model file written by fit; a path or a URL.")],
    table: Annotated[
        str,
        typer.Argument(help=f"Table with the model's inputs: {TABLE}; or a folder of Parquet."),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            help="Table to write: .csv, .tsv or .parquet; - for CSV on stdout. Of a folder, "
            "another folder.",
        ),
    ] = None,
    coverage: Annotated[
        float, typer.Option(help="Probability that the interval low to high should hold.")
    ] = 0.9,
    quantiles: Annotated[
        str | None, typer.Option(help="Further columns, with commas, such as 0.05,0.5,0.95.")
    ] = None,
    further: Annotated[
        str,
        typer.Option(
            "--with", help=f"Further columns, with commas, of: {', '.join(FURTHER)}; or none."
        ),
    ] = STATUS,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="COLUMN", help="Column to pass through; repeatable."),
    ] = None,
    accept: Annotated[
        float, typer.Option(help="Share of the validation rows that the column reject accepts.")
    ] = 0.9,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Passes with dropout on; by default one without.")
    ] = None,
    memory: Annotated[
        int, typer.Option(min=1, help="MiB that the process may take for a large table or folder.")
    ] = 512,
    runner: Annotated[
        RunnerName, typer.Option(help="What runs the model over many rows; auto is the faster.")
    ] = RunnerName.auto,
    engine: EngineOption = EngineName.local,
    address: Address = None,
    missing_mark: MissingMarks = None,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
) -> None:
    """Predict mean, std and an interval (or class probabilities) for every row.

    The status of a row is "ok", or says which inputs are beyond what the model was trained on. A
    row that lacks a value which no training row lacked has no answer, and the status "missing".

    A large table is read and written piece by piece. Of a folder every Parquet file becomes one of
    the same name, whole or not at all; the same command goes on after a stop.
    """
    with in_options(OPTIONS):
        wanted = OutputColumns(
            coverage, _coverage_levels(quantiles), _words(further), samples, accept
        )
        source, target = path_or_url(table), None if output is None else path_or_url(output)
        asked = Asked(model, wanted, tuple(ids or ()), tuple(missing_mark or ()))
        terminal = Terminal(quiet, STDOUT if target == STDOUT else None)
        if reads_logs(model):
            plain = OutputColumns(coverage, samples=samples)
            if wanted != plain or ids or engine is not EngineName.local or address is not None:
                raise InputError(
                    "the model reads windows of a log: --quantiles, --with, --accept, --id, "
                    "--engine and --address are for tables"
                )
            log, file = _files(model, source, target, overwrite)
            predict_log(terminal, load_model(model), log, file, coverage, samples, missing_mark)
            return
        if isinstance(source, Remote) or (source.is_dir() and any(source.glob("*.parquet"))):
            if missing_mark:
                raise InputError("--missing-mark: is for tables; Parquet files have empty cells")
            away = engine is not EngineName.local or address is not None
            place = engine_asked(engine, address, None) if away else None
            options = FolderOptions(memory, runner.value, place, overwrite, quiet)
            predict_folder(terminal, asked, source, target, options)
            return
        if source.is_dir():
            raise InputError(f"{source}: is a folder, not a table; no *.parquet is in it")
        if engine is not EngineName.local or address is not None:
            raise InputError("--engine and --address are for a folder of Parquet files")
        read, file = _files(model, source, target, overwrite)
        if is_large(read):
            predict_stream(terminal, asked, read, file, memory, runner.value, quiet)
        else:
            predict_table(terminal, asked, read, file)


def _files(
    model: str, source: Path | Remote, target: Path | Remote | None, overwrite: bool
) -> tuple[Path, Path | None]:
    """Refuse URLs where files are needed, and outputs that are there or cannot be written."""
    if isinstance(source, Remote):
        raise InputError(f"{source}: a log must be a file of this machine")
    if isinstance(target, Remote):
        raise InputError(f"--output {target}: is for a folder of Parquet; give a file")
    if target is not None:
        check_suffix(target)
        inputs = (source,) if isinstance(path_or_url(model), Remote) else (Path(model), source)
        check_outputs({"--output": target}, inputs, overwrite, stream="--output")
    return source, target


def _coverage_levels(quantiles: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(level) for level in quantiles.split(",")) if quantiles else ()
    except ValueError:
        raise InputError(
            f"--quantiles {quantiles}: numbers with commas are needed, such as 0.05,0.95"
        ) from None


def _words(further: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in further.split(",") if word.strip())
    return () if words == ("none",) else words
