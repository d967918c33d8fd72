"""The surprise of one row at a time: `Novelty.surprise` with all that is not the row's done before.

Its loops over columns and Gaussians become a few products of small matrices: a tenth of a
millisecond in place of ten for a hundred columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.epistemic.novelty import EDGE, FARTHEST, SCORES, STEEPEST, Novelty, described


@dataclass(frozen=True)
class RowNovelty:
    """A fitted density whose tables are laid out for one row."""

    mean: Floats
    std: Floats
    values: Floats  # (knots, columns), each once, in order, then infinities
    scores: Floats  # of those values
    most: Floats  # the place of the last piece of each column
    edges: tuple[Floats, Floats, Floats, Floats]  # lowest, highest knot, and their slopes
    centre: Floats
    axes: Floats
    means: Floats  # (Gaussians, components), times their factors
    factors: Floats  # (components, Gaussians x components)
    constants: Floats

    @classmethod
    def of(cls, novelty: Novelty) -> Self:
        """Lay out the tables."""
        knots = novelty.knots.astype(np.float64)
        values, scores = np.full(knots.shape, np.inf), np.zeros(knots.shape)
        counts = np.ones(knots.shape[1], np.int64)
        for column, own in enumerate(knots.T):
            each, place = np.unique(own, return_inverse=True)
            counts[column] = len(each)
            values[: len(each), column] = each
            scores[: len(each), column] = np.bincount(place, SCORES) / np.bincount(place)
            scores[len(each) :, column] = scores[len(each) - 1, column]
        low = novelty.knots[EDGE] - novelty.knots[0]
        high = novelty.knots[-1] - novelty.knots[-1 - EDGE]
        low, high = (np.clip(e, STEEPEST * novelty.std, novelty.std) for e in (low, high))
        factors, components = novelty.factors.astype(np.float64), novelty.means.shape[1]
        diagonals = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(1)
        return cls(
            novelty.mean.astype(np.float64),
            novelty.std.astype(np.float64),
            values,
            scores,
            np.maximum(counts - 2, 0).astype(np.float64),
            (knots[0], knots[-1], low.astype(np.float64), high.astype(np.float64)),
            novelty.centre.astype(np.float64),
            novelty.axes.astype(np.float64),
            np.einsum("gc,gcd->gd", novelty.means.astype(np.float64), factors),
            factors.transpose(1, 0, 2).reshape(components, -1),
            np.log(novelty.shares.astype(np.float64))
            + diagonals
            - components / 2 * np.log(2 * np.pi),
        )

    def surprise(self, row: NDArray[Any]) -> float:
        """Return -log density of a row (1, ...)."""
        x = described(row)[0]
        at = np.minimum((self.values <= x).sum(0) - 1, self.most).clip(0).astype(np.int64)
        every = np.arange(len(x))
        left, right = self.values[at, every], self.values[at + 1, every]
        first, second = self.scores[at, every], self.scores[at + 1, every]
        inside = np.clip((x - left) / (right - left), 0.0, 1.0)
        lowest, highest, low, high = self.edges
        normal = first + inside * (second - first)
        normal += np.minimum(x - lowest, 0) / low + np.maximum(x - highest, 0) / high
        t = np.clip(((x - self.mean) / self.std + normal) / 2, -FARTHEST, FARTHEST)
        h = (t - self.centre) @ self.axes
        away = (h @ self.factors).reshape(self.means.shape) - self.means
        logs = self.constants - np.square(away).sum(1) / 2
        top = logs.max()
        return float(-top - np.log(np.exp(logs - top).sum()))
