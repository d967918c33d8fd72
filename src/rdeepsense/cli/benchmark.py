"""`rdeepsense benchmark uci`: the methods on data sets with fixed splits, resumable."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rdeepsense._files import write_whole
from rdeepsense._progress import long_progress
from rdeepsense.cli.benchmark_drift import drift
from rdeepsense.cli.engine import Address, EngineName, EngineOption, Jobs, engine_asked
from rdeepsense.cli.stopping import finished_cells, stoppable
from rdeepsense.cli.terminal import Terminal, make_folder, rich_table, write_json
from rdeepsense.cli.widths import widths_of
from rdeepsense.errors import InputError, RDeepSenseError, require

if TYPE_CHECKING:
    from rdeepsense.engines import Engine
    from rdeepsense.paper.uci import BenchmarkResults

METHODS = "RDeepSense,RDeepSense-MC20,MCDrop-20,MCDrop-20-paper,SSP-5"
MOST_SPLITS = 9_999

benchmark = typer.Typer(
    help="Compare methods on data sets with fixed splits, and models in production.",
    no_args_is_help=True,
)
benchmark.command()(drift)


@benchmark.callback()
def _group() -> None:
    """Compare methods on data sets with fixed splits, and models in production."""


@benchmark.command()
def uci(
    data: Annotated[Path, typer.Option(help="Folder with one .npz file for each data set.")],
    datasets: Annotated[
        str | None, typer.Option(help="Names, or how they begin, such as boston,yacht; else all.")
    ] = None,
    splits: Annotated[
        str | None, typer.Option(help="Which splits, such as 0-4 or 0,3,7-9; else all.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="RDeepSense, RDeepSense-MCk, RDeepSense-quick, MCDrop-k, MCDrop-k-paper, SSP-k, "
            f"GP, CatBoost, NGBoost; else {METHODS} and, where gpytorch is installed, GP."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for cells and results.")] = Path("benchmark"),
    jobs: Jobs = None,
    engine: EngineOption = EngineName.local,
    address: Address = None,
    hidden: Annotated[
        str, typer.Option(help="Widths of the hidden layers, or auto: methods that may choose do.")
    ] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Run the methods on every split and write results.json and report.html.

    A data set is a file NAME.npz with the arrays x (N, d), y (N,) and test_mask (splits,
    ceil(N / 8)): for each split the packed bits of its rows, 1 for a test row, as
    np.packbits(is_test, axis=1) makes them. No pickles.

    Each finished cell (data set, split, family of methods) is a file under OUT/cells; a run that
    was stopped goes on where it was, and what is there is not run again. Other data, settings or
    code make other cells. On a cluster OUT is a folder that all machines see under the same path.
    """
    chosen = methods or (METHODS + (",GP" if find_spec("gpytorch") else ""))
    with stoppable(partial(finished_cells, out)):
        run_uci(
            data=data,
            datasets=_words(datasets),
            splits=_numbers(splits),
            methods=chosen.split(","),
            out=out,
            engine=engine_asked(engine, address, jobs),
            hidden=widths_of(hidden),
            seed=seed,
            quiet=quiet,
        )


def run_uci(
    data: Path,
    datasets: list[str] | None,
    splits: list[int] | None,
    methods: list[str],
    out: Path,
    engine: Engine | None = None,
    hidden: tuple[int, ...] | str = "auto",
    seed: int = 0,
    quiet: bool = False,
    epochs: int | None = None,
) -> BenchmarkResults:
    """Do everything that `benchmark uci` does; return what it wrote to results.json."""
    require("matplotlib", "report")
    from rdeepsense.comparison.methods import parse_all
    from rdeepsense.engines import Local
    from rdeepsense.paper.uci import (
        benchmark_page,
        cells_of,
        find,
        load,
        results_of,
        run_cells,
        tables_of,
    )

    terminal = Terminal(quiet)
    chosen = parse_all(methods)
    files = find(data, datasets)
    cells = cells_of([load(file) for file in files], splits, chosen, hidden, seed, epochs)
    make_folder(out)
    terminal.line(f"{len(files)} data sets, {len(chosen)} methods, {len(cells)} cells")
    outcome = run_cells(cells, out / "cells", engine or Local(), long_progress(quiet))
    terminal.line(f"{outcome.ran} cells run now, {len(outcome.done) - outcome.ran} found finished")
    if not outcome.done:
        raise RDeepSenseError(f"no cell could be run; the first: {outcome.failed[0][1].reason}")
    results = results_of(outcome, chosen, hidden, seed)
    tables = tables_of(results)
    write_json(out / "results.json", results.to_json())
    write_whole(out / "report.html", benchmark_page(results, tables))

    for table in tables:
        terminal.table(rich_table(table))
    for row in results.published:
        terminal.line(f"{row.method}: {row.source} ({row.remark})")
    for warned in results.warnings:
        terminal.line(f"{warned.family} warned in {warned.cells} cells: {warned.example}")
    for path in (out / "results.json", out / "report.html"):
        terminal.line(f"wrote {path}")
    if outcome.failed:
        cell, failure = outcome.failed[0]
        raise RDeepSenseError(
            f"{len(outcome.failed)} cells failed and will be tried again by the same command; the "
            f"first, {cell.family} on {cell.data.name} split {cell.split}: {failure.reason}"
        )
    return results


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",")]


def _numbers(text: str | None) -> list[int] | None:
    """Read 0,3,7-9 as [0, 3, 7, 8, 9]."""
    if text is None:
        return None
    numbers: list[int] = []
    for word in text.split(","):
        first, dash, last = (part.strip() for part in word.partition("-"))
        if not first.isdecimal() or (dash and not (last.isdecimal() and int(last) >= int(first))):
            raise InputError(f"--splits {text!r}: give numbers or ranges, such as 0-4 or 0,3,7-9")
        if int(last or first) > MOST_SPLITS:
            raise InputError(f"--splits {text!r}: beyond {MOST_SPLITS}, more than any data set has")
        numbers += range(int(first), int(last or first) + 1)
    return numbers
