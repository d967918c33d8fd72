"""GasSen (section 4.2): the concentrations of two mixed gases from an array of 16 sensors.

Reads `ethylene_CO.txt` or `ethylene_methane.txt` as published (UCI 322, "Gas sensor array under
dynamic gas mixtures"): a line of titles, then lines of 19 numbers separated by spaces: seconds, the
set points of CO (or methane) and of ethylene in ppm, and 16 sensors, at 100 Hz for twelve hours.
The paper's is the mixture with CO.

The paper splits rows at random, and neighbouring rows are 10 ms apart; groups are ten minutes of
the recording, for a split that is harder. Lines that do not hold 19 finite numbers are dropped and
counted in `source`, which names the first of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rdeepsense.errors import InputError
from rdeepsense.experiments.tasks.task import Task

Numbers = NDArray[np.float32]
FILES = {"CO": "ethylene_CO.txt", "methane": "ethylene_methane.txt"}
SENSORS = 16
COLUMNS = 3 + SENSORS
BATCH = 50_000
GROUP_SECONDS = 600
LARGEST = float(np.finfo(np.float32).max)
MOST_UNREADABLE = 0.01  # of the lines; beyond, it is another file than it should be


def load(folder: Path, mixture: str = "CO", every: int = 1, batch: int = BATCH) -> Task:
    """Return every n-th line of the recording of one mixture with ethylene: `CO` or `methane`.

    `batch` lines of text are held at a time.
    """
    if mixture not in FILES:
        raise InputError(f"mixture = {mixture!r} is unknown; accepted: {', '.join(FILES)}")
    if every < 1:
        raise InputError(f"every = {every}: 1 keeps each line, 2 every second, and so on")
    path = folder / FILES[mixture]
    if not path.is_file():
        raise InputError(f"{folder}: holds no file {path.name}")
    X, y, seconds, source = _read(path, every, batch)
    return Task(
        name="GasSen",
        X=X,
        y=y,
        features=tuple(f"sensor {number}" for number in range(1, SENSORS + 1)),
        targets=(mixture, "ethylene"),
        unit="ppm",
        source=source,
        simulated=False,
        groups=(seconds // GROUP_SECONDS).astype(np.int64),
        grouped_by="ten-minute block",
    )


def _read(path: Path, every: int, batch: int) -> tuple[Numbers, Numbers, Numbers, str]:
    """Return sensors, concentrations, seconds, and where they come from."""
    tables: list[Numbers] = []
    total, dropped, first = 0, 0, ""
    for number, lines in _batches(path, every, batch):
        table, bad = _numbers(lines)
        tables.append(table)
        total, dropped = total + len(table) + len(bad), dropped + len(bad)
        if bad and not first:
            first = f"{path}: line {number + every * bad[0]} {_fault(lines[bad[0]])}"
    if not total:
        raise InputError(f"{path}: has no lines of numbers")
    if dropped > MOST_UNREADABLE * total:
        raise InputError(f"{first}; {dropped:,} of {total:,} lines cannot be read")
    which = "" if every == 1 else f", one line in {every}"
    source = f"UCI 322, {path.name}{which}: {total - dropped:,} of {total:,} lines"
    if dropped:
        source += f"; dropped {dropped:,} unreadable, the first: {first}"
    X, y, seconds = (
        np.concatenate([table[:, part] for table in tables])
        for part in (slice(3, None), slice(1, 3), 0)
    )
    return X, y, seconds, source


def _batches(path: Path, every: int, batch: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines to keep, some at a time, with the number of the first; no titles."""
    with path.open(encoding="utf-8", errors="replace") as file:
        number = 1 if _fault(file.readline()) == "" else 2
        file.seek(0)
        kept = islice(file, number - 1, None, every)
        while lines := list(islice(kept, batch)):
            yield number, lines
            number += every * len(lines)


def _numbers(lines: list[str]) -> tuple[Numbers, list[int]]:
    """Return the rows that can be read, and the indices of lines that cannot and are not empty."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy's, when all lines are empty
            table = np.loadtxt(lines, dtype=np.float32, comments=None, ndmin=2)
        if table.shape == (len(lines), COLUMNS) and np.isfinite(table).all():
            return table, []
    except (ValueError, UserWarning):
        pass
    good = [line.split() for line in lines if not _fault(line)]
    bad = [index for index, line in enumerate(lines) if line.strip() and _fault(line)]
    return np.array(good, dtype=np.float32).reshape(-1, COLUMNS), bad


def _fault(line: str) -> str:
    """Return the fault of a line; empty where it holds what it should."""
    fields = line.split()
    if len(fields) != COLUMNS:
        return f"has {len(fields)} fields instead of {COLUMNS}"
    for field in fields:
        try:
            if abs(float(field)) <= LARGEST:
                continue
        except ValueError:
            pass
        return f"holds {field[:40]!r} for a number"
    return ""
