"""RDeepSense: one deterministic pass that knows how sure it is (sections 3.1 to 3.3)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d
from torch import nn

from rdeepsense.distributions import AnyDistribution, Categorical, Gaussian, StudentT
from rdeepsense.errors import InputError
from rdeepsense.estimators import checks
from rdeepsense.estimators.base import NetworkEstimator
from rdeepsense.estimators.holdout import Part
from rdeepsense.estimators.scaling import Scaler

LIKELIHOODS = ("gaussian", "student")


class RDeepSenseRegressor(MultiOutputMixin, RegressorMixin, NetworkEstimator):
    """Regression with a predictive distribution for every row and output.

    Parameters
    ----------
    hidden : widths of the hidden layers; the paper's network is ``(500, 500, 500)``.
    network : a torch network of your own instead; it is converted on a copy and starts from its
        present weights. Its last Linear layer must have one column per output.
    drop_prob : probability to DROP a hidden unit (the paper's p is 1 minus this), one value or one
        per layer after the first.
    input_drop_prob : the same for the inputs; harmful on low-dimensional sensor vectors.
    alpha : weight of the error against the negative log-likelihood, in [0, 1).
    beta : weigh the likelihood by the predicted variance to this power (beta-NLL); 0 is the paper.
    likelihood : "gaussian" (the paper's) or "student" (heavy tails: one learned df per output).
    calibrate : fit one scale of the predicted std on the validation rows; True, False or "scale".
    epochs, batch_size, learning_rate : None follows the default recipe.
    weight_decay : AdamW's, on weights only. In the paper's sums over N rows,
        lambda = (1 - alpha) lambda_l + alpha lambda_e corresponds to weight_decay = 2 lambda / N.
    missing : "refuse" or "mean", which replaces NaN inputs by the column's mean.
    checkpoint : a path where the state is saved as training goes on, and taken up again from.
    keep_rows : how many validation rows the model file may carry, for export; 0 leaves them out.
    device : "auto", "cpu", "cuda" or "cuda:N".
    random_state : seed of everything random; equal seeds give equal bits on one machine.
    verbose : show progress when at a terminal.
    """

    _calibration = "scale"

    def __init__(
        self,
        hidden: Sequence[int] = (64, 64),
        network: nn.Module | None = None,
        drop_prob: float | Sequence[float] = 0.05,
        input_drop_prob: float = 0.0,
        alpha: float = 0.5,
        beta: float = 0.0,
        likelihood: str = "gaussian",
        calibrate: bool | str = True,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float = 1e-2,
        missing: str = "refuse",
        checkpoint: str | os.PathLike[str] | None = None,
        keep_rows: int = 512,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = True,
    ) -> None:
        super().__init__(
            hidden=hidden,
            network=network,
            drop_prob=drop_prob,
            input_drop_prob=input_drop_prob,
            alpha=alpha,
            calibrate=calibrate,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            missing=missing,
            checkpoint=checkpoint,
            keep_rows=keep_rows,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.beta = beta
        self.likelihood = likelihood

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The predictive mean; with `return_std`, also the standard deviation."""
        dist = self.predict_dist(X)
        return (dist.mean, dist.std) if return_std else dist.mean

    def predict_interval(
        self, X: Any, coverage: float = 0.9
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The central interval that should hold the truth with probability `coverage`."""
        low, high = self.predict_dist(X).interval(coverage)
        return low, high

    def predict_dist(self, X: Any, samples: int | None = None) -> Gaussian | StudentT:
        """The predictive distribution of each row; see `NetworkEstimator.predict_dist`."""
        dist = super().predict_dist(X, samples)
        assert isinstance(dist, Gaussian | StudentT)
        return dist

    def _encode(self, y: Any, rows: int, weight: NDArray[np.float64] | None) -> NDArray[Any]:
        checks.check_choice("likelihood", self.likelihood, LIKELIHOODS)
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

    def _likelihood(self) -> str:
        return self.likelihood

    def _target_scaler(self, y: NDArray[Any], part: Part) -> Scaler:
        kind = Scaler.robust if self.likelihood == "student" else Scaler.standard
        return kind(y.reshape(len(y), -1), part.index, part.weight)

    def _describe_target(self) -> dict[str, Any]:
        return {"shape": list(self.output_shape_)}

    def _restore_target(self, target: dict[str, Any]) -> None:
        self.output_shape_ = tuple(target["shape"])

    def _in_units(self, dist: AnyDistribution) -> AnyDistribution:
        assert isinstance(dist, Gaussian | StudentT)
        assert self.target_scaler_ is not None
        dist = dist.affine(self.target_scaler_.shift, self.target_scaler_.scale)
        return dist[:, 0] if self.output_shape_ == () else dist


class RDeepSenseClassifier(ClassifierMixin, NetworkEstimator):
    """Classification with calibrated probabilities; parameters as for `RDeepSenseRegressor`.

    The error that alpha weighs is the Brier score, the head a softmax, and `calibrate` fits one
    temperature ("temperature"). Labels may be numbers or strings.
    """

    _calibration = "temperature"

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        number = self.predict_dist(X).mode
        labels: NDArray[Any] = self.classes_[number]
        return labels

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, in the order of `classes_`."""
        return self.predict_dist(X).probs

    def predict_dist(self, X: Any, samples: int | None = None) -> Categorical:
        """The predictive distribution over class numbers; see `NetworkEstimator.predict_dist`."""
        dist = super().predict_dist(X, samples)
        assert isinstance(dist, Categorical)
        return dist

    def _encode(self, y: Any, rows: int, weight: NDArray[np.float64] | None) -> NDArray[Any]:
        y = self._labels(y, rows)
        present = y if weight is None else y[weight > 0]
        classes = np.unique(present)
        if len(classes) < 2:
            raise InputError(
                f"y holds one class only ({classes[0]!r}); a classifier needs two classes or more"
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

    def _likelihood(self) -> str:
        return "categorical"

    def _target_scaler(self, y: NDArray[Any], part: Part) -> None:
        return None

    def _describe_target(self) -> dict[str, Any]:
        return {"dtype": self.classes_.dtype.str, "classes": self.classes_.tolist()}

    def _restore_target(self, target: dict[str, Any]) -> None:
        self.classes_ = np.array(target["classes"], dtype=np.dtype(target["dtype"]))
