"""Predicting a folder of Parquet files into another folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rdeepsense._progress import long_progress
from rdeepsense._storage import Remote, path_or_url
from rdeepsense.cli.columns import report_extra, some
from rdeepsense.cli.predict_table import Asked, report_tally
from rdeepsense.cli.stopping import stoppable
from rdeepsense.cli.terminal import STDOUT, Terminal
from rdeepsense.errors import InputError, nearest
from rdeepsense.predict.folder import MIB, input_names, rows_at_once
from rdeepsense.predict.plan import Preparation

if TYPE_CHECKING:
    from rdeepsense.engines import Engine
    from rdeepsense.predict.folder import Place

THREADS = 2
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
    extra = [name for name in table.columns if name not in {*names, *asked.ids}]
    report_extra(terminal, extra)
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
