"""The held-out rows that a report is about: predictions, actual values, coverage, drift."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats, Integers
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.metrics.scores import ECE_BINS
from rdeepsense.plot.curves import binomial_band, uncertainty_and_loss

# --------------------------------------------------------------------------------------------------
# Single targets of distributions, and standard errors over rows
# --------------------------------------------------------------------------------------------------

Values = NDArray[np.generic]


def by_target(
    dist: AnyDistribution, y: Values, targets: Sequence[str]
) -> Iterator[tuple[str, AnyDistribution, Values]]:
    """Return the name, distribution and truth of each target."""
    if y.ndim == 1:
        yield targets[0], dist, y
        return
    for column, name in enumerate(targets):
        yield name, dist[:, column], y[:, column]


def standard_error(values: NDArray[np.float64], groups: Values | None = None) -> float | None:
    """Return that of the mean: std / sqrt(n) for independent rows, else between groups.

    With groups: sqrt(G / (G - 1) sum_g (sum of deviations in g)^2) / n.
    """
    import numpy as np

    deviation = values - values.mean()
    if groups is not None:
        deviation = np.bincount(np.unique(groups, return_inverse=True)[1], weights=deviation)
    count = len(deviation)
    if count < 2:
        return None
    error = float(np.sqrt(count / (count - 1) * np.sum(deviation**2)) / len(values))
    # Equal values have a mean that is off by rounding.
    return 0.0 if error <= 1e-13 * float(np.abs(values).max()) else error


def row_values(dist: AnyDistribution, y: Values) -> dict[str, Floats]:
    """Return for each metric values of the rows whose mean has the metric's standard error.

    Most metrics are means over rows. RMSE and F1 are smooth functions of such means, and each row
    has its influence on them (delta method); ECE is a mean of differences with the signs of their
    bins. The deviation area has none, as its reference is what chance alone gives.
    """
    if not isinstance(dist, Categorical):
        truth = np.asarray(y, np.float64)
        error = dist.mean - truth
        rmse = np.sqrt(np.mean(error**2))
        return {
            "mae": np.abs(error),
            "rmse": error**2 / (2 * rmse) if rmse > 0 else np.zeros(len(error)),
            "nll": np.asarray(-dist.log_prob(truth)),
            "crps": np.asarray(dist.crps(truth)),
            "sharpness": np.broadcast_to(dist.std, error.shape),
        }
    number = dist.encode(y)
    top, right = dist.probs.max(axis=-1), (dist.mode == number).astype(np.float64)
    place = np.searchsorted(np.linspace(0, 1, ECE_BINS + 1), top, side="right")
    sign = np.sign(np.bincount(place, weights=right - top))
    onehot = np.arange(dist.probs.shape[-1]) == number[:, None]
    return {
        "accuracy": right,
        "f1": _influence_on_f1(dist.mode, number, dist.probs.shape[-1]),
        "nll": np.asarray(-dist.log_prob(number)),
        "brier": np.sum((dist.probs - onehot) ** 2, axis=-1),
        "ece": np.asarray(sign[place] * (right - top), np.float64),
    }


def _influence_on_f1(predicted: Integers, actual: Integers, classes: int) -> Floats:
    """Return n times the derivative of macro F1 with respect to each row's weight.

    With N = predicted + actual rows of a class, F = 2 TP / N changes by (2 tp - F (p + t)) / N.
    """
    hits = np.bincount(actual[predicted == actual], minlength=classes)
    occurs = np.bincount(actual, minlength=classes)
    both = np.bincount(predicted, minlength=classes) + occurs
    per = np.where(occurs > 0, 1.0, 0.0) / np.maximum(both, 1)
    fall = 2 * hits * per**2
    change = 2 * per[actual] * (predicted == actual) - fall[actual] - fall[predicted]
    found: Floats = change * len(actual) / np.count_nonzero(occurs)
    return found


# --------------------------------------------------------------------------------------------------
# One target of a model on labeled rows: the input of all sections
# --------------------------------------------------------------------------------------------------

LEVEL = 0.9  # of the intervals that are counted


@dataclass(frozen=True, eq=False)
class Subject:
    """A target's name and unit, its predictions and its truth; what rows belong to, and when."""

    name: str
    unit: str
    dist: AnyDistribution
    y: NDArray[Any]  # numbers, or labels
    groups: NDArray[Any] | None = None
    grouped_by: str = "group"
    time: NDArray[Any] | None = None  # numbers, or datetime64
    timed_by: str = "time"

    def at(self, rows: Integers) -> Subject:
        """Return some of the rows."""
        return replace(
            self,
            dist=self.dist[rows],
            y=self.y[rows],
            groups=None if self.groups is None else self.groups[rows],
            time=None if self.time is None else self.time[rows],
        )

    @property
    def is_classes(self) -> bool:
        """Whether the values are classes."""
        return self.dist.is_categorical

    @cached_property
    def truth(self) -> Floats | Integers:
        """The numbers, or the numbers of the classes."""
        if isinstance(self.dist, Categorical):
            return self.dist.encode(self.y)
        return np.asarray(self.y, np.float64)

    @cached_property
    def nll(self) -> Floats:
        """The surprise of each row, in nats."""
        return np.asarray(-self.dist.log_prob(self.truth))

    @cached_property
    def held(self) -> Booleans:
        """Rows whose 90 % interval holds the truth; of classes, those that are right."""
        if isinstance(self.dist, Categorical):
            return np.asarray(self.dist.mode == self.truth)
        low, high = self.dist.interval(LEVEL)
        return np.asarray((low <= self.truth) & (self.truth <= high))

    @cached_property
    def stated(self) -> Floats:
        """The probability of that, row by row, as the model has it."""
        if isinstance(self.dist, Categorical):
            return np.asarray(self.dist.probs.max(axis=-1))
        return np.full(len(self.truth), LEVEL)

    @property
    def uncertainty(self) -> Floats:
        """What the model says of each row's error."""
        return uncertainty_and_loss(self.dist, self.truth)[0]

    @property
    def loss(self) -> Floats:
        """The error of each row: |y - mean|, or 1 where the class is wrong."""
        return uncertainty_and_loss(self.dist, self.truth)[1]

    @property
    def named(self) -> str:
        """The name with its unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def order(self) -> Integers:
        """The rows in the order of their time, those of one time as they stand."""
        assert self.time is not None
        return np.argsort(self.time, kind="stable")


# --------------------------------------------------------------------------------------------------
# Coverage over time, and the start of drift
#
# Rows in the order of time are cut into b = min(20, n // 25) blocks, at least eight. Of each row
#
# - u = |2 F(y) - 1|, which is uniform on (0, 1) for a true model: its mean rises where intervals
#   become too narrow,
# - v = 2 F(y) - 1, uniform on (-1, 1): its mean leaves 0 where predictions become biased,
# - of classes w = right - stated probability, whose mean is 0,
#
# is averaged over the block. For each place c between two blocks, at least two from either end, the
# difference d of the means after and before is compared with its error s, from the scatter of the
# blocks within the two sides, and at least that of independent rows: rows that follow each other
# are alike, and blocks scatter more. A model drifts where |d| > 5 s at some c and |d| is large
# enough to matter: 0.1 of u or w, 0.2 of v. The place of the largest |d| / s is when it began.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Actual and nominal coverage in parts of a table, with confidence bands
#
# For numbers it counts 90 % intervals that contain the actual value, for classes correct rows.
# The band is where the share of a true model lies with probability 0.95: Binomial(n, 0.9) / n, and
# of classes the mean stated probability +- 1.96 sqrt(sum p (1 - p)) / n.
# --------------------------------------------------------------------------------------------------

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
    return [share_of(subject, moment(subject.time[part[0]], subject.time), part) for part in parts]


def moment(value: Any, times: NDArray[Any] | None = None) -> str:  # Any: a number or numpy's date
    """Return a time in words; a date alone where none of the `times` has a time of day."""
    if isinstance(value, np.datetime64):
        if times is not None and (times == times.astype("datetime64[D]")).all():
            return str(value.astype("datetime64[D]"))
        return str(value.astype("datetime64[s]")).replace("T", " ")
    return _short(float(value))


def _short(value: float | NDArray[Any]) -> str:
    return f"{float(value):.4g}".replace("-", "−")
