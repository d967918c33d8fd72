"""Live predictions of numbers and of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax

from rdeepsense.adaptation.rates import STRETCHES, Filters, Outlook, Rates, experts
from rdeepsense.arrays import Booleans, Floats
from rdeepsense.calibration import Isotonic
from rdeepsense.data.columns import NUMBERS, as_numpy, unmasked
from rdeepsense.distributions import (
    AnyDistribution,
    Categorical,
    LocationScale,
    Recalibrated,
    RegressionDistribution,
)
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.fitting.target import ClassTarget
from rdeepsense.status import Status

# --------------------------------------------------------------------------------------------------
# The prediction for one row, and what is stored until its label arrives
# --------------------------------------------------------------------------------------------------

Interval = tuple[Floats, Floats]


@dataclass(frozen=True)
class Prediction:
    """The answer to one row.

    `distribution` is of one value, or of one for each output. `interval` is (low, high), each of
    the target's shape; for classes it tells which of them the set holds. `ticket` names the row
    when its label comes.
    """

    distribution: AnyDistribution
    interval: Interval | Booleans
    status: Status
    ticket: int


@dataclass(frozen=True)
class Pending:
    """A row that waits for its label: what the model made of it, and what was said of it."""

    row: NDArray[Any]  # (1, ...), as the network takes it
    frozen: AnyDistribution  # of the row, without what was learnt in the stream
    psi: Floats
    outlook: Outlook
    interval: tuple[NDArray[Any], ...]


# --------------------------------------------------------------------------------------------------
# Live regression: shifted and widened distributions, tracked intervals
#
# With the frozen distribution's median M and the mixture's shift m and factor f
# (`adaptation.rates`),
#
#     prediction   M + m + f (Y - M)
#     interval     [c - q (c - low), c + q (high - c)] of the prediction's, c = M + m
#
# Errors are in units of the target's scale, and one label updates all outputs: they share C. Labels
# further off than `FAR` standard deviations, of the row's or of the training targets, teach
# nothing.
# --------------------------------------------------------------------------------------------------

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
            values = as_numpy("y", np.atleast_1d(unmasked(y)), NUMBERS).astype(np.float64)
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


# --------------------------------------------------------------------------------------------------
# Live classification: corrected logits, tracked prediction sets
#
# The frozen model's logits are the logarithms of its calibrated probabilities. An expert adds its
# shift and divides by its stretch, as a temperature; the prediction is the mixture of their
# probabilities. With p the probabilities of one filter and c = (1 - p_y) / 2, at most the bound 1/2
# of the softmax's curvature (Boehning 1992), a label is one step of the same filter:
#
#     error = (onehot(y) - p) / c,      noise = 1 / c
#
# A label that the model was sure of says little, and an absurd one moves a logit at its own row by
# 2 at most. The set of classes holds every k with -log p_k <= -q log(1 - coverage); it may be
# empty.
# --------------------------------------------------------------------------------------------------

LEAST = 1e-12  # of a probability, before its logarithm
FLATTEST = 1e-3  # of the curvature


@dataclass(frozen=True)
class Classes:
    """Classification into two classes or more."""

    target: ClassTarget
    coverage: float
    rates: Rates

    @classmethod
    def of(cls, fitted: Fitted, coverage: float, rates: Rates) -> Classes:
        """Take the classes of a fitted model."""
        assert isinstance(fitted.target, ClassTarget)
        return cls(fitted.target, coverage, rates)

    @property
    def outputs(self) -> int:
        """How many classes there are."""
        return self.target.outputs

    @property
    def tracked(self) -> int:
        """How many quantiles are tracked: that of the set."""
        return 1

    def truth(self, y: ArrayLike) -> Floats:
        """Return a label as the number of its class, (1,)."""
        label: Any = np.asarray(unmasked(y)).reshape(-1)
        if len(label) != 1 or label[0] != label[0]:  # NaN
            raise InputError(f"y = {y!r:.60}; accepted: one label")
        return self.target.encode(label, 1).astype(np.float64)

    def answer(
        self, filters: Filters, frozen: AnyDistribution, outlook: Outlook, q: Floats
    ) -> tuple[AnyDistribution, tuple[Booleans]]:
        """Return the distribution of a row (1,) and which classes its set holds."""
        logs = self._logs(frozen, outlook)
        probs = np.einsum("ws,wsk->k", filters.weights, np.exp(logs))
        dist = Categorical((probs / probs.sum())[None], self.target.classes)
        return dist, (inside(probs, q[0], self.coverage),)

    def missed(self, interval: tuple[NDArray[Any], ...], truth: Floats) -> Booleans:
        """Tell whether a set missed."""
        return np.array([not interval[0][int(truth[0])]])

    def learnt(self, filters: Filters, pending: Pending, truth: Floats) -> Filters:
        """Take in a label."""
        frozen, y = pending.frozen, int(truth[0])
        logs = self._logs(frozen, pending.outlook)[:, :, y]
        shifts = np.array([pending.psi @ own.weights for own in filters.corrections])
        probs = softmax(_logits(frozen) + shifts, -1)
        curvature = np.maximum((1 - probs[:, y]) / 2, FLATTEST)
        errors = (np.eye(self.outputs)[y] - probs) / curvature[:, None] + shifts
        return filters.observed(pending.psi, errors, 1 / curvature, logs, self.rates)

    def is_absurd(self, pending: Pending, truth: Floats) -> bool:
        """Return False: a class is never far off."""
        return False

    def scores(self, dist: AnyDistribution, truths: Floats) -> Floats:
        """Return how improbable labels (rows, 1) are, 0 to 1."""
        assert isinstance(dist, Categorical)
        found: Floats = 1 - np.take_along_axis(dist.probs, truths.astype(np.int64), 1)[:, 0]
        return found

    def _logs(self, frozen: AnyDistribution, outlook: Outlook) -> Floats:
        """Return log probabilities (ways, stretches, classes) of all experts."""
        moved = _logits(frozen) + outlook.shift
        found: Floats = log_softmax(moved[:, None] / STRETCHES[:, None], -1)
        return found


def inside(probs: Floats, q: float, coverage: float) -> Booleans:
    """Tell which classes the set of one row holds."""
    found: Booleans = np.log(np.maximum(probs, LEAST)) >= q * np.log(1 - coverage)
    return found


def _logits(frozen: AnyDistribution) -> Floats:
    assert isinstance(frozen, Categorical)
    found: Floats = np.log(np.maximum(frozen.probs[0], LEAST))
    return found
