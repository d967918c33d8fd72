"""The last layer as a Kalman filter: what one label changes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rdeepsense.arrays import Floats

FARTHEST = 3.0


@dataclass(frozen=True)
class Correction:
    """The weights of the correction, (features, outputs), and their covariance."""

    weights: Floats
    covariance: Floats

    @classmethod
    def none(cls, prior: Floats, outputs: int) -> Correction:
        """Return the state before any label, for a prior covariance C0."""
        return cls(np.zeros((len(prior), outputs)), prior)

    def forgotten(self, prior: Floats, keep: float) -> Correction:
        """Go a step back towards the prior."""
        if keep == 1:
            return self
        kept = keep * self.covariance + (1 - keep) * prior
        return Correction(np.sqrt(keep) * self.weights, kept)

    def observed(self, phi: Floats, error: Floats, noise: float) -> Correction:
        """Take in one label: its row's features, errors (outputs,) before correction, and r."""
        along = self.covariance @ phi
        spread = float(phi @ along) + noise
        left = error - phi @ self.weights
        bound = FARTHEST * np.sqrt(spread)
        weights = self.weights + np.outer(along / spread, np.clip(left, -bound, bound))
        covariance = self.covariance - np.outer(along, along) / spread
        return replace(self, weights=weights, covariance=(covariance + covariance.T) / 2)

    def shift(self, phi: Floats) -> Floats:
        """Return what is added to the median of rows, (rows, outputs)."""
        found: Floats = phi @ self.weights
        return found

    def variance(self, phi: Floats) -> Floats:
        """Return phi^T C phi of rows, (rows,)."""
        found: Floats = np.einsum("rf,fg,rg->r", phi, self.covariance, phi)
        return found
