"""Recordings that are taken for one though they run over the same time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Integers
from rdeepsense.errors import InputError
from rdeepsense.windowing.heard import with_values
from rdeepsense.windowing.pace import PERIODS, SHORTEST_GAP
from rdeepsense.windowing.timeline import Timeline

FEWEST = 10  # samples in a row of the table; late ones of a lossy radio are fewer


def check_overlap(
    line: Timeline,
    sensors: Sequence[Sequence[NDArray[Any]]],
    gap: float | None,
    time: str,
    by: Sequence[str],
) -> None:
    """Refuse a recording whose time falls back and runs over the same span again.

    `line` is in the order of the table. Of each sensor, samples between two others that are no gap
    apart and come from before or after the fall would be interleaved with them. Late samples that
    fill a gap, samples that come twice with the same values, and samples in any order are accepted.
    """
    steps = np.diff(line.t)
    if not len(steps) or steps.min() >= 0:
        return
    if gap is None:
        ahead = np.diff(np.unique(line.t))
        gap = max(SHORTEST_GAP, PERIODS * float(np.median(ahead))) if len(ahead) else SHORTEST_GAP
    if steps.min() >= -gap:
        return
    for columns in sensors:
        own = with_values(line, columns)
        inside, passes = _inside(own, columns, gap)
        longest, where = _longest(inside, passes)
        if longest >= FEWEST:
            falls = np.flatnonzero(np.diff(passes)) + 1
            fall = int(falls[max(0, int(np.searchsorted(falls, where, side="right")) - 1)])
            row = int(own.taken(np.array([fall]))[0])
            back = float(own.t[fall - 1] - own.t[fall])
            told = f"by = {list(by)}" if by else "by is not given"
            raise InputError(
                f"{time!r} falls back by {back:.4g} s in row {row:,} (the first row is 0), and "
                f"{int(inside.sum()):,} of {len(own.t):,} samples lie between samples of another "
                f"run over the same time; {told}; name the columns that tell recordings apart, "
                "and give times in UTC if a clock was set back"
            )


def _inside(
    line: Timeline, columns: Sequence[NDArray[Any]], gap: float
) -> tuple[Booleans, Integers]:
    """Tell for each sample whether it lies between near ones of other passes, and its pass."""
    passes = np.cumsum(np.append(False, np.diff(line.t) < -gap))[: len(line.t)]
    order = np.argsort(line.t, kind="stable")
    t, number = line.t[order], passes[order]
    heads = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
    before = np.append(-np.inf, t[heads[1:] - 1])
    after = np.append(t[heads[1:]], np.inf)
    same = np.zeros(len(t), bool)  # samples that come twice, with the same values
    twice = np.flatnonzero(t[1:] == t[:-1])
    if len(twice):
        rows = line.taken(order)
        alike = np.all([c[rows[twice]] == c[rows[twice + 1]] for c in columns], axis=0)
        same[twice[alike]] = same[twice[alike] + 1] = True
    inside = np.zeros(len(t), bool)
    inside[order] = np.repeat(after - before <= gap, np.diff(np.append(heads, len(t)))) & ~same
    return inside, passes


def _longest(inside: Booleans, passes: Integers) -> tuple[int, int]:
    """Return the length of the longest streak within one pass, and where it begins."""
    if not len(inside):
        return 0, 0
    changes = (np.diff(inside.astype(np.int8)) != 0) | (np.diff(passes) != 0)
    heads = np.append(0, np.flatnonzero(changes) + 1)
    lengths = np.where(inside[heads], np.diff(np.append(heads, len(inside))), 0)
    best = int(np.argmax(lengths))
    return int(lengths[best]), int(heads[best])
