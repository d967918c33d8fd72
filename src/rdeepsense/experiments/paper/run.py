"""Running a study: finished cells are read, the others run, and results.json is written."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdeepsense.experiments.methods import parse_all
from rdeepsense.experiments.paper.cells import Cell, cells_of
from rdeepsense.experiments.paper.presets import METHODS, Preset
from rdeepsense.experiments.paper.results import results_of
from rdeepsense.experiments.paper.study import Study
from rdeepsense.experiments.uci.pool import Result, run_each
from rdeepsense.files import write_whole

if TYPE_CHECKING:
    from rdeepsense.progress import Progress

RESULTS = "results.json"
MOST_JOBS = 4  # by default: each has its own torch and its own rows


@dataclass(frozen=True)
class Outcome:
    """What came out: what results.json holds, how many cells there are and ran now."""

    results: dict[str, Any]
    cells: int
    ran: int
    failed: list[tuple[str, str]]  # a cell's label and what went wrong


def run(
    tasks: Sequence[str],
    preset: Preset,
    out: Path,
    data: Path | None = None,
    methods: Sequence[str] | None = None,
    seed: int = 0,
    jobs: int | None = None,
    quiet: bool = False,
) -> Outcome:
    """Run what is not finished yet under `out`; write results.json there.

    A cell that fails does not stop the others; it leaves no file and is tried again next time.
    """
    chosen = parse_all(methods or default_methods())
    study = Study(preset, data, seed)
    cells = cells_of(study, tasks, chosen)
    folder = out / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    done = {cell: found for cell in cells if (found := cell.read(folder)) is not None}
    pending = [cell for cell in cells if cell not in done]
    failed: list[tuple[str, str]] = []
    if pending:
        progress = _progress(quiet)
        total = sum(cell.weight for cell in cells)
        finished = sum(cell.weight for cell in done)
        progress.start("reproduce", total, finished)
        try:
            for cell, result in _results(pending, jobs or min(MOST_JOBS, os.cpu_count() or 1)):
                if isinstance(result, str):
                    failed.append((cell.label, result))
                else:
                    cell.write(folder, result)
                    done[cell] = result
                finished += cell.weight
                count = len(done) + len(failed)
                progress.update(finished, f"{count} of {len(cells)} cells, last {cell.label}")
        finally:
            progress.close()
    results = results_of(study, tasks, chosen, {cell: done[cell] for cell in cells if cell in done})
    text = json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(out / RESULTS, text)
    return Outcome(results, len(cells), len(pending) - len(failed), failed)


def default_methods() -> tuple[str, ...]:
    """Every method of the paper; GP only where its library is installed."""
    return tuple(name for name in METHODS if name != "GP" or find_spec("gpytorch"))


def _results(pending: Sequence[Cell], jobs: int) -> Iterator[tuple[Cell, Result]]:
    """Each cell with its result, or with what went wrong, as they finish.

    First the data, here: what is wrong with it should be said at once. Last the timing, alone.
    """
    for cell in (cell for cell in pending if cell.kind == "task"):
        yield cell, cell.run()
    yield from run_each([cell for cell in pending if cell.kind in ("family", "alpha")], jobs)
    yield from run_each([cell for cell in pending if cell.kind == "cost"], jobs=1)


def _progress(quiet: bool) -> Progress:
    from rdeepsense.progress import Bar, Lines, Silent

    if quiet:
        return Silent()
    return Bar(sys.stderr) if sys.stderr.isatty() else Lines(sys.stderr)
