"""How likely groups that were left out are, under a prior of how groups differ.

Along one direction of the outputs, the errors c of a group's rows are together

    c ~ N(0, Phi A Phi^T / rows + between 1 1^T + within diag(v)),     A = information^-1

which is also the product of the densities of each row after those before it: the prequential
likelihood, at the cost of one Cholesky factor a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from rdeepsense.adaptation.streams import GroupStream
from rdeepsense.arrays import Floats, Integers

ROWS = (3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 1e6)  # the last one is next to no weights
MOST_GROUPS, MOST_ROWS = 200, 32  # of one group, spread over its stream
LEAST, MOST = 1e-6, 1e4  # of between and within, times their means
NEGLIGIBLE = 1e-5  # of the predicted variance: no offset at all


class Fit(NamedTuple):
    """The best variances for some `rows`, and their log likelihood."""

    between: float
    within: float
    likelihood: float


@dataclass(frozen=True)
class Offsets:
    """Errors of groups along one direction, filled up to equally many rows.

    `kernel` (groups, n, n) is Phi A Phi^T, `error` and `variance` are (groups, n), and `there`
    tells rows from filling.
    """

    kernel: Floats
    error: Floats
    variance: Floats
    there: Floats

    @classmethod
    def of(cls, streams: Sequence[GroupStream], along: Floats) -> Offsets:
        """Take rows spread over each stream."""
        longest = min(MOST_ROWS, max(len(stream.error) for stream in streams))
        shape = (len(streams), longest)
        kernel, there = np.zeros((*shape, longest)), np.zeros(shape)
        error, variance = np.zeros(shape), np.ones(shape)
        for k, stream in enumerate(streams):
            some = spread(len(stream.error), longest)
            phi, n = stream.phi[some], len(some)
            information = stream.information / stream.rows
            kernel[k, :n, :n] = phi @ np.linalg.solve(information, phi.T)
            error[k, :n] = stream.error[some] @ along
            variance[k, :n] = stream.variance[some] @ along**2
            there[k, :n] = 1
        return cls(kernel, error, variance, there)

    def likelihood(self, rows: float, between: float, within: float) -> float:
        """Return the log likelihood of all groups, without its constant."""
        both = self.there[:, :, None] * self.there[:, None, :]
        matrix = self.kernel / rows + between * both
        own = np.where(self.there > 0, within * self.variance, 1.0)
        size = matrix.shape[1]
        matrix[:, np.arange(size), np.arange(size)] += own
        lower = np.linalg.cholesky(matrix)
        left = np.linalg.solve(lower, self.error[:, :, None])[:, :, 0]
        logs = np.log(np.diagonal(lower, axis1=1, axis2=2))
        return float(-0.5 * np.sum(left**2) - logs.sum())

    def fitted(self, rows: float) -> Fit:
        """Find the variances of greatest likelihood, from their analysis of variance on."""
        count = np.maximum(self.there.sum(1), 1)
        mean = self.error.sum(1) / count
        left = (self.error - mean[:, None]) * self.there
        unit = float((self.variance * self.there).sum() / self.there.sum())
        within = float((left**2).sum() / max((count - 1).sum(), 1)) / unit
        between = float(np.mean(mean**2) - within * unit * np.mean(1 / count)) / unit
        low, high = np.log(LEAST), np.log(MOST)
        start = np.log(np.clip([between, within], 10 * LEAST, MOST / 10))

        def loss(logs: Floats) -> float:
            ratio, noise = np.exp(logs)
            found = self.likelihood(rows, float(ratio) * unit, float(noise))
            return -found / float(self.there.sum())

        best = minimize(loss, start, method="L-BFGS-B", bounds=[(low, high)] * 2)
        ratio, noise = (float(value) for value in np.exp(best.x))
        likelihood = -float(best.fun) * self.there.sum()
        return Fit(0.0 if ratio < NEGLIGIBLE else ratio * unit, noise, likelihood)


def spread(count: int, most: int) -> Integers:
    """Return numbers of rows, in order and evenly over all of them."""
    if count <= most:
        return np.arange(count)
    return np.linspace(0, count - 1, most).round().astype(int)
