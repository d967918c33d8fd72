"""Cells: one family on one split of one data set, each a JSON file that is there when it is done.

A cell is known by everything that its figures follow from (data, split, estimator and all its
arguments, this package's code); its file name carries a hash of that, so that a changed setting is
another cell and never mistaken for an old one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import rdeepsense
from rdeepsense import __version__
from rdeepsense.experiments.methods import Method, build
from rdeepsense.experiments.uci.datafile import DataSet
from rdeepsense.experiments.uci.trial import Trial, run_trial
from rdeepsense.files import write_whole

# Rooms that no figure of a benchmark follows from.
ELSEWHERE = ("cli", "report", "benchmark", "tasks", "device", "reproduce")


@cache
def code_digest(elsewhere: tuple[str, ...] = ELSEWHERE) -> str:
    """Of the code that figures follow from: a version number does not change with every line.

    `elsewhere` names the rooms, and files as room/file.py, that they do not follow from.
    """
    package, digest = Path(rdeepsense.__file__).parent, hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        if place.parts[0] not in elsewhere and place.as_posix() not in elsewhere:
            digest.update(place.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Cell:
    """What to run."""

    data: DataSet
    split: int
    methods: tuple[Method, ...]  # of one family
    hidden: tuple[int, ...]
    seed: int
    epochs: int | None = None

    @property
    def random_state(self) -> int:
        """Another one for each split, so that the standard errors include the initial weights."""
        return self.seed + self.split

    @property
    def family(self) -> str:
        return self.methods[0].family

    @cached_property
    def key(self) -> dict[str, Any]:
        """Everything that the figures follow from, as JSON has it."""
        model = build(self.methods, "regression", self.hidden, self.random_state, self.epochs)
        key = {
            "dataset": self.data.name,
            "data": self.data.digest,
            "split": self.split,
            "family": self.family,
            "estimator": type(model).__name__,
            "arguments": model.get_params(deep=False),
            "version": __version__,
            "code": code_digest(),
        }
        plain: dict[str, Any] = json.loads(json.dumps(key, default=str))
        return plain

    @property
    def file_name(self) -> str:
        digest = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:10]
        return f"{self.data.name}-{self.split:02d}-{self.family}-{digest}.json"

    def run(self) -> Trial:
        """Fit and judge; takes long."""
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

    def read(self, folder: Path) -> Trial | None:
        """The finished trial; None where there is none, or not of all the methods asked for."""
        trial = self._read(folder)
        if trial is None or any(method.name not in trial["methods"] for method in self.methods):
            return None
        return trial

    def write(self, folder: Path, trial: Trial) -> None:
        """Keep the trial, beside figures of other methods from the same fitted model."""
        before = self._read(folder)
        known = before["methods"] if before else {}
        content = {"key": self.key, **trial, "methods": {**known, **trial["methods"]}}
        write_whole(folder / self.file_name, json.dumps(content, indent=1, allow_nan=False) + "\n")

    def _read(self, folder: Path) -> Trial | None:
        try:
            content = json.loads((folder / self.file_name).read_text())
        except (OSError, ValueError):
            return None
        if not isinstance(content, dict) or content.pop("key", None) != self.key:
            return None
        return content
