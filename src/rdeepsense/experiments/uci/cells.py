"""Cells: one family on one split of one data set, each a JSON file that is there when it is done.

A cell is known by everything that its figures follow from (data, split, estimator and all its
arguments, this package's code); its file name carries a hash of that, so that a changed setting is
another cell and never mistaken for an old one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path

from rdeepsense import __version__
from rdeepsense.experiments.cell_file import read_cell, write_cell
from rdeepsense.experiments.code_digest import code_digest
from rdeepsense.experiments.contender import contender
from rdeepsense.experiments.methods import FAMILIES, Method
from rdeepsense.experiments.uci.datafile import DataSet
from rdeepsense.experiments.uci.trial import FamilyTrial, run_trial

# Code that no figure of a benchmark follows from.
IRRELEVANT_CODE = ("cli", "engines", "deploy", "plot", *(f"experiments/{room}" for room in (
    "paper", "report", "tasks", "uci", "cell_file.py", "compare.py", "compare_cells.py",
    "comparison.py", "completing.py", "kept_work.py", "machine.py", "sensor.py", "text_table.py",
    "peers/naming.py")))  # fmt: skip


@dataclass(frozen=True)
class BenchmarkCell:
    """A family to fit and score on one split of one data set."""

    data: DataSet
    split: int
    methods: tuple[Method, ...]  # of one family
    hidden: tuple[int, ...] | str
    seed: int
    epochs: int | None = None

    @property
    def random_state(self) -> int:
        """Another one for each split, so that the standard errors include the initial weights."""
        return self.seed + self.split

    @property
    def family(self) -> str:
        """The name of the family that the methods belong to."""
        return self.methods[0].family

    @cached_property
    def key(self) -> dict[str, object]:
        """Everything that the figures follow from, as JSON has it."""
        model = contender(self.methods, "regression", self.hidden, self.random_state, self.epochs)
        key = {
            "dataset": self.data.name,
            "data": self.data.digest,
            "split": self.split,
            "family": self.family,
            "estimator": type(model).__name__,
            "arguments": model.get_params(deep=False),
            "version": __version__,
            "code": code_digest(IRRELEVANT_CODE),
        }
        family = FAMILIES[self.family]
        if family.is_peer and family.library:
            key["library"] = f"{family.library} {metadata.version(family.library)}"
        plain: dict[str, object] = json.loads(json.dumps(key, default=str))
        return plain

    @property
    def file_name(self) -> str:
        """The file that keeps the trial."""
        digest = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:10]
        return f"{self.data.name}-{self.split:02d}-{self.family}-{digest}.json"

    def run(self) -> FamilyTrial:
        """Fit and score; takes long."""
        test = self.data.test[self.split]
        x, y = self.data.x, self.data.y
        return run_trial(
            self.methods,
            "regression",
            (x[~test], y[~test]),
            (x[test], y[test]),
            self.hidden,
            self.random_state,
            epochs=self.epochs,
        )

    def read(self, folder: Path) -> FamilyTrial | None:
        """Return the finished trial; None without one, or not of all the methods asked for."""
        trial = self._read(folder)
        if trial is None or any(method.name not in trial.methods for method in self.methods):
            return None
        return trial

    def write(self, folder: Path, trial: FamilyTrial) -> None:
        """Keep the trial, beside scores of other methods from the same fitted model."""
        before = self._read(folder)
        if before is not None:
            trial = replace(trial, methods={**before.methods, **trial.methods})
        write_cell(folder / self.file_name, self.key, trial.to_json())

    def _read(self, folder: Path) -> FamilyTrial | None:
        return read_cell(folder / self.file_name, self.key, FamilyTrial.from_json)
