"""The conformal threshold for a row of a new group, given groups that were set aside.

Rows of one person are alike, so n rows of K people are no n exchangeable scores; the K people are.
With scores s_k1..s_kN_k of group k, each group is one draw, and the new one is the (K + 1)-th:

    t = least t with  sum_k 1 / (K + 1) (share of s_k. that is at most t) >= coverage

and the mass 1 / (K + 1) of the new group itself at infinity. If groups are exchangeable, and rows
within each of them, a row of a new group has a score of at most t with probability >= coverage
(Dunn, Wasserman & Ramdas 2022; Lee, Barber & Willett 2023, HCP). The promise is over new groups: it
holds for a new person on average, not for each. With K groups no more than K / (K + 1) can be
promised; beyond, t is infinite.
"""

from __future__ import annotations

import numpy as np

from rdeepsense.arrays import Floats, Integers

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
