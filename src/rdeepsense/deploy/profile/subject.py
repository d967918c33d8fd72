"""A form of a model, ready to be measured, and the model that it is one of."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.fold import fold, save
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.estimators import load

Seconds = Callable[[int], NDArray[np.float64]]

# What a process that runs one prediction reads of itself at its end.
_PEAK = """
import re
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@dataclass(frozen=True)
class Form:
    """A form of the model; `seconds(n)` runs n predictions and gives the time of each."""

    name: str
    what: str
    seconds: Seconds
    weight_bytes: int
    multiply_adds: int
    instructions: Callable[[], int | None] = lambda: None
    peak_bytes: Callable[[], int | None] = lambda: None
    off_by: float | None = None  # how far its mean is from the folded model's, in stds


@dataclass(frozen=True)
class Missing:
    """A form that cannot run here, and why."""

    name: str
    reason: str


class Subject:
    """A model file, the row that is predicted, and a folder for what is made of them."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path, self.folder = path, folder
        self.estimator: Any = load(path)
        self.folded: Folded = fold(self.estimator)
        self.rows: NDArray[Any] = np.asarray(self.estimator.fitted_.kept_rows[0])
        complete = self.rows[np.isfinite(self.rows).all(1)]
        row = _typical(self.folded, complete) if len(complete) else self.folded.centre
        self.row: NDArray[np.float32] = row.astype(np.float32)

    @property
    def multiply_adds(self) -> int:
        """Of one pass."""
        return sum(a * b for a, b in pairwise(self.folded.widths))

    def off_by(self, found: Any) -> float:
        """How far means (first of `found`) or probabilities are from those of the folded model."""
        wanted = self.folded.forward(self.row[None].astype(np.float64))
        scale = 1.0 if self.folded.is_classifier else wanted[1]
        first = wanted if self.folded.is_classifier else wanted[0]
        return float(np.max(np.abs(np.asarray(found[0]) - first) / scale))

    @cached_property
    def row_file(self) -> Path:
        np.save(self.folder / "row.npy", self.row[None])
        return self.folder / "row.npy"

    @cached_property
    def folded_file(self) -> Path:
        save(self.folded, self.folder / "model.folded")
        return self.folder / "model.folded"


def timed(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> Seconds:
    """Times of a call from Python."""

    def seconds(count: int) -> NDArray[np.float64]:
        times = np.empty(count)
        for k in range(count):
            begin = clock()
            call()
            times[k] = clock() - begin
        return times

    return seconds


def peak_of_python(script: str, *arguments: object) -> int | None:
    """Peak memory of a Python process that runs this script; None where /proc does not say."""
    command = [sys.executable, "-c", f"{script}{_PEAK}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    return 1024 * int(done.stdout) if done.returncode == 0 else None


def _typical(folded: Folded, rows: NDArray[Any]) -> NDArray[Any]:
    """The row with the median number of hidden units that fire: C skips the others."""
    h, fired = rows - folded.centre, np.zeros(len(rows))
    for layer in folded.layers[:-1]:
        h = np.maximum(h @ layer.weight.T + layer.bias, 0.0)
        fired += (h > 0).sum(1)
    row: NDArray[Any] = rows[np.argsort(fired, kind="stable")[len(rows) // 2]]
    return row
