"""BPEst, simulated: 2 s of finger pulse (PPG) -> 2 s of arterial pressure (ABP).

A window has a heart rate f, a phase, a stiffness s, an amplitude a, a baseline and a tilt. They
fix the PPG without noise, so the PPG tells them:

    PPG(t) = baseline + tilt (t - 1) + a pulse(phase - 2 pi f delay(s); s)

A record's pressure is known only up to an offset u and a gain v, both N(0, 1), that no PPG shows:

    ABP(t) = mean(t) + offset_std u + gain_std w(t) v + noise_std e(t)
    mean(t) = diastole(s, a, f) + height(s, a) w(t),   w(t) = pulse(phase; s)

e is a smooth wave of variance 1 at each t. For a record never trained on, every ABP sample given
the PPG is therefore Gaussian with this mean and variance offset_std^2 + gain_std^2 w^2 +
noise_std^2, and that is the truth given here. Windows of a record share u, v and much of their
look: a random split of windows (the paper's) leaks them, and may do better than this truth.
Pressures are not clipped, or else they would not be Gaussian: a few lie outside 50 to 200 mmHg.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rdeepsense.arrays import Floats as Array
from rdeepsense.distributions import Gaussian
from rdeepsense.experiments.tasks.bpest import LENGTH, RATE
from rdeepsense.experiments.tasks.simulate import draws
from rdeepsense.experiments.tasks.task import Task

WINDOWS = 20  # of each record
TIME = np.arange(LENGTH) / RATE

# The bumps of one beat: angle of the peak, sharpness, height and its change with stiffness.
ABP_BUMPS = ((0.0, 14.0, 0.48, -0.14), (0.35, 14.0, 0.24, 0.20), (1.0, 30.0, 0.12, -0.06))
PPG_BUMPS = ((0.0, 6.0, 0.55, -0.10), (0.5, 9.0, 0.22, 0.20), (1.15, 20.0, 0.12, -0.08))
RUN_OFF = (0.5, 1.0, 0.45, 0.0)  # the slow fall of both until the next beat
SKEW = 0.75  # from 0 to 1: how much faster a beat rises than it falls

NOISE_HZ = np.array([0.5, 1.1, 1.9, 2.9, 4.3, 6.1])


class Window(NamedTuple):
    """The cause of a PPG window: one number of each for every row."""

    rate: Array  # Hz
    start: Array  # phase of the first sample
    stiff: Array  # from -1 to 1
    size: Array  # of the pulse, from -1 to 1
    baseline: Array
    tilt: Array  # of the baseline, in units a second

    def phase(self) -> Array:
        """Return the angle of the heart beat at every sample: shape (rows, 250)."""
        return 2 * np.pi * self.rate[:, None] * TIME + self.start[:, None]


def simulate(rows: int, seed: int, windows_per_record: int = WINDOWS) -> Task:
    """Draw `rows` windows, 20 to a record by default."""
    rng = draws.generator(rows, seed)
    record = np.arange(rows, dtype=np.int64) // windows_per_record
    records = int(record[-1]) + 1
    window = windows(record, rng)
    wave = pulse(window.phase(), window.stiff, ABP_BUMPS)
    truth = pressure(window, wave)
    offset, gain = rng.standard_normal((2, records, 1))
    offset_std, gain_std, noise_std = spreads(window)
    abp = truth.mean + offset_std * offset[record] + gain_std * wave * gain[record]
    abp += noise_std * smooth_noise(rows, rng)
    return Task(
        name="BPEst",
        X=ppg(window).astype(np.float32),
        y=abp,
        features=tuple(f"ppg_{i}" for i in range(LENGTH)),
        targets=tuple(f"abp_{i}" for i in range(LENGTH)),
        unit="mmHg",
        source=f"simulated pulse and pressure waves of {records} records, seed {seed}",
        simulated=True,
        groups=record,
        grouped_by="record",
        truth=truth,
    )


def windows(record: npt.NDArray[np.int64], rng: np.random.Generator) -> Window:
    """Draw windows that look alike where they are of the same record."""
    rows = len(record)
    usual = rng.standard_normal((4, int(record[-1]) + 1))
    rate, stiff, size, baseline = 0.9 * usual[:, record] + 0.44 * rng.standard_normal((4, rows))
    return Window(
        rate=1.3 + 0.3 * np.tanh(rate),
        start=rng.uniform(0, 2 * np.pi, rows),
        stiff=np.tanh(0.8 * stiff),
        size=np.tanh(0.7 * size),
        baseline=1.0 + 0.25 * np.tanh(baseline),
        tilt=0.08 * rng.standard_normal(rows),
    )


def ppg(window: Window) -> Array:
    """Return the finger pulse, later than the pressure by a delay that shortens with stiffness."""
    delay = 2 * np.pi * window.rate * (0.20 - 0.04 * window.stiff)
    beat = pulse(window.phase() - delay[:, None], window.stiff, PPG_BUMPS)
    beat *= 1.1 * np.exp(0.5 * window.size)[:, None]
    return beat + window.baseline[:, None] + window.tilt[:, None] * (TIME - 1)


def pressure(window: Window, wave: Array) -> Gaussian:
    """Return the distribution of every ABP sample with this w(t), for a record never met."""
    stiff, size = window.stiff, window.size
    diastole = 60 + 9 * stiff - 6 * size + 25 * (window.rate - 1.3)
    height = 70 + 20 * stiff - 12 * size
    offset_std, gain_std, noise_std = spreads(window)
    std = np.sqrt(offset_std**2 + (gain_std * wave) ** 2 + noise_std**2)
    return Gaussian(diastole[:, None] + height[:, None] * wave, std)


def spreads(window: Window) -> tuple[Array, Array, Array]:
    """Return standard deviations in mmHg of a record's offset, of its gain and of the noise.

    Stiff vessels and faint pulses tell less about the pressure.
    """
    stiff, size = window.stiff[:, None], window.size[:, None]
    return 6 + 2 * stiff, 13 + 4 * stiff - 4 * size, 2.5 - size


def pulse(phase: Array, stiff: Array, bumps: tuple[tuple[float, ...], ...]) -> Array:
    """Return the sum of (height + change s) exp(sharpness (cos(turn - angle) - 1)): a beat a turn.

    turn = phase + SKEW (cos(phase) - 1) runs fast before the peak and slowly after it.
    """
    turn = phase + SKEW * (np.cos(phase) - 1)
    cos, sin = np.cos(turn), np.sin(turn)
    total = np.zeros_like(phase)
    for angle, sharpness, height, change in (*bumps, RUN_OFF):
        bump = np.exp(sharpness * (np.cos(angle) * cos + np.sin(angle) * sin - 1))
        total += (height + change * stiff)[:, None] * bump
    return total


def smooth_noise(rows: int, rng: np.random.Generator) -> Array:
    """Return the sum of (z cos + z' sin) / sqrt(K) over K frequencies: N(0, 1) at every time."""
    angle = 2 * np.pi * NOISE_HZ[:, None] * TIME
    basis = np.concatenate([np.cos(angle), np.sin(angle)]) / np.sqrt(len(NOISE_HZ))
    wave: Array = rng.standard_normal((rows, len(basis))) @ basis
    return wave
