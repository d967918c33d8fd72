"""One row judged: how far off a prediction was, and whether its interval or set held the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats, Integers
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.fitting.target import Target
from rdeepsense.live.classes import LEAST, inside

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
