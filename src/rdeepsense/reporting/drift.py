"""Does a model hold what it says over time, or since when does it not?

Rows in the order of time are cut into b = min(20, n // 25) blocks, at least eight. Of each row

- u = |2 F(y) - 1|, which is uniform on (0, 1) for a true model: its mean rises where intervals
  become too narrow,
- v = 2 F(y) - 1, uniform on (-1, 1): its mean leaves 0 where predictions become biased,
- of classes w = right - stated probability, whose mean is 0,

is averaged over the block. For each place c between two blocks, at least two from either end, the
difference d of the means after and before is compared with its error s, from the scatter of the
blocks within the two sides, and at least that of independent rows: rows that follow each other are
alike, and blocks scatter more. A model drifts where |d| > 5 s at some c and |d| is large enough to
matter: 0.1 of u or w, 0.2 of v. The place of the largest |d| / s is when it began.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rdeepsense.arrays import Floats, Integers
from rdeepsense.distributions import Categorical
from rdeepsense.reporting.subject import Subject

MOST_BLOCKS, FEWEST_BLOCKS, FEWEST_ROWS = 20, 8, 25
ERRORS = 5.0
MATTERS = {"u": 0.1, "v": 0.2, "w": 0.1}
INDEPENDENT = {"u": 1 / 12, "v": 1 / 3}  # variance of one row of a true model


@dataclass(frozen=True)
class Drift:
    """A change in time: where, of what, and the share that held before and after."""

    drifts: bool
    kind: str  # u, v or w
    row: int  # the first one after, in the order of time
    at: Any  # its time
    difference: float
    errors: float  # the difference in standard errors
    before: float
    after: float
    blocks: int


def find_drift(subject: Subject) -> Drift | None:
    """Look for the largest change; None where there is no time, or rows are too few."""
    parts = time_blocks(subject)
    if parts is None or subject.time is None:
        return None
    order, rows, blocks = subject.order, len(subject.truth), len(parts)
    starts = np.cumsum([0, *(len(part) for part in parts)])
    found = []
    for kind, values, variance in _signals(subject):
        means = np.array([values[part].mean() for part in parts])
        least = variance / (rows / blocks)
        found += [(kind, c, *_change(means, c, least)) for c in range(2, blocks - 1)]
    told = [one for one in found if abs(one[2]) > MATTERS[one[0]]]
    kind, place, difference, errors = max(told or found, key=lambda one: one[3])
    first = int(starts[place])
    held = subject.held[order]
    return Drift(
        bool(told) and errors > ERRORS,
        kind,
        first,
        subject.time[order[first]],
        difference,
        errors,
        float(held[:first].mean()),
        float(held[first:].mean()),
        blocks,
    )


def time_blocks(subject: Subject) -> list[Integers] | None:
    """Return the rows of each block; None where there is no time, or rows are too few."""
    count = min(MOST_BLOCKS, len(subject.truth) // FEWEST_ROWS)
    if subject.time is None or count < FEWEST_BLOCKS:
        return None
    return np.array_split(subject.order, count)


def _signals(subject: Subject) -> list[tuple[str, Floats, float]]:
    """Return the name, the values and the least variance of what is followed."""
    if isinstance(subject.dist, Categorical):
        right = subject.held.astype(np.float64) - subject.stated
        return [("w", right, float(np.mean(subject.stated * (1 - subject.stated))))]
    signed = np.asarray(2 * subject.dist.cdf(subject.truth) - 1)
    return [(kind, own, INDEPENDENT[kind]) for kind, own in (("u", np.abs(signed)), ("v", signed))]


def _change(means: Floats, place: int, least: float) -> tuple[float, float]:
    """Return the difference of the means after and before, and how many errors that is."""
    before, after = means[:place], means[place:]
    difference = float(after.mean() - before.mean())
    scatter = float(np.sum((before - before.mean()) ** 2) + np.sum((after - after.mean()) ** 2))
    variance = max(scatter / (len(means) - 2), least)
    error = math.sqrt(variance * (1 / len(before) + 1 / len(after)))
    return difference, abs(difference) / max(error, 1e-12)
