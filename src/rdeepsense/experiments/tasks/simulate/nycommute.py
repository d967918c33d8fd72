"""NYCommute, simulated: where a trip begins and ends and the time of day -> its minutes.

The usual time of a trip is known from its inputs:

    median = 2 + 60 km / speed,   speed = 24 (1 + km / (km + 10)) / (1 + congestion) km/h
    congestion = (rush hours + business hours) where the trip runs, highest in midtown

and the time it takes has two heavy tails, with a spread that depends on the inputs too:

    minutes = median exp(spread z)                            98.36 % of the trips
            = median exp(detour + wide spread z)                1.5 %, errands and jams
            ~ U(1380, 1440)                                    0.14 %, meters left on for a day

z ~ N(0, 1) has a small part that all trips of a day share; an unseen day has z ~ N(0, 1) again,
so the truth is exactly this mixture. The share of broken meters gives the standard deviation of
the paper's data (52.8 min).
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
from scipy import special

from rdeepsense.arrays import Floats as Array
from rdeepsense.distributions import Distribution
from rdeepsense.distributions import base as checks
from rdeepsense.distributions.base import Seed
from rdeepsense.experiments.tasks.nycommute import FEATURES
from rdeepsense.experiments.tasks.simulate import draws
from rdeepsense.experiments.tasks.task import Task

TRIPS = 250  # of each day
DAY_SHARE = 0.04  # of the variance of z

BROKEN, ERRAND = 0.0014, 0.015
BROKEN_FROM, BROKEN_TO = 1380.0, 1440.0
DETOUR, ERRAND_SPREAD = 0.6, 0.7  # of log minutes

# Where trips begin and end: share, km east and north of Times Square, spread along and across
# the avenues, which run 29 degrees east of north.
TIMES_SQUARE = np.array([-73.985, 40.757])
KM_PER_DEGREE = np.array([84.3, 111.1])
AVENUES = np.deg2rad(29.0)
PLACES = np.array(
    [
        (0.62, 0.3, -0.2, 2.8, 0.8),  # midtown and downtown
        (0.16, 1.9, 3.6, 2.2, 0.9),  # uptown
        (0.12, 2.5, -7.5, 3.0, 2.5),  # Brooklyn
        (0.06, 9.4, 2.2, 0.5, 0.5),  # La Guardia
        (0.04, 17.4, -12.5, 0.6, 0.6),  # Kennedy
    ]
)
LOCAL = 0.8  # of the trips end this close to where they began, in km along and across
LOCAL_SPREAD = (1.7, 0.9)
# How many trips begin in each hour of the day.
BY_HOUR = np.array(
    [38, 28, 20, 15, 11, 10, 22, 40, 50, 50, 49, 50, 52, 52, 54, 53, 47, 54, 64, 64, 58, 56, 54, 48]
)


class TripMinutes(Distribution):
    """The mixture above, given the median and the spread of log minutes of each trip."""

    median: Array
    spread: Array

    def __init__(self, median: npt.ArrayLike, spread: npt.ArrayLike) -> None:
        middle, width = checks.broadcast(
            median=checks.positive("median", median), spread=checks.positive("spread", spread)
        )
        self._freeze(median=middle, spread=width)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.median.shape

    def _log_normals(self) -> tuple[tuple[float, Array, Array], ...]:
        """Return (share, mean, std) of log minutes, of usual trips and of errands."""
        usual, width = np.log(self.median), self.spread
        return (
            (1 - ERRAND - BROKEN, usual, width),
            (ERRAND, usual + DETOUR, np.full_like(width, ERRAND_SPREAD)),
        )

    @property
    def mean(self) -> Array:
        trips = [share * np.exp(m + s * s / 2) for share, m, s in self._log_normals()]
        return cast(Array, sum(trips) + BROKEN * (BROKEN_FROM + BROKEN_TO) / 2)

    @property
    def std(self) -> Array:
        squares = [share * np.exp(2 * m + 2 * s * s) for share, m, s in self._log_normals()]
        broken = (BROKEN_FROM**2 + BROKEN_FROM * BROKEN_TO + BROKEN_TO**2) / 3
        return np.sqrt(sum(squares) + BROKEN * broken - self.mean**2)

    def log_prob(self, y: npt.ArrayLike) -> Array:
        """Return the logarithm of the density at y minutes, -inf where no trip can end."""
        minutes = checks.numbers("y", y, self.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_y = np.where(minutes > 0, np.log(minutes), -np.inf)
            trips = [
                share * np.exp(-(((log_y - m) / s) ** 2) / 2) / (s * minutes * np.sqrt(2 * np.pi))
                for share, m, s in self._log_normals()
            ]
            broken = (minutes >= BROKEN_FROM) & (minutes <= BROKEN_TO)
            density = np.where(minutes > 0, sum(trips), 0.0)
            density += BROKEN / (BROKEN_TO - BROKEN_FROM) * broken
            return np.log(density)

    def cdf(self, y: npt.ArrayLike) -> Array:
        """Return P(a trip ends within y minutes)."""
        minutes = checks.numbers("y", y, self.shape)
        log_y = np.log(np.maximum(minutes, 1e-300))
        trips = [share * special.ndtr((log_y - m) / s) for share, m, s in self._log_normals()]
        broken = np.clip((minutes - BROKEN_FROM) / (BROKEN_TO - BROKEN_FROM), 0, 1)
        return cast(Array, sum(trips) + BROKEN * broken)

    def minutes(self, kind: Array, z: Array) -> Array:
        """Return the trip whose kind is chosen by kind ~ U(0, 1) and whose luck is z ~ N(0, 1)."""
        (_, usual, width), (_, errand, wide) = self._log_normals()
        share = kind / BROKEN  # below 1 for broken meters only, and uniform there
        broken = BROKEN_FROM + (BROKEN_TO - BROKEN_FROM) * share
        trip = np.where(kind < BROKEN + ERRAND, errand + wide * z, usual + width * z)
        return np.where(share < 1, broken, np.exp(trip))

    def sample(self, n: int, rng: Seed) -> Array:
        """Draw n independent values of every entry, of shape (n, *shape)."""
        source, shape = checks.generator(rng), (checks.count(n), *self.shape)
        return self.minutes(source.random(shape), source.standard_normal(shape))


def simulate(rows: int, seed: int) -> Task:
    """Draw `rows` trips, about 250 a day."""
    rng = draws.generator(rows, seed)
    days = -(-rows // TRIPS)
    day = rng.integers(days, size=rows)
    hour = rng.choice(24, rows, p=BY_HOUR / BY_HOUR.sum()) + rng.random(rows)
    start, end = km_places(rows, rng), km_places(rows, rng)
    near = start + km_along_streets(*LOCAL_SPREAD, rows, rng)
    end = np.where(rng.random(rows) < LOCAL, near, end)
    X = np.column_stack([*degrees(start), *degrees(end), hour]).astype(np.float32)
    truth = truth_at(X.astype(np.float64))
    z = np.sqrt(DAY_SHARE) * rng.standard_normal(days)[day]
    z += np.sqrt(1 - DAY_SHARE) * rng.standard_normal(rows)
    return Task(
        name="NYCommute",
        X=X,
        y=truth.minutes(rng.random(rows), z),
        features=FEATURES,
        targets=("duration",),
        unit="min",
        source=f"simulated taxi trips of {days} days, seed {seed}",
        simulated=True,
        groups=day.astype(np.int64),
        grouped_by="day",
        truth=truth,
    )


def km_places(rows: int, rng: np.random.Generator) -> Array:
    """Draw where trips begin or end, in km east and north of Times Square: shape (2, rows)."""
    chosen = PLACES[rng.choice(len(PLACES), rows, p=PLACES[:, 0])]
    km: Array = km_along_streets(chosen[:, 3], chosen[:, 4], rows, rng) + chosen[:, 1:3].T
    return km


def km_along_streets(
    along: Array | float, across: Array | float, rows: int, rng: np.random.Generator
) -> Array:
    """Draw Gaussian steps east and north, with these spreads along and across the avenues."""
    a, b = along * rng.standard_normal(rows), across * rng.standard_normal(rows)
    sin, cos = np.sin(AVENUES), np.cos(AVENUES)
    return np.array([a * sin + b * cos, a * cos - b * sin])


def degrees(km: Array) -> Array:
    """Return longitude and latitude."""
    place: Array = TIMES_SQUARE[:, None] + km / KM_PER_DEGREE[:, None]
    return place


def truth_at(X: Array) -> TripMinutes:
    """Return the distribution of the minutes given the five inputs."""
    km = ((X[:, :4] - np.tile(TIMES_SQUARE, 2)) * np.tile(KM_PER_DEGREE, 2)).T
    east, north = km[2] - km[0], km[3] - km[1]
    along = east * np.sin(AVENUES) + north * np.cos(AVENUES)
    across = east * np.cos(AVENUES) - north * np.sin(AVENUES)
    distance = np.abs(along) + np.abs(across)  # along streets and avenues
    from_centre = np.hypot((km[0] + km[2]) / 2, (km[1] + km[3]) / 2)
    midtown = np.exp(-((from_centre / 4) ** 2))
    rush = around(X[:, 4], 8.5, 1.5) + 1.2 * around(X[:, 4], 17.5, 2.0)
    busy = around(X[:, 4], 13.0, 4.5)
    congestion = (0.5 * rush + 0.7 * busy) * (0.35 + midtown)
    speed = 24 * (1 + distance / (distance + 10)) / (1 + congestion)
    spread = 0.14 + 0.10 * congestion + 0.25 * np.exp(-distance / 1.5)
    return TripMinutes(2 + 60 * distance / speed, spread)


def around(hour: Array, peak: float, width: float) -> Array:
    """Return 1 at this hour, falling to 0 over a width of hours, the same every day."""
    near: Array = np.exp((np.cos((hour - peak) * np.pi / 12) - 1) * (12 / np.pi / width) ** 2)
    return near
