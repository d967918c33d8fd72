"""A model's numbers, corrected for one group by a few of its labels, in closed form.

Along each direction of the prior the weights are those of `last_layer.Correction`. However absurd
the labels are, k of them shift a row by at most

    |b_j^T shift(x)| <= FARTHEST sqrt(k phi^T (C0_j - C_j) phi)

along a direction: each label shifts by at most FARTHEST times the root of what it takes off
phi^T C phi, and k roots of numbers are at most sqrt(k) times the root of their sum. What was open
at first, phi^T C0_j phi, is chosen from groups that were left out. The variance never grows, and
keeps 5 % at least.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rdeepsense.adaptation.last_layer import Correction
from rdeepsense.adaptation.prior import Prior
from rdeepsense.arrays import Floats

MOST_SHARE = 0.95  # of a variance, which labels may take away


@dataclass(frozen=True)
class AdaptedNumbers:
    """Weights (features, directions), and covariances (directions, features, features).

    `start` holds the covariances before the first label.
    """

    prior: Prior
    weights: Floats
    covariance: Floats
    start: Floats

    @classmethod
    def none(cls, prior: Prior, information: Floats) -> AdaptedNumbers:
        """Return the state before any label, for the information of one training row."""
        start = prior.covariances(information)
        return cls(prior, np.zeros((start.shape[1], len(start))), start, start)

    def observed(self, phi: Floats, error: Floats, variance: Floats) -> AdaptedNumbers:
        """Take in labels: rows (rows, features), and their errors and variances (rows, outputs)."""
        along, noise = self.prior.along(error, variance)
        weights, covariance = self.weights.copy(), self.covariance.copy()
        for j in range(len(covariance)):
            state = Correction(weights[:, j : j + 1], covariance[j])
            for row, value, own in zip(phi, along[:, j], noise[:, j], strict=True):
                state = state.observed(row, np.array([value]), float(own))
            weights[:, j], covariance[j] = state.weights[:, 0], state.covariance
        return replace(self, weights=weights, covariance=covariance)

    def shift(self, phi: Floats) -> Floats:
        """Return what is added to the median of rows, (rows, outputs), in units of the scale."""
        found: Floats = phi @ self.weights @ self.prior.directions.T
        return found

    def learnt(self, phi: Floats) -> Floats:
        """Return 1 - phi^T C phi / phi^T C0 phi of rows, (rows, directions)."""
        before, after = (
            np.stack([((phi @ one) * phi).sum(1) for one in matrices], 1)
            for matrices in (self.start, self.covariance)
        )
        found: Floats = 1 - np.clip(after / np.maximum(before, np.finfo(float).tiny), 0.0, 1.0)
        return found

    def kept(self, phi: Floats) -> Floats:
        """Return what the variance of rows is multiplied by, (rows, outputs)."""
        taken = self.learnt(phi) @ self.prior.shares.T
        found: Floats = 1 - np.minimum(taken, MOST_SHARE)
        return found
