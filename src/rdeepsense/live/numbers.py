"""A live model of numbers: distributions moved and stretched, intervals stretched once more.

With the frozen distribution's median M and the mixture's shift m and factor f (`adaptation.rates`),

    prediction   M + m + f (Y - M)
    interval     [c - q (c - low), c + q (high - c)] of the prediction's, c = M + m

Errors are in units of the target's scale, and one label updates all outputs: they share C. Labels
further off than `FAR` standard deviations, of the row's or of the training targets, teach nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.adaptation.rates import Filters, Outlook, Rates, experts
from rdeepsense.arrays import Booleans, Floats
from rdeepsense.calibration import Isotonic
from rdeepsense.data.kinds import NUMBERS, plain, unmasked
from rdeepsense.distributions import (
    AnyDistribution,
    Categorical,
    LocationScale,
    Recalibrated,
    RegressionDistribution,
)
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.live.prediction import Pending

FAR = 100.0
FARTHEST = 1e6  # standard deviations, so that likelihoods and squares stay numbers
LARGEST = 1e100


@dataclass(frozen=True)
class Numbers:
    """Regression with one output or several."""

    shape: tuple[int, ...]
    unit: Floats  # (outputs,)
    coverage: float
    rates: Rates
    recalibrated: Floats | None = None  # std / width where a map recalibrates: slow to find anew

    @classmethod
    def of(cls, fitted: Fitted, coverage: float, rates: Rates) -> Numbers:
        """Take the units of a fitted model."""
        assert fitted.target_scaler is not None
        own, ratio = fitted.calibration, None
        if isinstance(own, Isotonic):
            ratio = Recalibrated(fitted.network.head.unit(), own.stated, own.actual).std
        return cls(fitted.target.shape, fitted.target_scaler.scale, coverage, rates, ratio)

    @property
    def outputs(self) -> int:
        """How many numbers are predicted."""
        return len(self.unit)

    @property
    def tracked(self) -> int:
        """How many quantiles are tracked: one for each output."""
        return len(self.unit)

    def truth(self, y: ArrayLike) -> Floats:
        """Return a label as (outputs,); NaN and infinities are refused."""
        try:
            values = plain("y", np.atleast_1d(unmasked(y)), NUMBERS).astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"y = {y!r:.60} is no number: {error}") from error
        if values.size != self.outputs or not np.isfinite(values).all():
            raise InputError(
                f"y = {y!r:.60}; accepted: {self.outputs} finite number(s), like one row of the "
                "targets"
            )
        found: Floats = np.clip(values.reshape(self.outputs), -LARGEST, LARGEST)
        return found

    def answer(
        self, filters: Filters, frozen: AnyDistribution, outlook: Outlook, q: Floats
    ) -> tuple[AnyDistribution, tuple[Floats, Floats]]:
        """Return the distribution of a row (1, ...) and its interval."""
        assert not isinstance(frozen, Categorical)
        middle, std = self._flat(_median(frozen)), self._std(frozen)
        moved, factor = filters.matched(outlook, (std / self.unit) ** 2)
        shift = moved * self.unit
        change = (shift + (1 - factor) * middle).reshape(1, *self.shape)
        dist = frozen.affine(change, factor.reshape(1, *self.shape))
        low, high = (self._flat(edge) for edge in dist.interval(self.coverage))
        centre = middle + shift
        reach = centre - q * (centre - low), centre + q * (high - centre)
        return dist, (reach[0].reshape(self.shape), reach[1].reshape(self.shape))

    def missed(self, interval: tuple[NDArray[Any], ...], truth: Floats) -> Booleans:
        """Tell which outputs an interval missed."""
        low, high = (edge.reshape(-1) for edge in interval)
        found: Booleans = (truth < low) | (truth > high)
        return found

    def learnt(self, filters: Filters, pending: Pending, truth: Floats) -> Filters:
        """Take in a label."""
        frozen = pending.frozen
        assert not isinstance(frozen, Categorical)
        middle, std = self._flat(_median(frozen)), self._std(frozen)
        error = np.clip(truth - middle, -FARTHEST * std, FARTHEST * std)
        moved, factor = experts(pending.outlook)
        inside = middle + (error - moved * self.unit) / factor
        at = inside.reshape(*inside.shape[:2], 1, *self.shape)
        density = self._by_expert(frozen.log_prob(at), factor.shape[:2])
        logs = (density - np.log(factor)).sum(-1)
        noise = self.rates.within * float(np.mean((std / self.unit) ** 2))
        return filters.observed(pending.psi, error / self.unit, noise, logs, self.rates)

    def is_absurd(self, pending: Pending, truth: Floats) -> bool:
        """Tell whether a label lies so far off that it says nothing about the row."""
        frozen = pending.frozen
        assert not isinstance(frozen, Categorical)
        reach = FAR * np.maximum(self._std(frozen), self.unit)
        return bool((np.abs(truth - self._flat(_median(frozen))) > reach).any())

    def scores(self, dist: AnyDistribution, truths: Floats) -> Floats:
        """Return how far out labels (rows, outputs) lie in distributions of rows, 0 to 1."""
        assert not isinstance(dist, Categorical)
        place = dist.cdf(truths.reshape(dist.shape))
        found: Floats = np.abs(2 * place - 1).reshape(len(truths), -1).mean(1)
        return found

    def _std(self, dist: RegressionDistribution) -> Floats:
        if self.recalibrated is not None and isinstance(dist, Recalibrated):
            assert isinstance(dist.base, LocationScale)
            return self._flat(dist.base.width) * self.recalibrated
        return self._flat(dist.std)

    def _flat(self, values: NDArray[Any]) -> Floats:
        return np.asarray(values, np.float64).reshape(self.outputs)

    def _by_expert(self, values: Floats, experts: tuple[int, ...]) -> Floats:
        return values.reshape(*experts, self.outputs)


def _median(dist: RegressionDistribution) -> NDArray[Any]:
    return dist.centre if isinstance(dist, LocationScale) else dist.quantile(0.5)
