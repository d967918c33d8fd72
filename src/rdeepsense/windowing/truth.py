"""The truth in a log, at the points of a grid and then of each window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Integers
from rdeepsense.windowing import report as reasons
from rdeepsense.windowing.columns import ABSENT, Table, coded, numbers_of, values_of
from rdeepsense.windowing.grid import Neighbours
from rdeepsense.windowing.heard import Heard
from rdeepsense.windowing.labels import Majority, at_end, mean_of
from rdeepsense.windowing.recipe import Recipe
from rdeepsense.windowing.timeline import Timeline


@dataclass(frozen=True)
class Truth:
    """Columns with the truth: codes of labels, whose `distinct` values are known, or numbers."""

    columns: list[NDArray[Any]]
    distinct: NDArray[Any] | None  # None for numbers

    def room_for(self, points: int) -> NDArray[Any]:
        """Return an array for the truth at so many points."""
        if self.distinct is not None:
            return np.empty(points, np.int32)
        return np.empty((points, len(self.columns)))

    def lines(self, heard: Heard) -> list[Timeline]:
        """Return for each column one sample of each time, with a truth where any of it has one."""
        if heard.line is heard.every:
            return [heard.line] * len(self.columns)
        own = (column[heard.every.rows] for column in self.columns)
        if self.distinct is not None:
            return [heard.every.once(codes != ABSENT) for codes in own]
        return [heard.every.once(np.isfinite(numbers)) for numbers in own]

    def at(self, near: Sequence[Neighbours]) -> NDArray[Any]:
        """Return the truth at points: the nearest sample's label, or numbers in between.

        `near` are the samples around the points that each column is asked about.
        """
        if self.distinct is not None:
            return near[0].nearest(self.columns[0])
        pairs = zip(near, self.columns, strict=True)
        return np.stack([own.between(column) for own, column in pairs], 1)

    def judged(
        self, values: NDArray[Any] | None, first: Integers, recipe: Recipe, lost: Counter[str]
    ) -> tuple[Booleans, NDArray[Any]]:
        """Return which windows of a recording have a truth, and that of each of them."""
        assert values is not None
        length = recipe.length
        if self.distinct is None:
            one = mean_of if recipe.target == "mean" else at_end
            found = np.stack([one(own, first, length) for own in values.T], 1)
            kept = np.isfinite(found).all(1)
            lost[reasons.UNLABELLED] += int((~kept).sum())
            return kept, found[kept]
        if recipe.target == "end":
            ends = at_end(values, first, length)
            kept = ends != ABSENT
            lost[reasons.UNLABELLED] += int((~kept).sum())
            return kept, ends[kept]
        majority = Majority.of(values, first, length)
        known = majority.code != ABSENT
        # Shares are counts over a length; a bound of 0.8 must not refuse 4 of 5.
        kept = known & (majority.share >= recipe.purity - 1e-9)
        lost[reasons.UNLABELLED] += int((~known).sum())
        lost[reasons.IMPURE] += int((known & ~kept).sum())
        return kept, majority.code[kept]

    def in_words(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return labels for their codes; numbers stay, (windows,) where there is one."""
        if self.distinct is not None:
            found: NDArray[Any] = self.distinct[values]
            return found
        return values[:, 0] if values.shape[1] == 1 else values


def truth_of(table: Table, recipe: Recipe) -> Truth | None:
    """Read the truth; None where the recipe names no label.

    Numbers are averaged or taken between samples; "majority", and "end" of text, yes/no or whole
    numbers, are of labels.
    """
    if not recipe.label:
        return None
    is_label = recipe.target == "majority"
    if recipe.target == "end" and len(recipe.label) == 1:
        is_label = values_of(table, recipe.label[0]).dtype.kind != "f"
    if is_label:
        codes, distinct = coded(table, recipe.label[0])
        return Truth([codes], distinct)
    return Truth([numbers_of(table, name) for name in recipe.label], None)
