"""Cells: one seed of one study, each a JSON file that is there when it is done.

As with `benchmark uci`, a cell is known by everything that its figures follow from, and its file
name carries a hash of that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rdeepsense import __version__
from rdeepsense._progress import Progress
from rdeepsense.engines import Engine, Failure
from rdeepsense.errors import InputError
from rdeepsense.experiments.cell_file import read_cell, write_cell
from rdeepsense.experiments.code_digest import code_digest
from rdeepsense.experiments.drift import gas, new_people
from rdeepsense.experiments.drift.files import GAS, PEOPLE, PRESSURE, digest
from rdeepsense.experiments.drift.trial import DriftTrial
from rdeepsense.experiments.kept_work import run_kept

# Code that no figure of a study follows from.
IRRELEVANT_CODE = ("cli", "engines", "deploy", "plot", *(f"experiments/{room}" for room in (
    "paper", "report", "uci", "peers", "cell_file.py", "compare.py", "compare_cells.py",
    "comparison.py", "kept_work.py", "machine.py", "text_table.py", "drift/cells.py",
    "drift/results.py")))  # fmt: skip


@dataclass(frozen=True)
class Study:
    """A study: what it is about, the files that it reads, and how one seed of it is judged."""

    title: str
    unit: str
    files: tuple[str, ...]
    judge: Callable[[Path, int], DriftTrial]
    remark: str = ""


STUDIES: Mapping[str, Study] = {
    "gas": Study(
        "Gas sensors: batches 1 to 6, then 8 and 9",
        "ppm",
        (GAS,),
        gas.study,
        "The form of the mixture was settled with batches 8 and 9 in view.",
    ),
    "people": Study(
        "Activity: users never trained on",
        "",
        (PEOPLE,),
        new_people.activity,
        "Inputs and dropout were settled with test figures of these seeds in view.",
    ),
    "pressure": Study(
        "Blood pressure: blocks of records never trained on", "mmHg", PRESSURE, new_people.pressure
    ),
    "pressure-by-record": Study(
        "Blood pressure: records never trained on, their neighbours are",
        "mmHg",
        PRESSURE,
        new_people.pressure_by_record,
    ),
}


@dataclass(frozen=True)
class DriftCell:
    """One seed of one study."""

    task: str
    folder: Path
    data: str  # digest of the files
    seed: int

    @cached_property
    def key(self) -> dict[str, object]:
        """Everything that the figures follow from, as JSON has it."""
        return {
            "task": self.task,
            "data": self.data,
            "seed": self.seed,
            "version": __version__,
            "code": code_digest(IRRELEVANT_CODE),
        }

    @property
    def file_name(self) -> str:
        """The file that keeps the trial."""
        text = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:10]
        return f"{self.task}-{self.seed:02d}-{text}.json"

    def run(self) -> DriftTrial:
        """Fit and judge; takes minutes."""
        return STUDIES[self.task].judge(self.folder, self.seed)

    def read(self, folder: Path) -> DriftTrial | None:
        """Return the finished trial; None without one."""
        return read_cell(folder / self.file_name, self.key, DriftTrial.from_json)

    def write(self, folder: Path, trial: DriftTrial) -> None:
        """Keep the trial."""
        write_cell(folder / self.file_name, self.key, trial.to_json())


@dataclass(frozen=True)
class DriftOutcome:
    """The finished cells, how many of them ran now, and which ones failed."""

    done: list[tuple[DriftCell, DriftTrial]]
    ran: int
    failed: list[tuple[DriftCell, Failure]]


def cells_of(data: Path, tasks: Sequence[str], seeds: int) -> list[DriftCell]:
    """Return all cells, seed by seed, so that a stopped run has about equally many of each."""
    for task in tasks:
        if task not in STUDIES:
            raise InputError(f"--task {task!r}; accepted: {', '.join(STUDIES)}")
    digests = {task: digest(data, STUDIES[task].files) for task in tasks}
    place = data.resolve()  # other processes may stand elsewhere
    return [DriftCell(task, place, digests[task], s) for s in range(seeds) for task in tasks]


def run_cells(
    cells: Sequence[DriftCell], folder: Path, engine: Engine, progress: Progress
) -> DriftOutcome:
    """Run what is not in `folder` yet; each cell is written there by whoever runs it."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {number: trial for number, cell in enumerate(cells) if (trial := cell.read(folder))}
    pending = [number for number in range(len(cells)) if number not in found]
    failed, before = [], len(found)
    progress.start("drift", len(cells), before)
    if pending:
        first = cells[pending[0]]
        progress.update(before, f"{before} of {len(cells)} cells, first {first.task} {first.seed}")
    try:
        for place, result in run_kept([cells[n] for n in pending], folder, engine):
            cell = cells[pending[place]]
            if isinstance(result, Failure):
                failed.append((cell, result))
            else:
                found[pending[place]] = result
            done = len(found) + len(failed)
            progress.update(done, f"{done} of {len(cells)} cells, last {cell.task} {cell.seed}")
    finally:
        progress.close()
    finished = [(cells[number], found[number]) for number in sorted(found)]
    return DriftOutcome(finished, len(found) - before, failed)
