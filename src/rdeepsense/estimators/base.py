"""What all estimators share: check, split, learn, calibrate; distributions out; model files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rdeepsense import calibration, metrics
from rdeepsense.distributions import AnyDistribution
from rdeepsense.errors import InputError
from rdeepsense.estimators import checks, model_io
from rdeepsense.estimators.holdout import Part, distinct, evenly, validation_fraction

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Data:
    """The rows of one fit: checked, encoded, split."""

    X: NDArray[Any]
    y: NDArray[Any]
    rows: Part  # all that may be learnt from, validation included where it is split off
    train: Part
    X_val: NDArray[Any]
    y_val: NDArray[Any]
    validation: Part
    labels: NDArray[Any] | None  # class numbers, for splits that keep every class's share
    split_off: bool  # whether the validation rows are rows of X
    seed: int


@dataclass(frozen=True)
class Judged:
    """Predictions, not yet calibrated, of rows that the predicting networks were not trained on."""

    dist: AnyDistribution
    X: NDArray[Any]
    y: NDArray[Any]
    weight: Floats | None


class DistributionEstimator(BaseEstimator):
    """An estimator whose every prediction is a distribution, behind scikit-learn's manners.

    A subclass learns (`_learn`) and predicts (`_predict`, uncalibrated); a target mixin
    (`estimators.targets`) says what y is and turns distributions into predictions.
    """

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        validation: tuple[Any, Any] | None = None,
        groups: Any = None,
    ) -> Self:
        """Train on X (rows, features) and y; returns self.

        A part of the rows is held out to choose the best step and the calibration; `groups` (a
        user or record per row) keeps each group on one side, `validation=(X, y)` brings rows of
        your own instead.
        """
        self._check_options()
        X = checks.check_inputs(self, X, self.missing, reset=True)
        weight = checks.check_weights(sample_weight, len(X))
        encoded = self._encode(y, len(X), weight)
        data = self._split(X, encoded, weight, validation, groups)
        judged = self._learn(data)
        self._calibrate(judged)
        chosen = np.random.default_rng(data.seed).permutation(len(judged.y))[: self.keep_rows]
        self.kept_rows_ = (judged.X[np.sort(chosen)], judged.y[np.sort(chosen)])
        return self

    def _split(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        weight: Floats | None,
        validation: tuple[Any, Any] | None,
        groups: Any,
    ) -> Data:
        """Take the validation rows from the table, or those that were given."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        labels = y if self._are_classes and groups is None else None
        if validation is None:
            if groups is not None:
                groups = np.asarray(groups)
                checks.check_length("groups", len(groups), len(X))
            rows = distinct(X, y, weight, groups)
            train, held = rows.hold_out(validation_fraction(len(rows)), seed, labels)
            return Data(X, y, rows, train, X, y, held, labels, True, seed)
        if groups is not None:
            raise InputError(
                "give groups or validation, not both: groups only split off validation"
            )
        if not isinstance(validation, tuple) or len(validation) != 2:
            raise InputError("validation must be a pair (X, y)")
        X_val = checks.check_inputs(self, validation[0], self.missing, reset=False)
        y_val = self._encode_more(validation[1], len(X_val))
        rows = evenly(np.arange(len(X)))
        if weight is not None:
            rows = Part(rows.index, weight, rows.cell)[weight > 0]
        held = evenly(np.arange(len(X_val)))
        return Data(X, y, rows, rows, X_val, y_val, held, labels, False, seed)

    def _calibrate(self, judged: Judged) -> None:
        """Fit the calibration on rows that were not trained on, and keep the figures there."""
        kind = self._calibration_kind()
        dist = judged.dist
        self.calibration_ = None
        if kind is not None:
            self.calibration_ = calibration.fit(kind, dist, judged.y, judged.weight)
            dist = self.calibration_.apply(dist)
        self.validation_scores_ = metrics.evaluate(dist, judged.y)

    def predict_dist(self, X: Any, samples: int | None = None) -> Any:
        """The predictive distribution of each row; the subclass says what `samples` does."""
        check_is_fitted(self)
        if samples is not None:
            checks.check_whole("samples", samples, 1)
        dist = self._predict(checks.check_inputs(self, X, self.missing, reset=False), samples)
        return dist if self.calibration_ is None else self.calibration_.apply(dist)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one safetensors file, whole or not at all."""
        check_is_fitted(self)
        model_io.save(self, path)

    # -- what a subclass says -------------------------------------------------------------------

    def _check_options(self) -> None:
        """Refuse bad constructor arguments."""
        checks.check_choice("missing", self.missing, checks.MISSING)
        checks.check_whole("keep_rows", self.keep_rows, 0)
        self._calibration_kind()

    def _calibration_kind(self) -> str | None:
        """The name of the calibration to fit."""
        return calibration.kind_of(self.calibrate, self._calibration)

    def _learn(self, data: Data) -> Judged:
        """Learn from the training rows and predict the validation rows."""
        raise NotImplementedError

    def _predict(self, X: NDArray[Any], samples: int | None) -> AnyDistribution:
        """The uncalibrated distribution in the target's own units."""
        raise NotImplementedError
