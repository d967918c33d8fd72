"""Conformal prediction: thresholds for exchangeable rows and for new groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.arrays import Floats, Integers
from rdeepsense.distributions import AnyDistribution
from rdeepsense.errors import InputError, share

# --------------------------------------------------------------------------------------------------
# Conformal thresholds for a row of a new group
#
# Rows of one person are alike, so n rows of K people are no n exchangeable scores; the K people
# are. With scores s_k1..s_kN_k of group k, each group is one draw, and the new one is the (K +
# 1)-th:
#
#     t = least t with  sum_k 1 / (K + 1) (share of s_k. that is at most t) >= coverage
#
# and the mass 1 / (K + 1) of the new group itself at infinity. If groups are exchangeable, and rows
# within each of them, a row of a new group has a score of at most t with probability >= coverage
# (Dunn, Wasserman & Ramdas 2022; Lee, Barber & Willett 2023, HCP). The promise is over new groups:
# it holds for a new person on average, not for each. With K groups no more than K / (K + 1) can be
# promised; beyond, t is infinite.
# --------------------------------------------------------------------------------------------------

ROUNDING = 1e-9


def most_coverage(groups: int) -> float:
    """Return the greatest coverage that so many groups can promise for a new one."""
    return groups / (groups + 1)


def new_group_threshold(scores: Floats, group: Integers, coverage: float) -> Floats:
    """Return t for each column of scores (rows, outputs)."""
    number = np.unique(group, return_inverse=True)[1]
    sizes = np.bincount(number)
    mass = 1 / ((len(sizes) + 1) * sizes[number])
    found = np.full(scores.shape[1], np.inf)
    for column, own in enumerate(scores.T):
        order = np.argsort(own, kind="stable")
        reached = np.flatnonzero(np.cumsum(mass[order]) >= coverage - ROUNDING)
        if len(reached):
            found[column] = own[order[reached[0]]]
    return found


# --------------------------------------------------------------------------------------------------
# Split conformal prediction
#
# With the scores s_1..s_n of rows that nothing was chosen on, and new rows like them, the interval
# of all y whose score is at most the ceil((n + 1) coverage)-th smallest s holds the truth with
# probability >= coverage, whatever the model (Vovk et al. 2005, Lei et al. 2018).
#
#     numbers: s = |y - mean| / std        interval: mean +- s std
#     classes: s = 1 - p(y)                set: all k with 1 - p(k) <= s
#
# With groups the same holds in each known group by itself, or for a group never seen (`new_group`).
# --------------------------------------------------------------------------------------------------

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
