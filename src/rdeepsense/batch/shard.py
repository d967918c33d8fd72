"""A part of a table in Parquet, predicted into a file of its own, whole or not at all.

The file says in its own metadata what it was made from: the model and the source by their digests,
and the options. Whoever finds it can tell that there is nothing left to do. The digest of a source
is of its row groups and its footer; of a source elsewhere, which would be read twice, it is of the
footer alone, and its time counts as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rdeepsense.batch.answers import Answers, Tally
from rdeepsense.batch.pipeline import in_order
from rdeepsense.batch.plan import Plan
from rdeepsense.batch.rows import batches_of, input_names, rows_of
from rdeepsense.batch.sinks import ParquetSink
from rdeepsense.batch.tables import as_table
from rdeepsense.data.parquet import UNREADABLE, ArrowTable
from rdeepsense.errors import InputError, require
from rdeepsense.storage import Remote, replaced

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
