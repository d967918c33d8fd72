"""scikit-learn's histogram-based boosted trees, with one spread for all rows: the usual first try.

Numbers by squared error, with a Gaussian whose standard deviation is that of the residuals of the
validation rows; classes by their log loss. Missing values and categories are the trees' own affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from rdeepsense.arrays import Floats
from rdeepsense.experiments.peers.boosted import BoostedPeer, Rows

MOST_TREES = 100  # as many as scikit-learn takes by default
FEWEST_SPREAD = 1e-6  # of the target's own standard deviation


@dataclass(eq=False, repr=False)
class HistBoosted(BoostedPeer):
    """HistGradientBoosting with its defaults, as many trees as validation rows ask for."""

    categories: Sequence[int] = ()  # columns that hold codes

    called: ClassVar[str] = "HistGradientBoosting"
    accepts_nan: ClassVar[bool] = True

    def _train(self, train: Rows, validation: Rows, seed: int) -> int:
        kind: Any = HistGradientBoostingRegressor
        staged = "staged_predict"
        if self._target.is_classes:
            kind, staged = HistGradientBoostingClassifier, "staged_predict_proba"
        options = {
            "early_stopping": False,
            "random_state": seed,
            "categorical_features": list(self.categories) or None,
        }
        model = kind(max_iter=MOST_TREES, **options)
        model.fit(train.X, train.y, sample_weight=train.weight)
        weight = validation.weight
        losses = [
            float(np.average(self._losses(found, validation.y), weights=weight))
            for found in getattr(model, staged)(validation.X)
        ]
        trees = int(np.argmin(losses)) + 1
        if trees < MOST_TREES:
            model = kind(max_iter=trees, **options)
            model.fit(train.X, train.y, sample_weight=train.weight)
        self._model = model
        self._spread = max(float(np.sqrt(min(losses))), FEWEST_SPREAD)
        return trees

    def _losses(self, found: Floats, y: Any) -> Floats:
        if not self._target.is_classes:
            return np.asarray((found - y) ** 2)
        own = found[np.arange(len(y)), np.asarray(y, np.int64)]
        return np.asarray(-np.log(np.maximum(own, 1e-12)))

    def _moments(self, X: Floats) -> tuple[Floats, Floats]:
        return np.asarray(self._model.predict(X)), np.full(len(X), self._spread)

    def _probabilities(self, X: Floats) -> Floats:
        return np.asarray(self._model.predict_proba(X))
