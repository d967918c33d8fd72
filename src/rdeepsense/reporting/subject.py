"""One target of a model on labelled rows: all that the sections of a page are made from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats, Integers
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.plot.curves import uncertainty_and_loss

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
