"""Running cells: those that are finished are read, the others run, wherever the engine says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rdeepsense._progress import Progress
from rdeepsense.engines import Engine, Failure
from rdeepsense.errors import InputError
from rdeepsense.experiments.kept_work import run_kept
from rdeepsense.experiments.methods import Method, by_family
from rdeepsense.experiments.uci.cells import BenchmarkCell
from rdeepsense.experiments.uci.datafile import DataSet
from rdeepsense.experiments.uci.trial import FamilyTrial

Done = list[tuple[BenchmarkCell, FamilyTrial]]


@dataclass(frozen=True)
class BenchmarkOutcome:
    """The finished cells, how many of them ran now, and which ones failed."""

    done: Done
    ran: int
    failed: list[tuple[BenchmarkCell, Failure]]


def cells_of(
    datasets: Sequence[DataSet],
    splits: Sequence[int] | None,
    methods: Sequence[Method],
    hidden: tuple[int, ...] | str,
    seed: int,
    epochs: int | None = None,
) -> list[BenchmarkCell]:
    """Return all cells, split by split over all data sets.

    In this order a stopped run has about equally many splits of everything, and the time left
    follows from the share that is done, however different the data sets are in size.
    """
    for data in datasets:
        beyond = [split for split in splits or () if split >= data.splits]
        if beyond:
            raise InputError(f"{data.name}: has splits 0 to {data.splits - 1}; got {beyond[0]}")
    last = max(data.splits for data in datasets)
    return [
        BenchmarkCell(data, split, family, hidden, seed, epochs)
        for split in (range(last) if splits is None else dict.fromkeys(splits))
        for data in datasets
        if split < data.splits
        for family in by_family(methods).values()
    ]


def run_cells(
    cells: Sequence[BenchmarkCell], folder: Path, engine: Engine, progress: Progress
) -> BenchmarkOutcome:
    """Run what is not in `folder` yet; each cell is written there by whoever runs it.

    A cell that fails does not stop the others. It leaves no file, so the next run tries it again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = [(cell, cell.read(folder)) for cell in cells]
    done: Done = [(cell, trial) for cell, trial in found if trial is not None]
    pending = [cell for cell, trial in found if trial is None]
    failed: list[tuple[BenchmarkCell, Failure]] = []
    ran = 0
    progress.start("benchmark", len(cells), len(done))
    if pending:
        begin = pending[0]
        first = f"first {begin.data.name} split {begin.split}, {begin.family}"
        progress.update(len(done), f"{len(done)} of {len(cells)} cells, {first}")
    try:
        for number, result in run_kept(pending, folder, engine):
            cell = pending[number]
            if isinstance(result, Failure):
                failed.append((cell, result))
            else:
                done.append((cell, result))
                ran += 1
            at = f"{cell.data.name} split {cell.split}, {cell.family}"
            finished = len(done) + len(failed)
            progress.update(finished, f"{finished} of {len(cells)} cells, last {at}")
    finally:
        progress.close()
    order = {id(cell): number for number, cell in enumerate(cells)}
    return BenchmarkOutcome(sorted(done, key=lambda pair: order[id(pair[0])]), ran, failed)
