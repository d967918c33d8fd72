"""The predictions of a regressor and of a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin

from rdeepsense.arrays import Booleans, Floats
from rdeepsense.data import checks
from rdeepsense.distributions import (
    AnyDistribution,
    Categorical,
    RegressionDistribution,
)
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import DistributionEstimator
from rdeepsense.fitting.target import ClassTarget, RegressionTarget


@dataclass(kw_only=True, eq=False, repr=False)
class Regressor(MultiOutputMixin, RegressorMixin, DistributionEstimator):
    """A regressor of one or several numbers per row; 1-D y gives 1-D distributions."""

    target_type: ClassVar[type[RegressionTarget]] = RegressionTarget

    def predict_dist(self, X: ArrayLike, samples: int | None = None) -> RegressionDistribution:
        """Return the predictive distribution of each row and output."""
        return as_regression(self._distribution(X, samples))

    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: Literal[False] = False,
        quantiles: Sequence[float] | None = None,
    ) -> Floats: ...

    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[True], quantiles: None = None
    ) -> tuple[Floats, Floats]: ...

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        quantiles: Sequence[float] | None = None,
    ) -> Floats | tuple[Floats, Floats]:
        """Return the predictive mean; with `return_std`, also the standard deviation.

        With `quantiles`, such as ``[0.1, 0.5, 0.9]``, return these instead of the mean, as (rows,
        quantiles), of several outputs (rows, quantiles, outputs).
        """
        if quantiles is not None and return_std:
            raise InputError("give return_std or quantiles, not both")
        dist = self.predict_dist(X)
        if quantiles is None:
            return (dist.mean, dist.std) if return_std else dist.mean
        levels = np.asarray(quantiles)
        if levels.ndim != 1:
            raise InputError(f"quantiles = {quantiles!r:.60}; accepted: a list of numbers")
        found = dist.quantile(levels.reshape(-1, *[1] * len(dist.shape)))
        return np.ascontiguousarray(np.swapaxes(found, 0, 1))

    def predict_interval(
        self,
        X: ArrayLike,
        coverage: float = 0.9,
        method: str = "auto",
        groups: ArrayLike | None = None,
    ) -> tuple[Floats, Floats]:
        """Return the central interval that should hold the truth with probability `coverage`.

        "predicted" is that of the predictive distribution; "conformal" has a guarantee for
        finite samples, given rows set aside (``calibrate="conformal"`` or `conformalise`). "auto"
        is "conformal" where such rows were set aside.
        """
        checks.check_choice("method", method, ("auto", "predicted", "conformal"))
        dist = self.predict_dist(X)
        conformal = self.fitted_.conformal is not None or groups is not None
        if method == "predicted" or (method == "auto" and not conformal):
            low, high = dist.interval(coverage)
            return np.asarray(low, np.float64), np.asarray(high, np.float64)
        reach = self._thresholds(coverage, len(dist), groups).reshape(-1, *dist.shape[1:])
        return dist.mean - reach * dist.std, dist.mean + reach * dist.std


@dataclass(kw_only=True, eq=False, repr=False)
class Classifier(ClassifierMixin, DistributionEstimator):
    """A classifier of rows into two or more classes; labels may be numbers or strings."""

    target_type: ClassVar[type[ClassTarget]] = ClassTarget

    def predict_dist(self, X: ArrayLike, samples: int | None = None) -> Categorical:
        """Return the predictive distribution of each row, with the labels as its `classes`."""
        return self._labelled(self._distribution(X, samples))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class of each row."""
        dist = self.predict_dist(X)
        labels: NDArray[Any] = self.classes_[dist.mode]
        return labels

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the probability of each class, in the order of `classes_`."""
        return self.predict_dist(X).mean

    def _labelled(self, dist: AnyDistribution) -> Categorical:
        assert isinstance(dist, Categorical)
        return dist.labelled(self.classes_)

    def predict_set(
        self, X: ArrayLike, coverage: float = 0.9, groups: ArrayLike | None = None
    ) -> Booleans:
        """Tell which classes, (rows, classes), a conformal set of this coverage holds."""
        probs = self.predict_proba(X)
        inside: Booleans = 1 - probs <= self._thresholds(coverage, len(probs), groups)
        return inside

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of probabilities."""
        target = self.fitted_.target
        assert isinstance(target, ClassTarget)
        return target.classes


def as_regression(dist: AnyDistribution) -> RegressionDistribution:
    """Narrow the type of a regressor's prediction."""
    assert not isinstance(dist, Categorical)
    return dist
