"""A live model of classes: the filters correct logits, and a set is tracked instead of an interval.

The frozen model's logits are the logarithms of its calibrated probabilities. An expert adds its
shift and divides by its stretch, as a temperature; the prediction is the mixture of their
probabilities. With p the probabilities of one filter and c = (1 - p_y) / 2, at most the bound 1/2
of the softmax's curvature (Boehning 1992), a label is one step of the same filter:

    error = (onehot(y) - p) / c,      noise = 1 / c

A label that the model was sure of says little, and an absurd one moves a logit at its own row by 2
at most. The set of classes holds every k with -log p_k <= -q log(1 - coverage); it may be empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax

from rdeepsense.adaptation.rates import STRETCHES, Filters, Outlook, Rates
from rdeepsense.arrays import Booleans, Floats
from rdeepsense.data.kinds import unmasked
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.fitting.target import ClassTarget
from rdeepsense.live.prediction import Pending

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
