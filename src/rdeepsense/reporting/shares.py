"""The share of rows that held in each part of a table, beside what was stated, with its band.

Of numbers what is counted are 90 % intervals that hold the truth, of classes rows that are right.
The band is where the share of a true model lies with probability 0.95: Binomial(n, 0.9) / n, and of
classes the mean stated probability +- 1.96 sqrt(sum p (1 - p)) / n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats, Integers
from rdeepsense.plot.curves import binomial_band
from rdeepsense.reporting.drift import time_blocks
from rdeepsense.reporting.subject import LEVEL, Subject

PARTS = 8
FEWEST = 20  # rows of a part
MOST_GROUPS = 12


@dataclass(frozen=True)
class Share:
    """A part of the rows: how many, the share that held, what was stated, and the band."""

    label: str
    rows: int
    share: float
    stated: float
    low: float
    high: float

    @property
    def is_off(self) -> bool:
        """Whether the share is outside of its band."""
        return not self.low <= self.share <= self.high


def share_of(subject: Subject, label: str, rows: Integers) -> Share:
    """Count in some rows."""
    stated, held = subject.stated[rows], subject.held[rows]
    mean = float(stated.mean())
    if subject.is_classes:
        reach = 1.96 * math.sqrt(float(np.sum(stated * (1 - stated)))) / len(rows)
        low, high = max(0.0, mean - reach), min(1.0, mean + reach)
    else:
        low, high = (float(end[0]) for end in binomial_band(np.array([LEVEL]), len(rows)))
    return Share(label, len(rows), float(held.mean()), mean, low, high)


def by_group(subject: Subject, most: int | None = MOST_GROUPS) -> list[Share]:
    """Return the groups, at most `most` of them, those furthest off first."""
    if subject.groups is None:
        return []
    labels, number, counts = np.unique(subject.groups, return_inverse=True, return_counts=True)
    parts = np.split(np.argsort(number, kind="stable"), np.cumsum(counts)[:-1])
    found = [share_of(subject, str(label), part) for label, part in zip(labels, parts, strict=True)]
    found.sort(key=lambda one: -abs(one.share - one.stated) * math.sqrt(one.rows))
    return found[:most]


def by_value(subject: Subject, values: Floats) -> list[Share]:
    """Return parts of equal numbers of rows, in the order of some values."""
    order = np.argsort(values, kind="stable")
    parts = np.array_split(order, max(1, min(PARTS, len(order) // FEWEST)))
    return [
        share_of(subject, f"{_short(values[p].min())} to {_short(values[p].max())}", p)
        for p in parts
    ]


def by_class(subject: Subject, classes: Sequence[Any]) -> list[Share]:
    """Return the rows of each true class."""
    places = [np.flatnonzero(subject.truth == k) for k in range(len(classes))]
    return [
        share_of(subject, str(label), rows)
        for label, rows in zip(classes, places, strict=True)
        if len(rows)
    ]


def by_time(subject: Subject) -> list[Share]:
    """Return the blocks of time, each called by its first row's; none without time."""
    parts = time_blocks(subject)
    if parts is None or subject.time is None:
        return []
    return [share_of(subject, moment(subject.time[part[0]]), part) for part in parts]


def moment(value: Any) -> str:  # Any: a number or numpy's date
    """Return a time in words."""
    if isinstance(value, np.datetime64):
        return str(value.astype("datetime64[s]")).replace("T", " ").removesuffix(" 00:00:00")
    return _short(float(value))


def _short(value: float | NDArray[Any]) -> str:
    return f"{float(value):.4g}".replace("-", "−")
