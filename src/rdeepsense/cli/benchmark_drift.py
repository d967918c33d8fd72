"""`rdeepsense benchmark drift`: models in production on real data, resumable."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rdeepsense._files import write_whole
from rdeepsense._progress import long_progress
from rdeepsense.cli.engine import Address, EngineName, EngineOption, Jobs, engine_asked
from rdeepsense.cli.stopping import finished_cells, stoppable
from rdeepsense.cli.terminal import Terminal, make_folder, rich_table, write_json
from rdeepsense.errors import RDeepSenseError, require

if TYPE_CHECKING:
    from rdeepsense.engines import Engine
    from rdeepsense.paper.drift import DriftResults

DEFAULT = ("gas", "people", "pressure")
PICTURE = "gas-stream"


def drift(
    data: Annotated[Path, typer.Option(help="Folder with gassen, har and bpest.")],
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="gas, people, pressure; repeatable; else these three. pressure-by-record, easier."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 5,
    out: Annotated[Path, typer.Option(help="Folder for cells and results.")] = Path("drift"),
    jobs: Jobs = None,
    engine: EngineOption = EngineName.local,
    address: Address = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Compare frozen and live models on sensors that drift and people never trained on.

    gas: sensors of UCI 270, batches 1 to 6, then a stream of 8 and 9. people: six users of UCI
    HAPT. pressure: records of the UCI blood pressure data. DATA has gassen/uci270_drift.parquet,
    har/hapt.parquet, bpest/waves.parquet and bpest/windows.parquet.

    Writes results.json, report.html and, of gas, a picture of one stream. Each finished cell
    (study, seed) is a file under OUT/cells; a run that was stopped goes on where it was. On a
    cluster DATA and OUT are folders that all machines see under the same paths.
    """
    with stoppable(partial(finished_cells, out)):
        where = engine_asked(engine, address, jobs)
        run_drift(data, list(dict.fromkeys(task or DEFAULT)), seeds, out, where, quiet)


def run_drift(
    data: Path,
    tasks: list[str],
    seeds: int,
    out: Path,
    engine: Engine | None = None,
    quiet: bool = False,
) -> DriftResults:
    """Do everything that `benchmark drift` does; return what it wrote to results.json."""
    require("matplotlib", "report")
    from rdeepsense.engines import Local
    from rdeepsense.pages.pictures import save
    from rdeepsense.paper.drift import (
        STUDIES,
        cells_of,
        drift_page,
        results_of,
        run_cells,
        tables_of,
    )
    from rdeepsense.reporting.replay import replay_figure

    terminal = Terminal(quiet)
    cells = cells_of(data, tasks, seeds)
    make_folder(out)
    outcome = run_cells(cells, out / "cells", engine or Local(), long_progress(quiet))
    terminal.line(f"{outcome.ran} cells run now, {len(outcome.done) - outcome.ran} found finished")
    if not outcome.done:
        raise RDeepSenseError(f"no cell could be run; the first: {outcome.failed[0][1].reason}")
    results = results_of(outcome.done)
    tables = tables_of(results)
    kept = (trial.stream for _, trial in outcome.done if trial.stream is not None)
    first = next(kept, None)
    stream, unit = None if first is None else first.replayed(), STUDIES["gas"].unit
    write_json(out / "results.json", results.to_json())
    write_whole(out / "report.html", drift_page(results, tables, stream, unit))
    written = [out / "results.json", out / "report.html"]
    if stream is not None:
        title = "Gas sensors months later, a label for every tenth row"
        written += save(replay_figure(stream, title, unit), out / PICTURE)
    for table in tables:
        terminal.table(rich_table(table))
    for path in written:
        terminal.line(f"wrote {path}")
    if outcome.failed:
        cell, failure = outcome.failed[0]
        raise RDeepSenseError(
            f"{len(outcome.failed)} cells failed and will be tried again by the same command; the "
            f"first, {cell.task} seed {cell.seed}: {failure.reason}"
        )
    return results
