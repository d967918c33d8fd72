"""MCDrop: Monte Carlo dropout (Gal & Ghahramani 2016), the paper's first rival (section 4.3).

A network trained with dropout and the squared error (cross-entropy for classes) is run k times
with dropout on. Mean and population variance of the k outputs are the prediction:

    mean = 1/k sum_i f_i(x),   var = 1/k sum_i (f_i(x) - mean)^2 + 1/tau
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from rdeepsense.data import checks
from rdeepsense.data.scaling import Scaler
from rdeepsense.distributions import AnyDistribution, Gaussian
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.errors import InputError
from rdeepsense.estimators.network_estimator import NetworkEstimator
from rdeepsense.fitting.passes import choose_device, matched, sampled_passes
from rdeepsense.fitting.target import ClassTargets, RegressionTargets

NOISE = ("tuned", "none")
VARIANCE_FLOOR = 1e-6  # of a standardised target: with ReLU, k passes can agree to the last bit


class MCDrop(NetworkEstimator):
    """What the regressor and the classifier share.

    Parameters
    ----------
    samples : passes of one prediction, at least 2; `predict_dist(X, samples=k)` takes any other
        number from the same fitted model.
    noise : "tuned" adds Gal's observation noise (for classes: a temperature), chosen by validation
        NLL; "none" is the paper's version, whose variance knows of no noise in the data.
    drop_prob : probability to drop a hidden unit; "auto" chooses by validation NLL.

    The others are those of `RDeepSenseRegressor`.
    """

    def __init__(
        self,
        samples: int = 20,
        noise: str = "tuned",
        hidden: Sequence[int] = (64, 64),
        network: nn.Module | None = None,
        drop_prob: float | Sequence[float] | str = 0.05,
        input_drop_prob: float = 0.0,
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
        self.samples = samples
        self.noise = noise
        self.drop_prob = drop_prob
        self.input_drop_prob = input_drop_prob

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # the masks a row meets depend on its place in the table
        return tags

    def predict_dist(self, X: Any, samples: int | None = None) -> Any:
        """The predictive distribution of each row from `samples` passes (the estimator's own)."""
        return super().predict_dist(X, samples)

    def _check_options(self) -> None:
        super()._check_options()
        _check_samples(self.samples)
        checks.check_choice("noise", self.noise, NOISE)

    def _passes(
        self,
        networks: list[StochasticNetwork],
        X: NDArray[Any],
        scaler: Scaler,
        samples: int | None,
        seed: int,
    ) -> AnyDistribution:
        count = _check_samples(self.samples if samples is None else samples)
        device = choose_device(self.device)
        return sampled_passes(networks[0], X, scaler, device, count, seed, self._combine)

    def _combine(self, drawn: list[AnyDistribution]) -> AnyDistribution:
        raise NotImplementedError


class MCDropRegressor(RegressionTargets, MCDrop):
    __doc__ = MCDrop.__doc__

    def _likelihoods(self) -> tuple[str, ...]:
        return ("point",)

    def _calibration_kind(self) -> str | None:
        return "noise" if self.noise == "tuned" else None

    def _combine(self, drawn: list[AnyDistribution]) -> AnyDistribution:
        values = np.array([d.mean for d in drawn])
        var = values.var(axis=0)
        low = var < VARIANCE_FLOOR
        if self.noise == "none" and low.any():
            warnings.warn(
                f"{low.sum()} of {low.size} variances of the passes are below "
                f"{VARIANCE_FLOOR:g} of the target's; that floor is used for them",
                stacklevel=6,
            )
        return Gaussian(values.mean(axis=0), np.sqrt(np.maximum(var, VARIANCE_FLOOR)))


class MCDropClassifier(ClassTargets, MCDrop):
    __doc__ = MCDrop.__doc__

    def _likelihoods(self) -> tuple[str, ...]:
        return ("categorical",)

    def _calibration_kind(self) -> str | None:
        return "temperature" if self.noise == "tuned" else None

    def _combine(self, drawn: list[AnyDistribution]) -> AnyDistribution:
        return matched(drawn)


def _check_samples(samples: Any) -> int:
    """k passes have a variance only from 2 on."""
    checks.check_whole("samples", samples, 1)
    if samples < 2:
        raise InputError("samples = 1: the variance of one pass is 0; at least 2 are needed")
    return int(samples)
