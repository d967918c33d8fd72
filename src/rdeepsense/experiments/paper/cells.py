"""Cells: the pieces of a run, each a JSON file that is there, whole, when it is done.

A cell is known by everything that its figures follow from: data, settings, seed, the code. Its
file name carries a hash of that, so another setting is another cell.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from rdeepsense import __version__
from rdeepsense.experiments.cell_file import read_cell, write_cell
from rdeepsense.experiments.code_digest import code_digest
from rdeepsense.experiments.methods import FAMILIES, Method, by_family
from rdeepsense.experiments.paper.presets import ALPHAS
from rdeepsense.experiments.paper.study import Study, TaskFacts
from rdeepsense.experiments.paper.trainings import AlphaTraining, Costs, FamilyTraining
from rdeepsense.experiments.records import Record

# Code that no figure of a cell follows from, or whose part in it is in the cell's key.
IRRELEVANT_CODE = ("cli", "engines", "plot", *(f"experiments/{name}" for name in (
    "report", "peers", "cell_file.py", "compare.py", "compare_cells.py", "comparison.py",
    "completing.py", "contender.py", "kept_work.py", "machine.py", "sensor.py", "text_table.py",
    "uci/run.py",
    *(f"paper/{name}.py" for name in (
        "claims", "evidence", "presets", "published", "results", "rules", "run", "seeds",
        "task_results")))))  # fmt: skip

# About how long a cell takes, relative to others: the time left follows from it.
WEIGHTS = {"RDeepSense": 12, "RDeepSense-paper": 3, "MCDrop": 3, "SSP": 4, "SSP-paper": 3, "GP": 4}
TASK_WEIGHTS = {"BPEst": 6, "HHAR": 3}


Content = TaskFacts | FamilyTraining | AlphaTraining | Costs


@dataclass(frozen=True)
class FinishedCell(Record):
    """The work of a cell, how long it took and when it was done."""

    content: Content
    seconds: float
    date: str


@dataclass(frozen=True)
class StudyCell:
    """A piece of work: the facts of a `task`, a `family`, an `alpha` of the study, or `cost`."""

    study: Study
    task: str
    kind: str
    methods: tuple[Method, ...] = ()  # of one family; for the cost, all
    alpha: float | None = None
    repeat: int = 0  # which training of `family` and `alpha`

    @property
    def seed(self) -> int:
        """The seed of the training; the rows and their parts follow from the study's."""
        return self.study.seed + self.repeat

    @property
    def label(self) -> str:
        """A name to show, and to begin the name of the file with."""
        what = {"task": "data", "cost": "time and energy", "alpha": f"alpha {self.alpha}"}
        words = f"{self.task}, {what.get(self.kind) or self.methods[0].family}"
        return words if self.kind in ("task", "cost") else f"{words}, seed {self.seed}"

    @property
    def weight(self) -> int:
        """About how long it takes, relative to others."""
        own = WEIGHTS.get(self.methods[0].family, 1) if self.kind == "family" else 1
        return own * TASK_WEIGHTS.get(self.task, 1)

    @cached_property
    def key(self) -> dict[str, object]:
        """Everything that the figures follow from, as JSON has it."""
        preset = asdict(self.study.preset)
        del preset["rows"]  # the data's key has those of this task
        del preset["seeds"]  # a training does not know how many others there are
        key = {
            "kind": self.kind,
            "task": self.task,
            "data": self.study.data_key(self.task),
            "preset": preset,
            "methods": [method.name for method in self.methods],
            "options": {m.family: asdict(FAMILIES[m.family]) for m in self.methods},
            "alpha": self.alpha,
            "seed": self.seed,
            "version": __version__,
            "code": code_digest(IRRELEVANT_CODE),
        }
        plain: dict[str, object] = json.loads(json.dumps(key))
        return plain

    @property
    def file_name(self) -> str:
        """The file that keeps the finished cell."""
        digest = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:10]
        what = self.label.replace(", ", "-").replace(" ", "-")
        return f"{what}-{digest}.json"

    def run(self) -> FinishedCell:
        """Do the work; takes long."""
        from rdeepsense.experiments.paper import fits  # late: it needs torch, finished cells do not

        begin = time.perf_counter()
        parts = self.study.load(self.task)
        content: Content
        if self.kind == "task":
            content = parts.describe()
        elif self.kind == "cost":
            content = fits.measure_cost(self.study, parts, self.methods)
        elif self.alpha is not None:
            content = fits.fit_alpha(self.study, parts, self.alpha, self.seed)
        else:
            content = fits.fit_family(self.study, parts, self.methods, self.seed)
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        return FinishedCell(content, time.perf_counter() - begin, today)

    def read(self, folder: Path) -> FinishedCell | None:
        """Return the finished cell, or None."""
        return read_cell(folder / self.file_name, self.key, FinishedCell.from_json)

    def write(self, folder: Path, finished: FinishedCell) -> None:
        """Keep the finished cell."""
        write_cell(folder / self.file_name, self.key, finished.to_json())


def cells_of(study: Study, tasks: Sequence[str], methods: Sequence[Method]) -> list[StudyCell]:
    """Return all cells, task by task and seed by seed, the long ones first; the timing last."""
    cells: list[StudyCell] = []
    families = sorted(by_family(methods).values(), key=lambda f: -WEIGHTS.get(f[0].family, 1))
    for task in tasks:
        cells.append(StudyCell(study, task, "task"))
        for repeat in range(study.preset.seeds):
            cells += [StudyCell(study, task, "family", own, repeat=repeat) for own in families]
            if any(method.family == "RDeepSense-paper" for method in methods):
                cells += [StudyCell(study, task, "alpha", (), alpha, repeat) for alpha in ALPHAS]
    return cells + [StudyCell(study, task, "cost", tuple(methods)) for task in tasks]
