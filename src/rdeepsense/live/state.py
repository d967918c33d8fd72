"""All that a live model has learnt from its stream, and the step from one row to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from rdeepsense.adaptation.alarm import Alarm
from rdeepsense.adaptation.rates import Filters
from rdeepsense.adaptation.trackers import Multiplicative
from rdeepsense.arrays import Booleans, Floats


@dataclass(frozen=True)
class State:
    """Filters, trackers, running tests by name ("inputs", "labels"), and counts."""

    filters: Filters
    trackers: tuple[Multiplicative, ...]
    alarms: dict[str, Alarm]
    rows: int = 0
    labels: int = 0
    set_aside: int = 0

    @property
    def q(self) -> Floats:
        """The factors of the intervals."""
        return np.array([tracker.q for tracker in self.trackers])

    def rings(self, rate: float) -> bool:
        """Tell whether any test has found drift; together they do so without cause at `rate`."""
        return any(test.rings(rate / len(self.alarms)) for test in self.alarms.values())

    def seen(self, score: float | None) -> Self:
        """Count a row, and take in its novelty."""
        return replace(self, alarms=self._scored("inputs", score), rows=self.rows + 1)

    def learnt(self, filters: Filters, missed: Booleans, score: float | None) -> Self:
        """Take in what a label taught, which intervals missed it, and how far out it lay."""
        trackers = tuple(
            tracker.after(bool(miss)) for tracker, miss in zip(self.trackers, missed, strict=True)
        )
        alarms = self._scored("labels", score)
        return replace(
            self, filters=filters, trackers=trackers, alarms=alarms, labels=self.labels + 1
        )

    def without(self, score: float | None) -> Self:
        """Count a label that is set aside; how far out it lay is known all the same."""
        return replace(self, alarms=self._scored("labels", score), set_aside=self.set_aside + 1)

    def _scored(self, name: str, score: float | None) -> dict[str, Alarm]:
        if score is None or name not in self.alarms:
            return self.alarms
        return {**self.alarms, name: self.alarms[name].after(score)}
