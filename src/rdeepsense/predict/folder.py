"""Predictions for folders of Parquet files, shard by shard, resumable."""

from __future__ import annotations

import functools
import hashlib
import io
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rdeepsense._files import Remote, replaced
from rdeepsense._progress import Progress
from rdeepsense.data.parquet import (
    UNREADABLE,
    ArrowColumn,
    ArrowTable,
    ParquetTable,
    labels,
    numbers,
)
from rdeepsense.encoding import Category
from rdeepsense.engines import Engine, Failure
from rdeepsense.errors import InputError, nearest, require
from rdeepsense.predict.columns import Answer, Answers, Coded, ModelSchema, Tally
from rdeepsense.predict.plan import Plan

# --------------------------------------------------------------------------------------------------
# Rows in memory at once, from a limit in MiB
# --------------------------------------------------------------------------------------------------

MIB = 1 << 20
# What Python and its libraries take, measured: numpy, polars and pyarrow, and with them torch.
LIBRARIES = {"C": 160 * MIB, "torch": 480 * MIB}
LEAST = 256 * MIB
LEAST_FOR_ROWS = 16 * MIB  # where libraries take nearly all
MOST_ROWS, FEWEST_ROWS = 65_536, 1_024
CHUNKS = 5  # in memory: two that are computed, one that waits, one that is read, one written


def rows_at_once(memory: int, runner: str, inputs: int, columns: int) -> int:
    """Return the rows of a chunk: a power of two, which depends on nothing but its arguments.

    A chunk has its inputs as they were read, as columns, and as rows in float64 and float32; each
    column that is written takes 32 bytes a row, as text or otherwise.
    """
    if memory < LEAST:
        raise InputError(f"memory = {memory // MIB} MiB; accepted: {LEAST // MIB} and more")
    row = (12 + 8 + 8 + 4) * inputs + 32 * columns
    room = max(memory - LIBRARIES[runner], LEAST_FOR_ROWS)
    rows = min(MOST_ROWS, room // (CHUNKS * row))
    return max(FEWEST_ROWS, 1 << rows.bit_length() >> 1)


# --------------------------------------------------------------------------------------------------
# Predictions as an Arrow table, after the identifying columns
# --------------------------------------------------------------------------------------------------


def as_table(answer: Answer, ids: dict[str, Any]) -> ArrowTable:
    """Return ids and answers; numbers are null where a row has no answer."""
    pyarrow = require("pyarrow", "tasks")
    for name in ids:
        if name in answer.columns:
            raise InputError(f"id = {name!r} is also the name of a column of answers")
    columns = dict(ids)
    mask = answer.unanswered if answer.unanswered.any() else None
    for name, values in answer.columns.items():
        if isinstance(values, Coded):
            own = mask if values.masked else None
            codes = pyarrow.array(values.codes.astype(np.int32), mask=own)
            texts = pyarrow.array(values.values.tolist())
            columns[name] = pyarrow.DictionaryArray.from_arrays(codes, texts).dictionary_decode()
        else:
            columns[name] = pyarrow.array(np.ascontiguousarray(values), mask=mask)
    return pyarrow.table(columns)


# --------------------------------------------------------------------------------------------------
# From Arrow columns to numbers and codes
# --------------------------------------------------------------------------------------------------


def input_names(known: ModelSchema, columns: Sequence[str], aside: Sequence[str]) -> list[str]:
    """Return the columns that a model reads, in its order; without names, all but those aside."""
    if known.names is None:
        used = [name for name in columns if name not in aside]
        if len(used) != known.inputs:
            raise InputError(
                f"the model was fitted without column names on {known.inputs} columns; "
                f"the files have {len(used)} that could be inputs"
            )
        return used
    there = set(columns)
    for name in known.names:
        if name not in there:
            raise InputError(
                f"the model needs the column {name!r}{nearest(name, columns)}; the files have "
                f"{', '.join(columns)}"
            )
    return list(known.names)


def batches_of(
    file: Any, rows: int, columns: Sequence[str], **options: Any
) -> Iterator[ArrowTable]:
    """Yield tables of some rows of an open Parquet file, decoded in this thread alone."""
    pyarrow = require("pyarrow", "tasks")
    used = list(dict.fromkeys(columns))
    for batch in file.iter_batches(rows, columns=used, use_threads=False, **options):
        yield pyarrow.Table.from_batches([batch])


def rows_of(table: ArrowTable, names: Sequence[str], known: ModelSchema) -> NDArray[Any]:
    """Return rows (rows, inputs): float32 where every number is, else float64; nulls are NaN."""
    pyarrow = require("pyarrow", "tasks")
    categories = {} if known.encoding is None else _categories(known)
    columns = [table.column(name) for name in names]
    single = not categories and all(column.type == pyarrow.float32() for column in columns)
    X = np.empty((table.num_rows, len(names)), np.float32 if single else np.float64)
    for k, column in enumerate(columns):
        try:
            X[:, k] = _codes(column, categories[k]) if k in categories else numbers(column)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
            raise InputError(
                f"column {names[k]!r} holds {column.type}; numbers are needed"
            ) from error
    return X


def _categories(known: ModelSchema) -> dict[int, Category]:
    assert known.encoding is not None
    return {category.column: category for category in known.encoding.categories}


def _codes(column: ArrowColumn, category: Category) -> NDArray[Any]:
    """Look up each distinct value once."""
    values, codes = labels(column)
    known = category.encode(values.tolist(), f"column {category.column}")
    return np.append(known, np.nan)[codes]


# --------------------------------------------------------------------------------------------------
# Ordered chunks in a few threads, with a bounded number in progress
# --------------------------------------------------------------------------------------------------

Item = TypeVar("Item")
Made = TypeVar("Made")
AHEAD = 1  # chunks that wait, beside those that threads are at


def in_order(make: Callable[[Item], Made], items: Iterable[Item], threads: int) -> Iterator[Made]:
    """Yield make(item) of each item, in the order of the items.

    Reading happens here, in the caller's thread, and so does whatever it does with the result:
    with two threads four chunks are in memory at most.
    """
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[Made]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(make, item))
            if len(waiting) > threads + AHEAD - 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


