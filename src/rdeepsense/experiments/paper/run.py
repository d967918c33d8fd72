"""Running a study: finished cells are read, the others run, and results.json is written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rdeepsense._files import write_whole
from rdeepsense._progress import long_progress
from rdeepsense.engines import Engine, Failure, Local
from rdeepsense.errors import InputError
from rdeepsense.experiments.kept_work import KeptWork, run_kept
from rdeepsense.experiments.methods import FAMILIES, parse, parse_all
from rdeepsense.experiments.paper.cells import FinishedCell, StudyCell, cells_of
from rdeepsense.experiments.paper.presets import METHODS, Preset
from rdeepsense.experiments.paper.results import StudyResults, results_of
from rdeepsense.experiments.paper.study import Study

RESULTS = "results.json"
MOST_JOBS = 4  # by default: each has its own torch and its own rows


@dataclass(frozen=True)
class StudyOutcome:
    """The results of a study, how many cells there are, ran now and failed."""

    results: StudyResults
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
    engine: Engine | None = None,
    quiet: bool = False,
) -> StudyOutcome:
    """Run what is not finished yet under `out`; write results.json there.

    Without an engine there are up to 4 processes of this machine.
    A cell that fails does not stop the others; it leaves no file and is tried again next time.
    """
    asked = methods or default_methods()
    for method in map(parse, asked):
        if FAMILIES[method.family].is_peer:
            raise InputError(f"{method.name} is no method of the paper: see compare and benchmark")
    chosen = parse_all(asked)
    # Resolved: other processes may stand elsewhere.
    study = Study(preset, None if data is None else data.resolve(), seed)
    cells = cells_of(study, tasks, chosen)
    folder = out / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    done = {cell: found for cell in cells if (found := cell.read(folder)) is not None}
    pending = [cell for cell in cells if cell not in done]
    failed: list[tuple[str, str]] = []
    if pending:
        progress = long_progress(quiet)
        total = sum(cell.weight for cell in cells)
        finished = sum(cell.weight for cell in done)
        progress.start("reproduce", total, finished)
        progress.update(finished, f"{len(done)} of {len(cells)} cells, first {pending[0].label}")
        try:
            for cell, result in _results(pending, folder, engine or default_engine()):
                if isinstance(result, Failure):
                    failed.append((cell.label, result.reason))
                else:
                    done[cell] = result
                finished += cell.weight
                count = len(done) + len(failed)
                progress.update(finished, f"{count} of {len(cells)} cells, last {cell.label}")
        finally:
            progress.close()
    results = results_of(study, tasks, chosen, {cell: done[cell] for cell in cells if cell in done})
    text = json.dumps(results.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(out / RESULTS, text)
    return StudyOutcome(results, len(cells), len(pending) - len(failed), failed)


def default_methods() -> tuple[str, ...]:
    """Return every method of the paper; GP only where its library is installed."""
    return tuple(name for name in METHODS if name != "GP" or find_spec("gpytorch"))


def default_engine() -> Local:
    """Return processes of this machine, a core each, but not many."""
    return Local(min(MOST_JOBS, os.cpu_count() or 1))


def _results(
    pending: Sequence[StudyCell], folder: Path, engine: Engine
) -> Iterator[tuple[StudyCell, FinishedCell | Failure]]:
    """Yield each cell with its result, or with its failure, as they finish.

    First the data, here: what is wrong with it should be said at once. Last the timing, here and
    alone: it is about this machine.
    """
    for cell in (cell for cell in pending if cell.kind == "task"):
        yield cell, KeptWork(cell, folder.resolve()).run()
    trainings = [cell for cell in pending if cell.kind in ("family", "alpha")]
    timings = [cell for cell in pending if cell.kind == "cost"]
    parts: list[tuple[list[StudyCell], Engine]] = [(trainings, engine), (timings, Local(1))]
    for cells, where in parts:
        for number, result in run_kept(cells, folder, where):
            yield cells[number], result
