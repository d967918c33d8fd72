"""Replay of a recorded stream through the frozen and the live model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.adaptation.rates import Multiplicative, Rates
from rdeepsense.arrays import Booleans, Floats, Integers
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.errors import InputError
from rdeepsense.estimators.rdeepsense import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.fitting.target import Target
from rdeepsense.live.live import Live
from rdeepsense.live.targets import LEAST, inside

# --------------------------------------------------------------------------------------------------
# Score of one row: error, and whether its interval contains the label
# --------------------------------------------------------------------------------------------------

Four = tuple[float, float, float, float]  # error, held, width, NLL
UNKNOWN = float("nan")


@dataclass(frozen=True)
class JudgedNumbers:
    """Rows of numbers; figures are means over the outputs."""

    truths: Floats  # NaN where there is none
    labelled: Booleans
    coverage: float

    @classmethod
    def of(cls, target: Target, y: NDArray[Any], labelled: Booleans, coverage: float) -> Self:
        """Take the truths of a stream; those that are known must be the model's kind."""
        truths = np.full(y.shape, np.nan)
        truths[labelled] = target.encode(y[labelled].astype(np.float64), int(labelled.sum()))
        return cls(truths, labelled, coverage)

    @property
    def tracked(self) -> int:
        """How many quantiles are tracked: one for each output."""
        return int(np.prod(self.truths.shape[1:]))

    def reach(self, dist: AnyDistribution, q: Floats | float = 1.0) -> tuple[Floats, Floats]:
        """Return the interval of one row, stretched by q about its median."""
        assert not isinstance(dist, Categorical)
        low, high = (np.asarray(edge, np.float64) for edge in dist.interval(self.coverage))
        if np.ndim(q) == 0:
            return low, high
        middle, factor = dist.quantile(0.5), np.reshape(q, self.truths.shape[1:])
        return middle - factor * (middle - low), middle + factor * (high - middle)

    def missed(self, row: int, reach: Any) -> Booleans:
        """Tell which outputs an interval missed."""
        truth = self.truths[row]
        found: Booleans = np.ravel((truth < reach[0]) | (truth > reach[1]))
        return found

    def __call__(self, row: int, dist: AnyDistribution, reach: Any) -> Four:
        """Judge one row."""
        width = float(np.mean(reach[1] - reach[0]))
        if not self.labelled[row]:
            return UNKNOWN, UNKNOWN, width, UNKNOWN
        truth = self.truths[row]
        error = np.mean(np.abs(dist.quantile(0.5) - truth))
        held = 1 - np.mean(self.missed(row, reach))
        return float(error), float(held), width, -float(np.mean(dist.log_prob(truth)))


@dataclass(frozen=True)
class JudgedClasses:
    """Rows of classes, of which a set is predicted."""

    truths: Integers  # -1 where there is none
    labelled: Booleans
    coverage: float

    @classmethod
    def of(cls, target: Target, y: NDArray[Any], labelled: Booleans, coverage: float) -> Self:
        """Take the labels of a stream."""
        truths = np.full(len(y), -1, np.int64)
        labels = np.array(y[labelled].tolist())  # of objects, those that are left have one kind
        truths[labelled] = target.encode(labels, len(labels))
        return cls(truths, labelled, coverage)

    @property
    def tracked(self) -> int:
        """How many quantiles are tracked: that of the set."""
        return 1

    def reach(self, dist: AnyDistribution, q: Floats | float = 1.0) -> Booleans:
        """Return which classes the set of one row holds."""
        assert isinstance(dist, Categorical)
        return inside(dist.probs, float(np.ravel(q)[0]), self.coverage)

    def missed(self, row: int, reach: Any) -> Booleans:
        """Tell whether a set missed."""
        return np.array([not reach[self.truths[row]]])

    def __call__(self, row: int, dist: AnyDistribution, reach: Any) -> Four:
        """Judge one row."""
        size = float(np.sum(reach))
        if not self.labelled[row]:
            return UNKNOWN, UNKNOWN, size, UNKNOWN
        assert isinstance(dist, Categorical)
        truth = self.truths[row]
        wrong, held = dist.probs.argmax() != truth, not self.missed(row, reach)[0]
        return float(wrong), float(held), size, -float(np.log(max(dist.probs[truth], LEAST)))


# --------------------------------------------------------------------------------------------------
# Replay of a recorded stream: the frozen and the live model
#
# Each row is predicted before its own label comes. Four ways stand beside each other:
#
#     frozen    the model as it is
#     tracked   its intervals stretched by a quantile that is tracked, the rest as it is
#     adapted   the last layer learns on, intervals as the distribution has them
#     live      both, as `model.live()` says it
# --------------------------------------------------------------------------------------------------

