"""A folder of Parquet files, predicted file by file into another folder.

Every file is a shard, and a large one is several, of whole row groups. What is finished is kept,
so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rdeepsense.batch.answers import Tally
from rdeepsense.batch.plan import Plan
from rdeepsense.batch.shard import Place, Shard, Source
from rdeepsense.data.parquet import ParquetTable
from rdeepsense.engines import Engine, Failure
from rdeepsense.errors import InputError
from rdeepsense.progress import Progress

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
