"""`rdeepsense reproduce`: the paper's evaluation by one command, resumable."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rdeepsense.cli.data import fetch_hint
from rdeepsense.cli.engine import Address, EngineName, EngineOption, engine_asked
from rdeepsense.cli.stopping import finished_cells, stoppable
from rdeepsense.cli.terminal import Terminal, make_folder, new_table
from rdeepsense.errors import InputError, RDeepSenseError, require

if TYPE_CHECKING:
    from rdeepsense.paper.run import StudyOutcome


def reproduce(
    task: Annotated[
        str, typer.Argument(help="BPEst, NYCommute, GasSen, HHAR, several with commas, or all.")
    ],
    data: Annotated[
        Path | None, typer.Option(help="Folder with the original files; else data is simulated.")
    ] = None,
    preset: Annotated[
        str, typer.Option(help="quick: minutes on two cores. paper: three layers of 500, all rows.")
    ] = "quick",
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names with commas, such as RDeepSense-paper,SSP-5-paper,MCDrop-20-paper; else "
            "all of the paper at its k, the tuned MCDrop-20 and the automatic RDeepSense."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for cells, results and report.")] = Path(
        "reproduction"
    ),
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes, of one thread each; else up to 4.")
    ] = None,
    engine: EngineOption = EngineName.local,
    address: Address = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Repeat the paper's tables and figures and say which of its claims hold.

    Writes results.json, one PNG and SVG for each figure, report.html and report.md. Each finished
    cell (one training of a family of methods or of one alpha on a task, the timing) is a file under
    OUT/cells: a run that was stopped goes on where it was, and what is there is not run again. On a
    cluster DATA and OUT are folders that all machines see under the same paths.
    """
    require("matplotlib", "report")
    from rdeepsense.paper.report import write
    from rdeepsense.paper.run import RESULTS, default_engine, run
    from rdeepsense.paper.study import preset as preset_named
    from rdeepsense.paper.study import tasks_named
    from rdeepsense.paper.tables import verdicts

    tasks, size = tasks_named(task), preset_named(preset)
    if data is not None and not data.is_dir():
        raise InputError(f"--data {data}: there is no such folder")
    where = engine_asked(engine, address, jobs, default_engine().jobs)
    make_folder(out)
    terminal = Terminal(quiet)
    chosen = None if methods is None else methods.split(",")
    with stoppable(partial(finished_cells, out)):
        with fetch_hint(data):
            outcome = run(tasks, size, out, data, chosen, seed, where, quiet)
        terminal.line(f"{outcome.ran} cells run now, {outcome.cells} in all")
        found = verdicts(outcome.results.claims, list(outcome.results.tasks))
        table = new_table("What holds", ["claim", *found.header[2:]])
        for claim, _, *row in found.rows:
            table.add_row(claim, *("?" if said == "not decidable" else said for said in row))
        terminal.table(table)
        terminal.line(found.caption.replace("not decidable", "not decidable (?)"))
        report_files(terminal, [out / RESULTS, *write(outcome.results, out)])
    check_complete(outcome)


def report_files(terminal: Terminal, files: list[Path]) -> None:
    """Print what was written; of the figures, where they are and how many files."""
    figures = [file for file in files if file.parent.name == "figures"]
    for file in files:
        if file not in figures:
            terminal.line(f"wrote {file}")
    if figures:
        terminal.line(f"wrote {figures[0].parent}: {len(figures)} files, a PNG and SVG of each")


def check_complete(outcome: StudyOutcome) -> None:
    """Raise an error for cells that failed, once all else is written."""
    if outcome.failed:
        label, error = outcome.failed[0]
        raise RDeepSenseError(
            f"{len(outcome.failed)} cells failed and will be tried again by the same command; the "
            f"first, {label}: {error}"
        )
