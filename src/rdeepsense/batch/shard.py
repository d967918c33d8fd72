"""A part of a table in Parquet, predicted into a file of its own, whole or not at all.

The file says in its own metadata what it was made from: the model by its digest, the source by its
name, size and time, and the options. Whoever finds it can tell that there is nothing left to do.
"""

from __future__ import annotations

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
        record = {KEY: json.dumps(self.record()).encode()}
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
        # Which runner it was makes no difference that matters.
        return {**found, "runner": ""} == {**self.record(), "runner": ""}

    def record(self) -> dict[str, Any]:
        """Return what the answers come from, as JSON holds it."""
        source = self.source
        return {
            "model": self.plan.digest,
            "source": [source.file.name, source.size, source.time, source.first, source.last],
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