# --------------------------------------------------------------------------------------------------
# Output files: Parquet or delimited text
#
# `encode` does what takes long, in whatever thread; `write` puts the results one after the other.
# --------------------------------------------------------------------------------------------------


class Sink(Protocol):
    """A file that grows by some rows at a time."""

    def encode(self, table: ArrowTable) -> Any:
        """Make of rows what `write` takes; several threads may do so."""

    def write(self, encoded: Any) -> None:
        """Write rows, in order."""


class ParquetSink:
    """A Parquet file, a row group for each chunk, with a record in its metadata."""

    def __init__(self, file: Any, metadata: dict[bytes, bytes] | None = None) -> None:
        self._file, self._metadata = file, metadata
        self._writer: Any = None

    def encode(self, table: ArrowTable) -> ArrowTable:
        """Return the table: pyarrow encodes while it writes."""
        return table

    def write(self, encoded: ArrowTable) -> None:
        """Write a row group; the first decides the columns."""
        if self._writer is None:
            schema = encoded.schema.with_metadata(self._metadata)
            # Numbers of predictions hardly repeat: a dictionary of them is work for nothing.
            texts = [field.name for field in schema if str(field.type) == "string"]
            parquet = require("pyarrow.parquet", "cli")
            self._writer = parquet.ParquetWriter(self._file, schema, use_dictionary=texts)
        self._writer.write_table(encoded)

    def close(self) -> None:
        """Write the footer, before the file is closed: pyarrow would try to do so afterwards."""
        if self._writer is not None:
            self._writer.close()


class TextSink:
    """CSV or TSV: a header, then rows; `put` takes bytes."""

    def __init__(self, put: Callable[[bytes], object], separator: str = ",") -> None:
        self._put, self._separator = put, separator
        self._begun = False

    def encode(self, table: ArrowTable) -> tuple[bytes, bytes]:
        """Return the line of names and those of rows."""
        frame: Any = require("polars", "cli").from_arrow(table)
        header, rows = io.BytesIO(), io.BytesIO()
        frame.clear().write_csv(header, separator=self._separator)
        frame.write_csv(rows, separator=self._separator, include_header=False)
        return header.getvalue(), rows.getvalue()

    def write(self, encoded: tuple[bytes, bytes]) -> None:
        """Write rows, after the names where they are the first."""
        if not self._begun:
            self._put(encoded[0])
            self._begun = True
        self._put(encoded[1])


# --------------------------------------------------------------------------------------------------
# Prediction of one part of a Parquet table into its own file
#
# The file says in its own metadata what it was made from: the model and the source by their
# digests, and the options. Whoever finds it can tell that there is nothing left to do. The digest
# of a source is of its row groups and its footer; of a source elsewhere, which would be read twice,
# it is of the footer alone, and its time counts as well.
# --------------------------------------------------------------------------------------------------

