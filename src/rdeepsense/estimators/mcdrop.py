"""MCDrop: Monte Carlo dropout (Gal & Ghahramani 2016), the paper's first baseline (section 4.3).

A network trained with dropout and the squared error (cross-entropy for classes) is run k times
with dropout on. Mean and population variance of the k outputs are the prediction:

    mean = 1/k sum_i f_i(x),   var = 1/k sum_i (f_i(x) - mean)^2 + 1/tau
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rdeepsense.data import checks
from rdeepsense.errors import InputError
from rdeepsense.estimators.network import Classifier, NetworkEstimator, Regressor
from rdeepsense.fitting.passes import (
    Combine,
    Passes,
    Sampled,
    matched,
    moments_of_values,
    moments_without_noise,
)
from rdeepsense.fitting.records import Candidate, candidates
from rdeepsense.fitting.spec import FitSpec

NOISE = ("tuned", "none")


@dataclass(kw_only=True, eq=False, repr=False)
class MCDrop(NetworkEstimator):
    """Predictions from many passes with dropout on.

    Further parameters are those of `NetworkEstimator` and `DistributionEstimator`.

    Parameters
    ----------
    samples : passes of one prediction, at least 2; `predict_dist(X, samples=k)` takes any other
        number from the same fitted model.
    noise : "tuned" adds Gal's observation noise (for classes: a temperature), chosen by validation
        NLL; "none" is the paper's version, whose variance knows of no noise in the data.
    drop_prob : probability to drop a hidden unit; "auto" chooses by validation NLL.
    input_drop_prob : the same for the inputs.
    """

    samples: int = 20
    noise: str = "tuned"
    drop_prob: float | Sequence[float] | str = 0.05
    input_drop_prob: float = 0.0

    def __sklearn_tags__(self) -> Any:  # Any: scikit-learn's own, which has no types
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # the masks a row meets depend on its place in the table
        return tags

    def _spec(self) -> FitSpec:
        checks.check_choice("noise", self.noise, NOISE)
        return replace(super()._spec(), input_drop_prob=self.input_drop_prob)

    def _passes(self, samples: int | None) -> Passes:
        return Sampled(_at_least_two(self.samples if samples is None else samples), self._combine())

    def _combine(self) -> Combine:
        """Return what makes one distribution of the passes."""
        raise NotImplementedError


@dataclass(kw_only=True, eq=False, repr=False)
class MCDropRegressor(Regressor, MCDrop):
    __doc__ = MCDrop.__doc__

    def _grid(self) -> tuple[Candidate, ...]:
        return candidates(("point",), 0.0, self.drop_prob)

    def _calibration(self) -> str | None:
        return "noise" if self.noise == "tuned" else None

    def _combine(self) -> Combine:
        return moments_without_noise if self.noise == "none" else moments_of_values


@dataclass(kw_only=True, eq=False, repr=False)
class MCDropClassifier(Classifier, MCDrop):
    __doc__ = MCDrop.__doc__

    def _grid(self) -> tuple[Candidate, ...]:
        return candidates(("categorical",), 0.0, self.drop_prob)

    def _calibration(self) -> str | None:
        return "temperature" if self.noise == "tuned" else None

    def _combine(self) -> Combine:
        return matched


def _at_least_two(samples: int) -> int:
    """Check that there are two passes or more: one has no variance."""
    checks.check_whole("samples", samples, 1)
    if samples < 2:
        raise InputError("samples = 1: the variance of one pass is 0; at least 2 are needed")
    return int(samples)
