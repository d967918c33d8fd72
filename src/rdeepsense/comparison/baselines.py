"""Boosted trees as baselines: scikit-learn, CatBoost and NGBoost."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils import check_array, check_random_state

from rdeepsense import calibration
from rdeepsense.arrays import Floats
from rdeepsense.calibration import Calibration
from rdeepsense.data.rows import FitRows, split_rows
from rdeepsense.data.splits import Part
from rdeepsense.distributions import AnyDistribution, Categorical, Gaussian
from rdeepsense.errors import InputError, TrainingError, require
from rdeepsense.fitting.target import ClassTarget, RegressionTarget, Target

# --------------------------------------------------------------------------------------------------
# Shared parts of the boosted trees: training rows and calibration
#
# They are judged as our own estimators are. Validation rows are split off by the same rule and with
# the same seed; the number of trees, and one scale (of classes, one temperature), are chosen there.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Boosted:
    """The choice made on validation rows: how many trees, and the factor of the calibration."""

    trees: int
    calibration: float


@dataclass(frozen=True)
class Rows:
    """Inputs with targets, or class numbers, and weights (None: all equal)."""

    X: Floats
    y: NDArray[Any]
    weight: Floats | None


@dataclass(eq=False, repr=False)
class BoostedPeer(BaseEstimator):
    """Trees that are boosted until validation rows say stop, then calibrated there.

    A subclass trains (`_train`) and predicts (`_moments`, `_probabilities`). Numbers are learnt
    standardised, so that the result does not depend on the target's unit.
    """

    task: str = "regression"
    random_state: int = 0
    candidate_: Boosted = field(init=False)

    called: ClassVar[str]
    accepts_nan: ClassVar[bool] = False

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Train on X (rows, features) and y; rows of a group stay on one side; returns self."""
        table = self._table(X)
        kind = RegressionTarget if self.task == "regression" else ClassTarget
        target: Target
        target, encoded = kind.of(y, len(table), None)
        if target.shape:
            raise InputError(f"{self.called} predicts one target; y has shape {np.shape(y)}")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        rows = split_rows(table, encoded, None, groups, target.is_classes, False, seed)
        self._target, self._shift, self._factor = target, 0.0, 1.0
        self._prepare(rows)
        train, held = self._part(rows, rows.train), self._part(rows, rows.validation)
        trees = self._train(train, held, seed % 2**31)
        X_val, y_val = rows.held_out
        self._calibration: Calibration = calibration.fit(
            target.calibration, self._stated(X_val), y_val, rows.validation.relative_weight
        )
        self.candidate_ = Boosted(trees, self._calibration.summary())
        return self

    def predict_dist(self, X: ArrayLike, samples: int | None = None) -> AnyDistribution:
        """Return the calibrated distribution of each row."""
        table = self._table(X)
        return self._calibration.apply(self._stated(table))

    def _table(self, X: ArrayLike) -> Floats:
        finite = "allow-nan" if self.accepts_nan else True
        table: Floats = check_array(X, dtype=np.float64, ensure_all_finite=finite)
        return table

    def _train(self, train: Rows, validation: Rows, seed: int) -> int:
        """Boost; returns the number of trees that the validation rows ask for."""
        raise NotImplementedError

    def _moments(self, X: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the standardised target."""
        raise NotImplementedError

    def _probabilities(self, X: Floats) -> Floats:
        """Return those of the classes that have training rows."""
        raise NotImplementedError

    def _prepare(self, rows: FitRows) -> None:
        """Find the target's scale, or the classes that have training rows."""
        own, weight = rows.y[rows.train.index], rows.train.weight
        if self._target.is_classes:
            self._present = np.unique(own)
            if len(self._present) < 2:
                raise TrainingError(f"{self.called}: only one class is left to train on")
            # As if each class had one row more: a class without any is not impossible.
            self._unseen = 1 / (len(own) + self._target.outputs)
            return
        self._shift = float(np.average(own, weights=weight))
        self._factor = float(np.sqrt(np.average((own - self._shift) ** 2, weights=weight)))
        if self._factor == 0:
            raise TrainingError(f"{self.called}: the training rows' targets are all equal")

    def _part(self, rows: FitRows, part: Part) -> Rows:
        """Return rows of the table, classes numbered among those present."""
        X, y, weight = rows.X[part.index], rows.y[part.index], part.relative_weight
        if not self._target.is_classes:
            return Rows(X, (y - self._shift) / self._factor, weight)
        known = np.isin(y, self._present)
        numbers = np.searchsorted(self._present, y[known])
        return Rows(X[known], numbers, None if weight is None else weight[known])

    def _stated(self, X: Floats) -> Gaussian | Categorical:
        """Return what the trees say, not calibrated."""
        if not self._target.is_classes:
            mean, std = self._moments(X)
            # Trees of much the same rows may state a spread that is no number of float64.
            least = np.finfo(np.float64).tiny
            spread = np.maximum(std * self._factor, least)
            return Gaussian(self._shift + self._factor * mean, spread)
        assert self._target.classes is not None
        missing = self._target.outputs - len(self._present)
        probs = np.full((len(X), self._target.outputs), self._unseen)
        probs[:, self._present] = (1 - missing * self._unseen) * self._probabilities(X)
        return Categorical(probs, self._target.classes)


# --------------------------------------------------------------------------------------------------
# scikit-learn's histogram-based boosted trees, with a constant spread
#
# Numbers by squared error, with a Gaussian whose standard deviation is that of the residuals of the
# validation rows; classes by their log loss. Missing values and categories are the trees' own
# affair.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# CatBoost with uncertainty, with its default trees and learning rate
#
# Numbers by RMSEWithUncertainty, the NLL of a Gaussian whose mean and variance the trees predict;
# classes by their log loss.
# --------------------------------------------------------------------------------------------------

CATBOOST_MOST_TREES = 3_000
PATIENCE = 100  # trees after the best one


@dataclass(eq=False, repr=False)
class CatBoost(BoostedPeer):
    """CatBoostRegressor or CatBoostClassifier, stopped and calibrated on validation rows."""

    called: ClassVar[str] = "CatBoost"

    def _train(self, train: Rows, validation: Rows, seed: int) -> int:
        library = require("catboost", "peers")
        options: dict[str, Any] = {
            "iterations": CATBOOST_MOST_TREES,
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


# --------------------------------------------------------------------------------------------------
# NGBoost: natural gradient boosting (Duan et al. 2020)
#
# Its default trees of depth 3 and learning rate of 0.01, with as many steps as validation rows ask
# for.
# --------------------------------------------------------------------------------------------------

MOST_STEPS = 3_000


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
