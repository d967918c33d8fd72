"""HHAR, simulated as a phone's log: sample after sample of users who change what they do.

A recording is one way to move, theta of `simulate.hhar`, whose phase goes on: windows that follow
each other, with the phase of each where the one before ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.experiments.tasks.hhar import LENGTH, RATE
from rdeepsense.experiments.tasks.simulate.hhar import CENTRES, CLASSES, OWN, SPREAD, USER, windows

SENSORS = {"accelerometer": ("ax", "ay", "az"), "gyroscope": ("gx", "gy", "gz")}
CHANNELS = tuple(name for own in SENSORS.values() for name in own)
UNITS = ("m/s2", "m/s2", "m/s2", "rad/s", "rad/s", "rad/s")
NOISE = np.array([0.15, 0.15, 0.15, 0.05, 0.05, 0.05])  # of a sample
PAUSE = 10.0  # seconds between two recordings

Log = dict[str, NDArray[Any]]


def simulate_log(
    users: Sequence[int], seconds: float, seed: int, repeats: int = 1, pause: float = PAUSE
) -> Log:
    """Return columns t, ax ... gz, user, recording, activity; each user does everything.

    A user is drawn by seed and number, so that another call can have others of the same kind.
    """
    parts: list[Log] = []
    for user in users:
        rng = np.random.default_rng((seed, user))
        own, clock = USER * rng.standard_normal(len(SPREAD)), 0.0
        for activity in [int(k) for _ in range(repeats) for k in rng.permutation(len(CLASSES))]:
            drawn = OWN[activity] * rng.standard_normal(len(SPREAD))
            values = _recording(CENTRES[activity] + own + 0.5 * drawn, seconds, rng)
            columns = dict(zip(CHANNELS, values.T, strict=True))
            texts = {"user": f"user {user}", "activity": CLASSES[activity]}
            parts.append(
                {"t": clock + np.arange(len(values)) / RATE, **columns}
                | {name: np.full(len(values), text) for name, text in texts.items()}
                | {"recording": np.full(len(values), len(parts))}
            )
            clock += seconds + pause
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _recording(theta: NDArray[Any], seconds: float, rng: np.random.Generator) -> NDArray[Any]:
    """Return samples (times, channels)."""
    count = -(-int(seconds * RATE) // LENGTH)
    turn = 2 * np.pi * np.exp(theta[0]) * LENGTH / RATE
    starts = rng.uniform(0, 2 * np.pi) + turn * np.arange(count)
    values = windows(np.tile(theta, (count, 1)), starts).reshape(-1, len(CHANNELS))
    noisy = values[: int(seconds * RATE)]
    found: NDArray[Any] = noisy + NOISE * rng.standard_normal(noisy.shape)
    return found
