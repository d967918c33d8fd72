"""Reactions of a fitted method to a sensor that fails: whether it notices, what it predicts.

Faults are put into test rows (`tasks.faults`). A row is flagged where the method's own score is
above the value that 5 % of the healthy validation rows exceed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense import metrics
from rdeepsense.calibration.reject import epistemic_score, predicted_score
from rdeepsense.distributions import AnyDistribution
from rdeepsense.experiments.paper.study import Parts
from rdeepsense.experiments.tasks.faults import damaged
from rdeepsense.uncertainty.novelty import MOST_ROWS

FALSE_ALARMS = 0.05
TESTED, ALARMED, KNOWN = 150, 300, 1_000  # test, validation and training rows, at most
LEVEL = 0.9
HEALTHY = "healthy"
Rows = NDArray[np.generic]
Predict = Callable[[Rows], AnyDistribution]


class KnowsUnknown(Protocol):
    """A model with a novelty score; `epistemic_score` finds the rest that it needs."""

    def fit_novelty(self, X: ArrayLike, held_out: ArrayLike) -> Self:
        """Learn what inputs are usual."""

    def novelty(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return how unlike training rows each row is."""


def reactions(
    parts: Parts, predict: Predict, model: KnowsUnknown | None = None, seed: int = 0
) -> dict[str, dict[str, float | None]]:
    """Return error, coverage, share flagged and AUROC for healthy test rows and for each fault.

    With a `model` that knows its epistemic uncertainty, also what its Laplace score flags and what
    its novelty does.
    """
    X, y = _some(*parts.test, TESTED, seed)
    validation, _ = _some(*parts.validation, ALARMED, seed)
    known, targets = parts.train(KNOWN, seed)
    kinds = {HEALTHY: X} | dict(damaged(parts.task.name, X, known, seed))
    # All in one go: a call costs more than its rows.
    together = np.concatenate([validation, *kinds.values()])
    dist = predict(together)
    spread = np.ones(1) if dist.is_categorical else targets.reshape(len(targets), -1).std(axis=0)
    scores = {"": predicted_score(dist, spread)}
    if model is not None:
        scores["_epistemic"] = epistemic_score(model, together, "laplace", spread)
        rows, _ = parts.train(MOST_ROWS, seed)
        scores["_novelty"] = model.fit_novelty(rows, validation).novelty(together)
    ends = np.cumsum([len(validation), *(len(rows) for rows in kinds.values())])
    found: dict[str, dict[str, float | None]] = {}
    for number, kind in enumerate(kinds):
        here = slice(ends[number], ends[number + 1])
        found[kind] = _answers(dist[here], y)
        for name, novelty in scores.items():
            alarm = np.quantile(novelty[: ends[0]], 1 - FALSE_ALARMS)
            found[kind][f"flagged{name}"] = float(np.mean(novelty[here] > alarm))
            if kind != HEALTHY:
                healthy = novelty[ends[0] : ends[1]]
                found[kind][f"auroc{name}"] = metrics.auroc(healthy, novelty[here])
    return found


def _some(X: Rows, y: Rows, most: int, seed: int) -> tuple[Rows, Rows]:
    """Return at most `most` rows, at random."""
    chosen = np.sort(np.random.default_rng(seed).permutation(len(X))[:most])
    return X[chosen], y[chosen]


def _answers(dist: AnyDistribution, y: Rows) -> dict[str, float | None]:
    """Return the error rate of classes; else MAE and coverage of the 90 % interval."""
    if dist.is_categorical:
        return {"error": 1 - metrics.accuracy(dist, y)}
    return {"error": metrics.mae(dist, y), "coverage_90": metrics.coverage(dist, y, LEVEL)}
