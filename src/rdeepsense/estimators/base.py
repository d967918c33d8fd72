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
from rdeepsense.calibration.conformal import Conformal
from rdeepsense.data import checks, names
from rdeepsense.data.parquet import ParquetTable
from rdeepsense.data.rows import SET_ASIDE, Data
from rdeepsense.data.splits import Part, distinct, evenly, validation_fraction
from rdeepsense.distributions import AnyDistribution
from rdeepsense.epistemic.novelty import Novelty, bounded
from rdeepsense.errors import InputError
from rdeepsense.fitting import store as model_io

Floats = NDArray[np.float64]


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
        memory: int = 2**30,
    ) -> Self:
        """Train on X (rows, features) and y; returns self.

        A part of the rows is held out to choose the best step and the calibration; `groups` (a
        user or record per row) keeps each group on one side, `validation=(X, y)` brings rows of
        your own instead.

        X may be a folder of Parquet files, or one file, with y the name of the target column, or a
        list of names, `groups` the name of a column, and every other column an input. Its rows are
        trained on in shuffled windows, of which the next is read ahead, and take `memory` bytes at
        most (1 GiB), beside what libraries and networks take. Methods that train networks do this.
        """
        self._check_options()
        self.target_names_ = names.of_target(y)
        self.target_units_: names.Texts | None = None
        self.feature_units_: names.Texts | None = None
        if isinstance(X, str | os.PathLike | ParquetTable):
            data, aside = self._open(X, y, sample_weight, validation, groups, memory)
        else:
            X = checks.check_inputs(self, X, self.missing, reset=True)
            weight = checks.check_weights(sample_weight, len(X))
            encoded = self._encode(y, len(X), weight)
            data, left = self._split(X, encoded, weight, validation, groups)
            aside = None if left is None else (X[left.index], encoded[left.index])
        judged = self._learn(data)
        self._calibrate(judged)
        self.novelty_: Novelty | None = None
        self.conformal_ = None
        if aside is not None:
            dist = self._calibrated(self._predict(aside[0], None))
            self.conformal_ = Conformal.fit(dist, aside[1])
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
    ) -> tuple[Data, Part | None]:
        """Take the validation rows from the table, or those that were given.

        The second part are the rows set aside for conformal prediction, seen by no other choice.
        """
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        labels = y if self._are_classes and groups is None else None
        if validation is None:
            if groups is not None:
                groups = np.asarray(groups)
                checks.check_length("groups", len(groups), len(X))
            rows = distinct(X, y, weight, groups)
            rows, aside = self._set_aside(rows, seed, labels)
            train, held = rows.hold_out(validation_fraction(len(rows)), seed, labels)
            return Data(X, y, rows, train, X, y, held, labels, True, seed), aside
        if groups is not None:
            raise InputError(
                "give groups or validation, not both: groups only split off validation"
            )
        X_val, y_val = self._check_validation(validation)
        rows = evenly(np.arange(len(X)))
        if weight is not None:
            rows = Part(rows.index, weight, rows.cell)[weight > 0]
        rows, aside = self._set_aside(rows, seed, labels)
        held = evenly(np.arange(len(X_val)))
        return Data(X, y, rows, rows, X_val, y_val, held, labels, False, seed), aside

    def _check_validation(self, validation: tuple[Any, Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        if not isinstance(validation, tuple) or len(validation) != 2:
            raise InputError("validation must be a pair (X, y)")
        X_val = checks.check_inputs(self, validation[0], self.missing, reset=False)
        return X_val, self._encode_more(validation[1], len(X_val))

    def _set_aside(
        self, rows: Part, seed: int, labels: NDArray[Any] | None
    ) -> tuple[Part, Part | None]:
        if self.calibrate != "conformal":
            return rows, None
        return rows.hold_out(SET_ASIDE, seed + 1, labels)

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
        X = checks.check_inputs(self, X, self.missing, reset=False)
        return self._calibrated(self._predict(X, samples))

    def _calibrated(self, dist: AnyDistribution) -> AnyDistribution:
        return dist if self.calibration_ is None else self.calibration_.apply(dist)

    def conformalise(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Set thresholds for conformal prediction on rows that nothing was fitted or chosen on.

        `fit` with ``calibrate="conformal"`` does this with a fifth of its rows. With `groups` (a
        kind of device, say) each label gets thresholds, and a guarantee, of its own.
        """
        dist = self.predict_dist(X)
        self.conformal_ = Conformal.fit(dist, self._encode_more(y, len(dist)), groups)
        return self

    def _thresholds(self, coverage: float, rows: int, groups: Any) -> Floats:
        if self.conformal_ is None:
            raise InputError(
                'conformal prediction needs rows set aside: fit with calibrate="conformal", or '
                "give some to conformalise(X, y)"
            )
        return self.conformal_.threshold(coverage, rows, groups)

    def describe(
        self, target_names: Any = None, target_units: Any = None, feature_units: Any = None
    ) -> Self:
        """Say what targets are called and what targets and inputs are measured in; returns self.

        The texts travel in the model file and in every export. Each argument is a list with one
        text for each target or input (of windows, each channel); units may be a dictionary by name,
        where inputs are called as in `feature_names_in_`. Targets have names already where y came
        with them. `fit` forgets the units.
        """
        check_is_fitted(self)
        targets = 1 if self._are_classes else self._outputs()
        if target_names is not None:
            self.target_names_ = names.texts("target_names", target_names, targets)
        if target_units is not None:
            if self._are_classes:
                raise InputError("target_units are for regression; classes have no unit")
            known = self.target_names_
            self.target_units_ = names.texts("target_units", target_units, targets, known)
        if feature_units is not None:
            known = getattr(self, "feature_names_in_", None)
            count = self.n_features_in_
            self.feature_units_ = names.texts("feature_units", feature_units, count, known)
        return self

    def fit_novelty(self, X: Any, held_out: Any = None) -> Self:
        """Learn what inputs are like, from the rows that were trained on; returns self.

        `held_out` are other rows of the kind that will be met later (other users, say), with no
        fault in them. Without them a fifth of X is held out at random. No row is kept.
        """
        check_is_fitted(self)
        X = checks.check_inputs(self, X, self.missing, reset=False)
        if held_out is not None:
            held_out = checks.check_inputs(self, held_out, self.missing, reset=False)
        parts = bounded(X, held_out)
        self.novelty_ = Novelty.fit(*(self.input_scaler_.transform(p).numpy() for p in parts))
        return self

    def novelty(self, X: Any) -> Floats:
        """How unlike the known rows each row is: the share of rows held out that are less so.

        Above 0.95 is a row that is stranger than 95 % of them; see `epistemic.novelty` for the
        formula. It needs `fit_novelty`, is a score of the inputs alone, and is kept by `save`.
        """
        check_is_fitted(self)
        if self.novelty_ is None:
            raise InputError("novelty needs fit_novelty(X), X the rows that were trained on")
        X = checks.check_inputs(self, X, self.missing, reset=False)
        return self.novelty_.novelty(self.input_scaler_.transform(X).numpy())

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
        """The name of the calibration to fit; where the head is open, so is its correction."""
        if self.calibrate is True and getattr(self, "likelihood", None) == "auto":
            return "auto"
        return calibration.kind_of(self.calibrate, self._calibration)

    def _open(
        self, X: Any, y: Any, sample_weight: Any, validation: Any, groups: Any, memory: int
    ) -> tuple[Data, tuple[NDArray[Any], NDArray[Any]] | None]:
        """What `_split` does, for a table in files; the rows set aside as X and y."""
        raise InputError(
            f"{type(self).__name__} does not train on files ({X!r}); read the table and give arrays"
        )

    def _learn(self, data: Data) -> Judged:
        """Learn from the training rows and predict the validation rows."""
        raise NotImplementedError

    def _predict(self, X: NDArray[Any], samples: int | None) -> AnyDistribution:
        """The uncalibrated distribution in the target's own units."""
        raise NotImplementedError
