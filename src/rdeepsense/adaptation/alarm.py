"""An alarm that a stream is no longer like the training rows, with a bounded rate of false ones.

A score says how strange a row is: its novelty, without a label, or how far out its label lies in
the predicted distribution. Among the scores of reference rows and of all rows that came before, a
row's smoothed rank

    p = (#{stranger} + U (#{as strange} + 1)) / (n + 1),      U uniform

is uniform and independent of all earlier ones as long as rows come in an order that says nothing
(they are exchangeable; Vovk, Gammerman & Shafer 2005). Whoever bets against that, gains nothing on
average. Bets are densities f on [0, 1]: none, on small p, on large p,

    f(p) = 1,      f(p) = k p^(k - 1),      f(p) = k (1 - p)^(k - 1)

and capital moves between them by a fixed share (`experts`), as in the simple jumper. The capital M
is a martingale that starts at 1, so that by Ville's inequality

    P(M ever reaches 1 / rate) <= rate

however long an unchanged stream lasts. Scores are sorted into bins, whose ranks are
as uniform as those of scores, so that the state stays a few numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from rdeepsense.adaptation.experts import updated
from rdeepsense.arrays import Floats, Integers
from rdeepsense.errors import InputError

BINS, MOST_REFERENCE, FEWEST_REFERENCE = 32, 256, 32
POWERS = (0.3, 0.6)
JUMP = 0.01
BETS = np.r_[0.5, np.full(2 * len(POWERS), 0.5 / (2 * len(POWERS)))]
_RICHEST = 690.0  # of log capital, so that it stays a number
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Alarm:
    """A running test: edges of the bins, scores seen in each, weights of the bets, capital."""

    edges: Floats
    counts: Integers
    weights: Floats
    log_capital: float = 0.0
    highest: float = 0.0  # log of the most that the capital ever was
    seen: int = 0

    @classmethod
    def start(cls, reference: Floats) -> Self:
        """Begin with the scores of rows like the training rows that nothing was fitted to.

        A quarter of them or more, drawn at random, places the bins, and the others count, at most
        MOST_REFERENCE: edges must not know the scores that are ranked, and more would tell a
        difference from training that is too small to matter, and blame the stream for it.
        """
        if len(reference) < FEWEST_REFERENCE or not np.isfinite(reference).all():
            raise InputError(
                f"an alarm needs {FEWEST_REFERENCE} finite scores or more; got {len(reference)}"
            )
        scores = np.random.default_rng(0).permutation(reference)
        ranked = min(3 * len(scores) // 4, MOST_REFERENCE)
        edges = np.unique(np.quantile(scores[ranked:], np.arange(1, BINS) / BINS))
        counts = np.bincount(np.searchsorted(edges, scores[:ranked]), minlength=len(edges) + 1)
        return cls(edges, counts.astype(np.int64), BETS)

    def after(self, score: float, seed: int = 0) -> Self:
        """Return the state after one more row; the larger its score, the stranger it is."""
        own = int(np.searchsorted(self.edges, score))
        above, same = int(self.counts[own + 1 :].sum()), int(self.counts[own])
        total = int(self.counts.sum())
        p = (above + uniform(seed, self.seen) * (same + 1)) / (total + 1)
        logs = bets(p)
        gain = float(np.log(self.weights @ np.exp(logs)))
        counts = self.counts.copy()
        counts[own] += 1
        capital = min(self.log_capital + gain, _RICHEST)
        return replace(
            self,
            counts=counts,
            weights=updated(self.weights, logs, BETS, JUMP),
            log_capital=capital,
            highest=max(self.highest, capital),
            seen=self.seen + 1,
        )

    def rings(self, rate: float) -> bool:
        """Tell whether the capital ever reached 1 / rate; it stays so."""
        return bool(self.highest >= -np.log(rate))


def bets(p: float) -> Floats:
    """Return log f(p) of every bet."""
    logs = [0.0]
    for side in (p, 1 - p):
        logs += [np.log(k) + (k - 1) * np.log(max(side, 1e-15)) for k in POWERS]
    return np.array(logs)


def uniform(seed: int, step: int) -> float:
    """Return a number in (0, 1) that step and seed alone decide (SplitMix64)."""
    z = (seed * 0xD1B54A32D192ED03 + (step + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((z ^ (z >> 31)) + 0.5) / (_MASK + 1)
