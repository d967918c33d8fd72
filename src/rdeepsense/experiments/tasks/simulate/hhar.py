"""HHAR, simulated: 4.8 s of accelerometer and gyroscope -> one of six activities.

How somebody moves is a vector theta of seven numbers: the logarithms of cadence, strength of the
acceleration, speed of rotation, share of the second harmonic and gain of the device, and the pitch
and roll at which it is carried. Given the activity k,

    theta = centre_k + user + unit + own,   each of the last three N(0, diagonal)

with one draw of `user` for each user and one of `unit` for each of the user's two devices. For a
user never trained on theta is thus Gaussian with the sum of the variances, and Bayes gives

    p(k | theta) proportional to N(theta; centre_k, user^2 + unit^2 + own_k^2)

(all activities are equally frequent), which is the truth given here. The window follows from theta
and a phase that has nothing to do with the activity, without noise; the network sees its spectra,
840 numbers that tell theta. There are 30 users, not the paper's 9: the truth is that of all users
there could be, and those trained on should stand for them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rdeepsense.arrays import Floats as Array
from rdeepsense.distributions import Categorical
from rdeepsense.experiments.tasks.hhar import ACTIVITIES, LENGTH, RATE, spectra, spectra_names
from rdeepsense.experiments.tasks.simulate import draws
from rdeepsense.experiments.tasks.task import Task

CLASSES = tuple(ACTIVITIES.values())
USERS, UNITS = 30, 2
GRAVITY = 9.81  # m/s^2

# For each activity: cadence in Hz, acceleration in m/s^2, rotation in rad/s, share of the second
# harmonic, gain; pitch and roll in radians.
_USUAL = np.array(
    [
        (1.25, 1.40, 0.80, 0.30, 1.0, 0.70, 0.10),  # biking
        (0.80, 0.14, 0.05, 0.30, 1.0, 0.95, 0.15),  # sitting
        (0.80, 0.18, 0.06, 0.30, 1.0, 0.20, 0.00),  # standing
        (1.85, 2.40, 0.90, 0.50, 1.0, 0.20, 0.00),  # walking
        (1.50, 2.00, 1.20, 0.40, 1.0, 0.45, 0.00),  # stairs up
        (1.90, 3.70, 1.30, 0.70, 1.0, 0.15, 0.05),  # stairs down
    ]
)
CENTRES = np.hstack([np.log(_USUAL[:, :5]), _USUAL[:, 5:]])
SPREAD = np.array([0.14, 0.30, 0.30, 0.30, 0.05, 0.26, 0.20])
USER, UNIT = 0.35 * SPREAD, 0.25 * SPREAD
# Somebody on a bicycle or on a chair may move in more ways than a walker.
OWN = np.array([1.1, 1.0, 0.9, 0.8, 0.9, 0.9])[:, None] * SPREAD


def simulate(rows: int, seed: int) -> Task:
    """Draw `rows` windows of 30 users."""
    rng = draws.generator(rows, seed)
    user = np.arange(rows, dtype=np.int64) % USERS
    y, theta = movements(user, rng)
    start = rng.uniform(0, 2 * np.pi, rows)
    blocks = np.array_split(np.arange(rows), 1 + rows // 2_000)  # bounds the memory of the windows
    X = np.concatenate([spectra(windows(theta[block], start[block])) for block in blocks])
    return Task(
        name="HHAR",
        X=X,
        y=y,
        features=spectra_names(),
        targets=("activity",),
        unit="",
        source=f"simulated body motion of {USERS} users, seed {seed}",
        simulated=True,
        groups=user,
        grouped_by="user",
        classes=CLASSES,
        truth=posterior(theta),
        split_by="groups",
    )


def movements(
    user: npt.NDArray[np.int64], rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], Array]:
    """Draw the activity of each row and how this user does it: theta, of shape (rows, 7)."""
    users, rows, size = int(user.max()) + 1, len(user), len(SPREAD)
    activity = rng.integers(len(CLASSES), size=rows)
    unit = rng.integers(UNITS, size=rows)
    theta = CENTRES[activity] + OWN[activity] * rng.standard_normal((rows, size))
    theta += (USER * rng.standard_normal((users, size)))[user]
    theta += (UNIT * rng.standard_normal((users, UNITS, size)))[user, unit]
    return activity, theta


def posterior(theta: Array) -> Categorical:
    """Return p(activity | theta) for a user never met, by Bayes."""
    variance = USER**2 + UNIT**2 + OWN**2
    gap = (theta[:, None] - CENTRES) ** 2 / variance
    log_p = -0.5 * (gap + np.log(variance)).sum(axis=-1)
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return Categorical(p / p.sum(axis=1, keepdims=True))


def windows(theta: Array, start: Array) -> Array:
    """Return acceleration (m/s^2) and rotation (rad/s) along three axes: shape (rows, 240, 6).

    The body moves up and down and to and fro once a step; gravity shows how the device is held.
    """
    cadence, strength, rotation, harmonic, gain = np.exp(theta[:, :5]).T[..., None]
    pitch, roll = theta[:, 5:].T
    phase = 2 * np.pi * cadence * np.arange(LENGTH) / RATE + start[:, None]
    down = np.array([np.sin(pitch), np.cos(pitch) * np.sin(roll), np.cos(pitch) * np.cos(roll)])
    ahead = np.array([np.cos(pitch), -np.sin(pitch) * np.sin(roll), -np.sin(pitch) * np.cos(roll)])
    bounce = GRAVITY + strength * (np.cos(phase) + harmonic * np.cos(2 * phase))
    sway = 0.5 * strength * np.sin(phase + 0.6)
    turn = (np.cos(phase + 0.7), 0.6 * harmonic * np.cos(2 * phase + 0.2), 0.4 * np.sin(phase))
    moved = gain * (down[..., None] * bounce + ahead[..., None] * sway)
    return np.concatenate([moved, rotation * np.array(turn)]).transpose(1, 2, 0)