KEY = b"rdeepsense"
AT_ONCE = 1 << 20  # bytes that are hashed at once
Report = Callable[[int], None]
Place = Path | Remote


@dataclass(frozen=True)
class Source:
    """Some row groups of a Parquet file, which was so large and that old."""

    file: Place
    size: int
    time: int
    first: int
    last: int  # the row group after the last one
    rows: int

    def _opened(self) -> Any:  # Any: of pyarrow, which ships no types
        return self.file.open() if isinstance(self.file, Remote) else open(self.file, "rb")

    def digest(self) -> str:
        """Return SHA-256 of the row groups and the footer; of a file elsewhere, of the footer."""
        parquet, found = require("pyarrow.parquet", "cli"), hashlib.sha256()
        is_here = not isinstance(self.file, Remote)
        try:
            with self._opened() as file:
                ends = (self.size - 8, self.size)
                file.seek(ends[0])
                footer = int.from_bytes(file.read(4), "little")
                parts = [(ends[0] - footer, ends[1])]
                if is_here and self.rows:
                    metadata = parquet.read_metadata(self.file)
                    parts.append(_extent(metadata, self.first, self.last))
                for begin, end in parts:
                    file.seek(begin)
                    while begin < end and (some := file.read(min(AT_ONCE, end - begin))):
                        found.update(some)
                        begin += len(some)
        except UNREADABLE as error:
            reason = str(error).strip().partition("\n")[0]
            raise InputError(f"{self.file}: cannot be read: {reason}") from error
        return found.hexdigest()


def _extent(metadata: Any, first: int, last: int) -> tuple[int, int]:  # Any: of pyarrow
    """Return where the bytes of some row groups begin and end."""
    begins, ends = [], []
    for group in range(first, last):
        own = metadata.row_group(group)
        for column in map(own.column, range(own.num_columns)):
            pages = [column.data_page_offset]
            if column.has_dictionary_page and column.dictionary_page_offset:
                pages.append(column.dictionary_page_offset)
            begins.append(min(pages))
            ends.append(min(pages) + column.total_compressed_size)
    return min(begins), max(ends)


@dataclass(frozen=True)
class Shard:
    """Rows to predict, and where; a piece of work for any process that has the files."""

    plan: Plan
    source: Source
    target: Place
    ids: tuple[str, ...]
    rows_at_once: int
    threads: int = 1

    def run(self, report: Report | None = None) -> Tally:
        """Predict all rows; `report` is told how many are written."""
        tally = Tally()
        record = {KEY: json.dumps(self.record(self.source.digest())).encode()}
        with replaced(self.target) as file, closing(ParquetSink(file, record)) as sink:
            for table, own in self.tables(self.plan.answers()):
                sink.write(table)
                tally.add(own)
                if report is not None:
                    report(tally.rows)
        return tally

    def is_done(self) -> bool:
        """Tell whether the target is there and was made from the same."""
        if not self.target.is_file():
            return False
        parquet = require("pyarrow.parquet", "cli")
        file = self.target.open() if isinstance(self.target, Remote) else self.target
        try:
            metadata = parquet.read_metadata(file).metadata or {}
            found = json.loads(metadata.get(KEY, b"{}"))
        except UNREADABLE:
            return False
        if not isinstance(found, dict):
            return False
        # Which runner it was makes no difference that matters.
        same = {"runner": "", "content": ""}
        if {**found, **same} != {**self.record(""), **same}:
            return False
        return bool(found.get("content") == self.source.digest())

    def record(self, content: str) -> dict[str, Any]:
        """Return what the answers come from, as JSON holds it; `content` is the source's digest."""
        source = self.source
        time = source.time if isinstance(source.file, Remote) else None
        return {
            "model": self.plan.digest,
            "source": [source.file.name, source.size, time, source.first, source.last],
            "content": content,
            "options": self.plan.wanted.to_json(),
            "ids": list(self.ids),
            "runner": self.plan.runner,
        }

    def tables(self, answers: Answers) -> Iterator[tuple[ArrowTable, Tally]]:
        """Yield the answers to some rows at a time, in order; of no rows an empty table."""
        parquet, known = require("pyarrow.parquet", "cli"), self.plan.known
        file = self.source.file.open() if isinstance(self.source.file, Remote) else self.source.file

        def answer(batch: Any) -> tuple[ArrowTable, Tally]:
            found = answers.of(rows_of(batch, names, known))
            return as_table(found, {name: batch.column(name) for name in self.ids}), found.tally

        try:
            with parquet.ParquetFile(file, pre_buffer=False) as opened:
                schema = opened.schema_arrow
                names = input_names(known, schema.names, self.ids)
                groups = range(self.source.first, self.source.last)
                batches = batches_of(
                    opened, self.rows_at_once, [*names, *self.ids], row_groups=groups
                )
                if self.source.rows:
                    yield from in_order(answer, batches, self.threads)
                    return
                empty = as_table(answers.of(np.zeros((1, known.inputs))), {}).slice(0, 0)
                for place, name in enumerate(self.ids):
                    column = schema.empty_table().column(name)
                    empty = empty.add_column(place, name, column)
                yield empty, Tally()
        except InputError as error:
            raise InputError(f"{self.source.file}: {error}") from error
        except UNREADABLE as error:
            reason = str(error).strip().partition("\n")[0]
            raise InputError(f"{self.source.file}: cannot be read: {reason}") from error


