"""NGBoost: natural gradient boosting of a Gaussian, or of class probabilities (Duan et al. 2020).

Its default trees of depth 3 and learning rate of 0.01, with as many steps as validation rows ask
for.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.base import clone

from rdeepsense.arrays import Floats
from rdeepsense.errors import TrainingError, require
from rdeepsense.experiments.peers.boosted import BoostedPeer, Rows

MOST_STEPS = 3_000
PATIENCE = 100  # steps after the best one


@dataclass(eq=False, repr=False)
class NGBoost(BoostedPeer):
    """NGBRegressor (Normal) or NGBClassifier, stopped and calibrated on validation rows."""

    called: ClassVar[str] = "NGBoost"

    def _train(self, train: Rows, validation: Rows, seed: int) -> int:
        library = require("ngboost", "peers")
        distns = require("ngboost.distns", "peers")
        # Its own trees break ties by numpy's global generator.
        tree = clone(require("ngboost.learners", "peers").default_tree_learner)
        options: dict[str, Any] = {
            "Base": tree.set_params(random_state=seed),
            "natural_gradient": True,
            "n_estimators": MOST_STEPS,
            "random_state": seed,
            "verbose": False,
        }
        if self._target.is_classes:
            kind = distns.k_categorical(len(self._present))
            model = library.NGBClassifier(Dist=kind, **options)
        else:
            model = library.NGBRegressor(Dist=distns.Normal, **options)
        try:
            model.fit(
                train.X,
                train.y,
                X_val=validation.X,
                Y_val=validation.y,
                sample_weight=train.weight,
                val_sample_weight=validation.weight,
                early_stopping_rounds=PATIENCE,
            )
        except ValueError as error:  # of trees on gradients that are no numbers any more
            self._stop(model, error)
        self._model, self._steps = model, int(model.best_val_loss_itr or 0) + 1
        return self._steps

    def _stop(self, model: Any, error: ValueError) -> None:
        """Keep the best step of a fit that broke down after it; refuse one that has none.

        On classes that are told apart without error the natural gradient grows without bound.
        """
        if model.best_val_loss_itr is None:
            raise TrainingError(f"NGBoost: {error}") from error
        warnings.warn(
            f"NGBoost broke down at step {len(model.base_models) + 1}, after its best one, which "
            f"is kept: {error!s:.100}",
            stacklevel=2,
        )

    def _moments(self, X: Floats) -> tuple[Floats, Floats]:
        found = self._model.pred_dist(X, max_iter=self._steps)
        return found.loc, found.scale

    def _probabilities(self, X: Floats) -> Floats:
        probs: Floats = self._model.pred_dist(X, max_iter=self._steps).class_probs()
        return probs
