"""GasSen, simulated: 16 gas sensors -> carbon monoxide (CO) and ethylene in ppm.

A chamber follows concentration steps, with pauses of clean air, as a first-order lag. The sensors
(4 kinds, 4 of each) read it without noise through sites that both gases compete for, so that they
saturate and each answers to both, while the baseline of each drifts its own way with one slow
drift d(t) from -1 to 1:

    occupied_i = (a_i CO + b_i ethylene) / (1 + a_i CO + b_i ethylene)
    reading_i  = g_i (1 + drift_i d) (1 + s_i occupied_i^p_i)

Sixteen readings tell the three unknowns CO, ethylene and d. The reference analyser that gives
the targets is noisy, more so at high concentrations and late in the drift:

    y_j = c_j + scale_j T,   scale_j = (floor_j + 0.025 c_j) (1 + 0.5 d),   T ~ Student-t, df 4

and this is the truth given here, of any stretch of time. Targets are not clipped at 0.
"""

from __future__ import annotations

import numpy as np

from rdeepsense.arrays import Floats as Array
from rdeepsense.distributions import StudentT
from rdeepsense.experiments.tasks.gassen import SENSORS
from rdeepsense.experiments.tasks.simulate import draws
from rdeepsense.experiments.tasks.task import Task

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
    rng = draws.generator(rows, seed)
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