# --------------------------------------------------------------------------------------------------
# Prediction of a folder of Parquet files, file by file
#
# Every file is a shard, and a large one is several, of whole row groups. What is finished is kept,
# so that a run that was stopped goes on where it was.
# --------------------------------------------------------------------------------------------------

SHARD_ROWS = 5_000_000  # at which a file is divided


@dataclass(frozen=True)
class Done:
    """What became of a folder: rows of this run, and shards that were there already."""

    tally: Tally
    shards: int
    kept: int


def sources_of(table: ParquetTable) -> list[list[Source]]:
    """Divide each file of a table into parts of whole row groups."""
    found: list[list[Source]] = []
    for number, file in enumerate(table.files):
        stat, counts = file.stat(), table.rows_of_groups(number)
        parts, first, rows = list[Source](), 0, 0
        for group, count in enumerate(counts):
            if rows and rows + count > SHARD_ROWS:
                parts.append(Source(file, stat.st_size, stat.st_mtime_ns, first, group, rows))
                first, rows = group, 0
            rows += count
        parts.append(Source(file, stat.st_size, stat.st_mtime_ns, first, len(counts), rows))
        found.append(parts)
    return found


def shards_of(
    sources: Sequence[Sequence[Source]],
    target: Place,
    plan: Plan,
    ids: tuple[str, ...],
    rows_at_once: int,
    threads: int,
) -> list[Shard]:
    """Name the file of each part: that of its source, numbered where that has several."""
    shards = []
    for parts in sources:
        for number, source in enumerate(parts):
            name = PurePosixPath(source.file.name)
            own = name.name if len(parts) == 1 else f"{name.stem}-{number:05}{name.suffix}"
            place = target / own if isinstance(target, Path) else target.child(own)
            shards.append(Shard(plan, source, place, ids, rows_at_once, threads))
    return shards


def predict_shards(
    shards: Sequence[Shard], engine: Engine | None, progress: Progress, overwrite: bool
) -> Done:
    """Predict what is not done yet, here or by an engine; a file of something else is refused."""
    left = [shard for shard in shards if not shard.is_done()]
    for shard in left:
        if shard.target.is_file() and not overwrite:
            raise InputError(
                f"{shard.target}: is there already, of another model, other rows or options; "
                "--overwrite replaces it"
            )
    total = sum(shard.source.rows for shard in shards)
    done = total - sum(shard.source.rows for shard in left)
    progress.start("rows", total, done)
    tally, failures = Tally(), list[str]()
    try:
        for own in _here(left, progress, done) if engine is None else _there(left, engine):
            if isinstance(own, Failure):
                failures.append(own.reason)
                continue
            tally.add(own)
            progress.update(done + tally.rows, "")
    finally:
        progress.close()
    if failures:
        raise InputError(
            f"{len(failures)} of {len(shards)} shards have failed, the others are kept: "
            f"{failures[0]}"
        )
    return Done(tally, len(shards), len(shards) - len(left))


def _here(shards: Sequence[Shard], progress: Progress, done: int) -> Iterator[Tally]:
    for shard in shards:
        yield shard.run(functools.partial(_say, progress, done))
        done += shard.source.rows


def _say(progress: Progress, before: int, rows: int) -> None:
    progress.update(before + rows, "")


def _there(shards: Sequence[Shard], engine: Engine) -> Iterator[Tally | Failure]:
    for _, result in engine.run_each(shards):
        yield result