WAYS = ("frozen", "tracked", "adapted", "live")
FIGURES = ("error", "coverage", "width", "nll")


@dataclass(frozen=True)
class Outcome:
    """What one way said of each row, (rows,) each; NaN where the truth is not known.

    Of several outputs all are means over the outputs.
    """

    error: Floats  # |median - y|; for classes 1 where the most probable one is wrong
    held: Floats  # 1 where the interval, or the set, holds the truth
    width: Floats  # of the interval; for classes the size of the set
    nll: Floats

    def figures(self) -> dict[str, float]:
        """Return the means over the rows whose truth is known."""
        known = ~np.isnan(self.error)
        values = (self.error, self.held, self.width, self.nll)
        return {
            name: float(value[known].mean()) for name, value in zip(FIGURES, values, strict=True)
        }


@dataclass(frozen=True)
class Replayed:
    """A stream, row by row, as each way would have met it."""

    ways: Mapping[str, Outcome]  # by the names in WAYS
    coverage: float  # what intervals promise
    labelled: Booleans  # (rows,), whether the truth is known
    observed: Booleans  # (rows,), whether the live model was told
    alarm: int | None  # rows that had come when the alarm rang
    is_classes: bool
    times: NDArray[Any] | None = None  # of each row
    timed_by: str = ""  # what the times are called


def replay(
    model: RDeepSenseRegressor | RDeepSenseClassifier,
    X: Any,
    y: ArrayLike,
    every: int = 1,
    *,
    live: Live | None = None,
    seen: Callable[[int], None] = lambda rows: None,
) -> Replayed:
    """Replay rows in their order, telling a live model every Nth label.

    Rows without a label, NaN or None, are predicted, neither learnt from nor judged. The tracker on
    the frozen model takes the step that `Rates` has by default.

    Parameters
    ----------
    model : a fitted model that can be live.
    X, y : rows as the model takes them, and their labels.
    every : of the rows with a label the first, and every Nth after it, are observed.
    live : how the model is live, by default `model.live()`; it has learnt the stream afterwards.
    seen : is called with the number of rows after each.
    """
    if not isinstance(every, int | np.integer) or every < 1:
        raise InputError(f"every = {every!r}; accepted: whole numbers from 1")
    live = model.live() if live is None else live
    fitted, coverage = model.fitted_, live.settings.coverage
    truths = np.asarray(y)
    labelled = _labelled(truths)
    dist = model.predict_dist(X)
    if len(truths) != len(dist) or not labelled.any():
        raise InputError(f"{len(dist):,} rows and {len(truths):,} labels, {labelled.sum():,} known")
    kind = JudgedClasses if fitted.target.is_classes else JudgedNumbers
    judge = kind.of(fitted.target, truths, labelled, coverage)
    observed = np.zeros(len(truths), np.bool_)
    observed[np.flatnonzero(labelled)[::every]] = True
    rows = X if fitted.inputs.encoding is not None else np.asarray(X, np.float64)
    track = [Multiplicative(1 - coverage, Rates().eta)] * judge.tracked
    found = np.empty((len(truths), len(WAYS), len(FIGURES)))
    alarm = None
    for k in range(len(truths)):
        said = live.predict(rows[k : k + 1])
        before, after = dist[k], said.distribution
        q = np.array([tracker.q for tracker in track])
        reach = judge.reach(before, q)
        found[k] = (
            judge(k, before, judge.reach(before)),
            judge(k, before, reach),
            judge(k, after, judge.reach(after)),
            judge(k, after, said.interval),
        )
        if observed[k]:
            live.observe(truths[k], said.ticket)
            missed = judge.missed(k, reach)
            track = [one.after(bool(m)) for one, m in zip(track, missed, strict=True)]
        if alarm is None and live.drifting:
            alarm = k + 1
        seen(k + 1)
    ways = {way: Outcome(*found[:, number].T) for number, way in enumerate(WAYS)}
    return Replayed(ways, coverage, labelled, observed, alarm, fitted.target.is_classes)


def _labelled(truths: NDArray[Any]) -> Booleans:
    if truths.dtype.kind == "f":
        known: Booleans = ~np.isnan(truths).reshape(len(truths), -1).any(1)
        return known
    if truths.dtype.kind == "O":
        return np.array([label is not None and label == label for label in truths.tolist()])
    return np.ones(len(truths), np.bool_)
