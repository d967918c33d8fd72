"""What a target is: numbers with units, or classes. Mixed into every estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from rdeepsense.data import checks
from rdeepsense.data.scaling import TARGETS, Scaler
from rdeepsense.data.splits import Part
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.errors import InputError

Floats = NDArray[np.float64]


class RegressionTargets(MultiOutputMixin, RegressorMixin):
    """One or several numbers per row; 1-D y gives 1-D distributions."""

    _are_classes = False
    _calibration = "scale"

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The predictive mean; with `return_std`, also the standard deviation."""
        dist = self.predict_dist(X)
        return (dist.mean, dist.std) if return_std else dist.mean

    def predict_interval(
        self, X: Any, coverage: float = 0.9, method: str = "predicted", groups: Any = None
    ) -> tuple[Floats, Floats]:
        """The central interval that should hold the truth with probability `coverage`.

        "predicted" is that of the predictive distribution; "conformal" has a guarantee for
        finite samples, given rows set aside (`conformalise`).
        """
        checks.check_choice("method", method, ("predicted", "conformal"))
        dist = self.predict_dist(X)
        if method == "predicted":
            low, high = dist.interval(coverage)
            return low, high
        reach = self._thresholds(coverage, len(dist), groups).reshape(-1, *dist.shape[1:])
        return dist.mean - reach * dist.std, dist.mean + reach * dist.std

    def _encode(self, y: Any, rows: int, weight: Floats | None) -> NDArray[Any]:
        targets = checks.check_targets(y, rows)
        checks.check_not_constant(targets)
        self.output_shape_ = targets.shape[1:]
        return targets

    def _encode_more(self, y: Any, rows: int) -> NDArray[Any]:
        targets = checks.check_targets(y, rows)
        if targets.shape[1:] != self.output_shape_:
            raise InputError(
                f"y has outputs of shape {targets.shape[1:]}, "
                f"the model was fitted on {self.output_shape_}"
            )
        return targets

    def _outputs(self) -> int:
        return int(np.prod(self.output_shape_))

    def _target_scaler(self, y: NDArray[Any], part: Part, likelihood: str) -> Scaler:
        kind = Scaler.robust if likelihood == "student" else Scaler.standard
        return kind(y.reshape(len(y), -1), part.index, part.weight, TARGETS)

    def _in_units(self, dist: AnyDistribution, scaler: Scaler | None) -> AnyDistribution:
        """From the network's scale, (rows, outputs), to the target's units and shape."""
        assert scaler is not None
        assert not isinstance(dist, Categorical)
        dist = dist.affine(scaler.shift, scaler.scale)
        return dist[:, 0] if self.output_shape_ == () else dist

    def _describe_target(self) -> dict[str, Any]:
        return {"shape": list(self.output_shape_)}

    def _restore_target(self, target: dict[str, Any]) -> None:
        self.output_shape_ = tuple(target["shape"])


class ClassTargets(ClassifierMixin):
    """One of several classes per row; labels may be numbers or strings."""

    _are_classes = True
    _calibration = "temperature"

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        check_is_fitted(self)
        labels: NDArray[Any] = self.classes_[self.predict_dist(X).mode]
        return labels

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of `classes_`."""
        probs: Floats = self.predict_dist(X).mean
        return probs

    def predict_set(self, X: Any, coverage: float = 0.9, groups: Any = None) -> NDArray[np.bool_]:
        """Which classes, (rows, classes), a conformal set of this coverage holds."""
        probs = self.predict_proba(X)
        inside: NDArray[np.bool_] = 1 - probs <= self._thresholds(coverage, len(probs), groups)
        return inside

    def _encode(self, y: Any, rows: int, weight: Floats | None) -> NDArray[Any]:
        y = self._labels(y, rows)
        present = np.unique(y if weight is None else y[weight > 0])
        if len(present) < 2:
            raise InputError(
                f"y holds one class only ({present[0]!r}); a classifier needs two classes or more"
            )
        self.classes_ = np.unique(y)
        return self._numbers(y)

    def _encode_more(self, y: Any, rows: int) -> NDArray[Any]:
        y = self._labels(y, rows)
        unknown = sorted(set(np.unique(y).tolist()) - set(self.classes_.tolist()))
        if unknown:
            raise InputError(f"y holds the class {unknown[0]!r}, which the model was not fitted on")
        return self._numbers(y)

    def _numbers(self, y: NDArray[Any]) -> NDArray[np.int64]:
        return np.searchsorted(self.classes_, y).astype(np.int64)

    def _labels(self, y: Any, rows: int) -> NDArray[Any]:
        if y is None:
            raise InputError(
                "requires y to be passed, but the target y is None: fit(X, y) needs the labels"
            )
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        checks.check_length("y", len(y), rows)
        return np.asarray(y)

    def _outputs(self) -> int:
        return len(self.classes_)

    def _target_scaler(self, y: NDArray[Any], part: Part, likelihood: str) -> None:
        return None

    def _in_units(self, dist: AnyDistribution, scaler: Scaler | None) -> AnyDistribution:
        return dist

    def _describe_target(self) -> dict[str, Any]:
        return {"dtype": self.classes_.dtype.str, "classes": self.classes_.tolist()}

    def _restore_target(self, target: dict[str, Any]) -> None:
        self.classes_ = np.array(target["classes"], dtype=np.dtype(target["dtype"]))
