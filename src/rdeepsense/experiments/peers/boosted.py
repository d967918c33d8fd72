"""What the peers that boost trees share: which rows they learn from, and their calibration.

They are judged as our own estimators are. Validation rows are split off by the same rule and with
the same seed; the number of trees, and one scale (of classes, one temperature), are chosen there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state

from rdeepsense import calibration
from rdeepsense.arrays import Floats
from rdeepsense.calibration import Calibration
from rdeepsense.data.rows import FitRows, split_rows
from rdeepsense.data.splits import Part
from rdeepsense.distributions import AnyDistribution, Categorical, Gaussian
from rdeepsense.errors import InputError, TrainingError
from rdeepsense.fitting.target import ClassTarget, RegressionTarget, Target


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
