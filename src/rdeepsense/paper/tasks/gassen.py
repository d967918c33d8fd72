"""GasSen: the concentrations of two mixed gases from an array of 16 sensors (section 4.1)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats as Array
from rdeepsense.distributions import StudentT
from rdeepsense.errors import InputError
from rdeepsense.paper.tasks import task
from rdeepsense.paper.tasks.task import Task

# --------------------------------------------------------------------------------------------------
# GasSen (section 4.2): concentrations of two mixed gases from 16 sensors
#
# Reads `ethylene_CO.txt` or `ethylene_methane.txt` as published (UCI 322, "Gas sensor array under
# dynamic gas mixtures"): a line of titles, then lines of 19 numbers separated by spaces: seconds,
# the set points of CO (or methane) and of ethylene in ppm, and 16 sensors, at 100 Hz for twelve
# hours. The paper's is the mixture with CO.
#
# The paper splits rows at random, and neighbouring rows are 10 ms apart; groups are ten minutes of
# the recording, for a split that is harder. Lines that do not hold 19 finite numbers are dropped
# and counted in `source`, which names the first of them.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# GasSen, simulated: 16 gas sensors -> carbon monoxide (CO) and ethylene in ppm
#
# A chamber follows concentration steps, with pauses of clean air, as a first-order lag. The sensors
# (4 kinds, 4 of each) read it without noise through sites that both gases compete for, so that they
# saturate and each answers to both, while the baseline of each drifts its own way with one slow
# drift d(t) from -1 to 1:
#
#     occupied_i = (a_i CO + b_i ethylene) / (1 + a_i CO + b_i ethylene)
#     reading_i  = g_i (1 + drift_i d) (1 + s_i occupied_i^p_i)
#
# Sixteen readings tell the three unknowns CO, ethylene and d. The reference analyser that gives
# the targets is noisy, more so at high concentrations and late in the drift:
#
#     y_j = c_j + scale_j T,   scale_j = (floor_j + 0.025 c_j) (1 + 0.5 d),   T ~ Student-t, df 4
#
# and this is the truth given here, of any stretch of time. Targets are not clipped at 0.
# --------------------------------------------------------------------------------------------------

HIGHEST = np.array([533.33, 20.0])  # ppm of CO and ethylene
FLOOR = np.array([2.0, 0.1])  # ppm
DF = 4.0

SECONDS = 5  # between rows
STEP = 20  # rows of one set point
LAG = 3.0  # rows, the chamber's time constant
BLOCK = 600 // SECONDS
DRIFT_ROWS = np.array([700.0, 1900.0, 5300.0])  # the drift's periods

_KINDS = np.array(
    [  # a HIGHEST, b HIGHEST, s, p
        (3.0, 0.8, 5.0, 0.8),
        (0.5, 4.0, 8.0, 0.9),
        (1.2, 1.2, 4.0, 0.7),
        (2.0, 3.0, 6.0, 1.0),
    ]
)
# The array is the same whatever the seed of the rows: its units vary about their kinds.
_UNIT = np.random.default_rng(322)
AFFINITY_CO, AFFINITY_ETHYLENE, STRENGTH, POWER = (
    np.repeat(_KINDS, SENSORS // len(_KINDS), axis=0) * _UNIT.uniform(0.85, 1.15, (SENSORS, 4))
).T
BASE = _UNIT.uniform(300, 900, SENSORS)
DRIFT = _UNIT.uniform(-0.15, 0.25, SENSORS)


def simulate(rows: int, seed: int) -> Task:
    """Draw `rows` rows, 5 s apart, of one long experiment."""
    rng = task.seeded(rows, seed)
    ppm, drift = chamber(rows, rng), slow_drift(rows, rng)
    truth = StudentT(ppm, (FLOOR + 0.025 * ppm) * (1 + 0.5 * drift[:, None]), DF)
    return Task(
        name="GasSen",
        X=readings(ppm, drift).astype(np.float32),
        y=truth.sample(1, rng)[0],
        features=tuple(f"sensor {i}" for i in range(1, SENSORS + 1)),
        targets=("CO", "ethylene"),
        unit="ppm",
        source=f"simulated gas sensors, {rows * SECONDS / 3600:.1f} h, seed {seed}",
        simulated=True,
        groups=np.arange(rows, dtype=np.int64) // BLOCK,
        grouped_by="ten-minute block",
        truth=truth,
    )


def chamber(rows: int, rng: np.random.Generator) -> Array:
    """Return concentrations in ppm at each row: set points after the chamber's lag."""
    steps = -(-rows // STEP) + 1
    level = HIGHEST * rng.random((steps, 2)) * (rng.random((steps, 2)) < 0.85)
    level[rng.random(steps) < 0.2] = 0.0  # a pause of clean air
    age = np.arange(8 * int(LAG))
    response = np.exp(-age / LAG)
    set_point = np.repeat(level, STEP, axis=0)
    ppm = [np.convolve(gas, response / response.sum())[: len(gas)] for gas in set_point.T]
    return np.transpose(ppm)[-rows:]


def slow_drift(rows: int, rng: np.random.Generator) -> Array:
    """Return a mean of slow sines, from -1 to 1."""
    start = rng.uniform(0, 2 * np.pi, len(DRIFT_ROWS))
    angle = 2 * np.pi * np.arange(rows)[:, None] / DRIFT_ROWS + start
    mean: Array = np.sin(angle).mean(axis=1)
    return mean


def readings(ppm: Array, drift: Array) -> Array:
    """Return the readings of the 16 sensors, of shape (rows, 16)."""
    co, ethylene = (ppm / HIGHEST).T
    load = AFFINITY_CO * co[:, None] + AFFINITY_ETHYLENE * ethylene[:, None]
    gain: Array = 1 + STRENGTH * (load / (1 + load)) ** POWER
    return BASE * (1 + DRIFT * drift[:, None]) * gain
