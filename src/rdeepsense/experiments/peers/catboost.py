"""CatBoost: its own recipe for uncertainty, with its default trees and learning rate.

Numbers by RMSEWithUncertainty, the NLL of a Gaussian whose mean and variance the trees predict;
classes by their log loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from rdeepsense.arrays import Floats
from rdeepsense.errors import TrainingError, require
from rdeepsense.experiments.peers.boosted import BoostedPeer, Rows

MOST_TREES = 3_000
PATIENCE = 100  # trees after the best one


@dataclass(eq=False, repr=False)
class CatBoost(BoostedPeer):
    """CatBoostRegressor or CatBoostClassifier, stopped and calibrated on validation rows."""

    called: ClassVar[str] = "CatBoost"

    def _train(self, train: Rows, validation: Rows, seed: int) -> int:
        library = require("catboost", "peers")
        options: dict[str, Any] = {
            "iterations": MOST_TREES,
            "early_stopping_rounds": PATIENCE,
            "use_best_model": True,
            "random_seed": seed,
            "thread_count": torch.get_num_threads(),  # as many as the networks beside it
            "allow_writing_files": False,
            "verbose": False,
        }
        if self._target.is_classes:
            loss = "Logloss" if len(self._present) == 2 else "MultiClass"
            model = library.CatBoostClassifier(loss_function=loss, **options)
        else:
            loss = "RMSEWithUncertainty"
            model = library.CatBoostRegressor(loss_function=loss, learning_rate=0.03, **options)
        held = library.Pool(validation.X, validation.y, weight=validation.weight)
        try:
            model.fit(library.Pool(train.X, train.y, weight=train.weight), eval_set=held)
        except library.CatBoostError as error:
            raise TrainingError(f"CatBoost: {error}") from error
        self._model = model
        return int(model.tree_count_)

    def _moments(self, X: Floats) -> tuple[Floats, Floats]:
        found = self._model.predict(X, prediction_type="RMSEWithUncertainty")
        return found[:, 0], np.sqrt(found[:, 1])

    def _probabilities(self, X: Floats) -> Floats:
        probs: Floats = self._model.predict_proba(X)
        return probs
