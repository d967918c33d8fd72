"""Split-conformal prediction: intervals and sets that hold for any data, given rows set aside.

With the scores s_1..s_n of rows that nothing was chosen on, and new rows like them, the interval
of all y whose score is at most the ceil((n + 1) coverage)-th smallest s holds the truth with
probability >= coverage, whatever the model (Vovk et al. 2005, Lei et al. 2018).

    numbers: s = |y - mean| / std        interval: mean +- s std
    classes: s = 1 - p(y)                set: all k with 1 - p(k) <= s

With groups the same holds in each known group by itself, or for a group never seen (`new_group`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Floats, Integers
from rdeepsense.calibration.new_group import new_group_threshold
from rdeepsense.distributions import AnyDistribution
from rdeepsense.errors import InputError, share

ALL = "all"


@dataclass(frozen=True)
class Conformal:
    """The scores of the rows set aside, (rows, outputs), and the group of each row."""

    scores: Floats
    group: Integers
    labels: tuple[object, ...] = (ALL,)
    new_group: bool = False  # whether the one threshold is for rows of a group never seen

    @property
    def is_common(self) -> bool:
        """Whether all rows have the same thresholds, whatever their group."""
        return self.new_group or self.labels == (ALL,)

    @classmethod
    def fit(
        cls,
        dist: AnyDistribution,
        y: NDArray[Any],
        groups: ArrayLike | None = None,
        new_group: bool = False,
    ) -> Conformal:
        """Score rows; with `groups`, thresholds are found in each group by itself.

        With `new_group` they are those of a further group, and the labels are not kept.
        """
        if dist.is_categorical:
            scores = 1 - np.exp(dist.log_prob(y))[:, None]
        else:
            scores = (np.abs(np.asarray(y) - dist.mean) / dist.std).reshape(len(y), -1)
        if groups is None:
            return cls(scores, np.zeros(len(scores), dtype=np.int64))
        given = np.asarray(groups)
        if len(given) != len(scores):
            raise InputError(f"groups has {len(given)} rows, X has {len(scores)}")
        labels, number = np.unique(given, return_inverse=True)
        if new_group:
            return cls(scores, number.astype(np.int64), tuple(range(len(labels))), True)
        return cls(scores, number.astype(np.int64), tuple(labels.tolist()))

    def threshold(self, coverage: float, rows: int, groups: ArrayLike | None = None) -> Floats:
        """Return the score that each row may reach, (rows, outputs); inf where n is too small."""
        if not 0 < coverage < 1:
            raise InputError(f"coverage = {coverage!r} is not between 0 and 1{share(coverage)}")
        if self.new_group:
            if groups is not None:
                raise InputError("the thresholds are those of a new group; leave groups out")
            return np.tile(new_group_threshold(self.scores, self.group, coverage), (rows, 1))
        if self.labels == (ALL,):
            if groups is not None:
                raise InputError("groups were not given with the rows set aside; leave them out")
            number = np.zeros(rows, dtype=np.int64)
        else:
            number = self._numbers(groups, rows)
        table = np.array([self._quantile(k, coverage) for k in range(len(self.labels))])
        found: Floats = table[number]
        return found

    def _quantile(self, group: int, coverage: float) -> Floats:
        scores = np.sort(self.scores[self.group == group], axis=0)
        rank = int(np.ceil((len(scores) + 1) * coverage - 1e-9))
        if rank > len(scores):
            return np.full(scores.shape[1], np.inf)
        found: Floats = scores[rank - 1]
        return found

    def _numbers(self, groups: ArrayLike | None, rows: int) -> Integers:
        given = np.asarray([] if groups is None else groups)
        if groups is None or len(given) != rows:
            raise InputError("the thresholds are per group: give groups=, one label for each row")
        known = {label: k for k, label in enumerate(self.labels)}
        unknown = [label for label in np.unique(given).tolist() if label not in known]
        if unknown:
            raise InputError(
                f"group {unknown[0]!r} had no rows set aside; known: {', '.join(map(str, known))}"
            )
        return np.array([known[label] for label in given.tolist()], dtype=np.int64)
