"""A distribution of scipy's kind as one of this package's: what metrics need, no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rdeepsense.arrays import Floats
from rdeepsense.distributions.base import Distribution
from rdeepsense.errors import InputError

NODES = 64  # of the Gauss-Legendre rule on either side of the truth


class Frozen(Distribution):
    """Distributions of `rows` values behind mean(), std(), logpdf, cdf and ppf, as scipy has them.

    The methods must take an array with one value for each row.
    """

    mean: Floats
    std: Floats

    def __init__(self, source: Any, rows: int) -> None:
        mean, std = (np.asarray(getattr(source, name)(), np.float64) for name in ("mean", "std"))
        for name, value in (("mean", mean), ("std", std)):
            if value.shape not in ((), (rows,)):
                raise InputError(f"{name}() has shape {value.shape}; needed: ({rows},), one a row")
        object.__setattr__(self, "_source", source)
        self._freeze(
            mean=np.broadcast_to(mean, (rows,)).copy(), std=np.broadcast_to(std, (rows,)).copy()
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return self.mean.shape

    def log_prob(self, y: npt.ArrayLike) -> Floats:
        """Return the logarithm of the density at y."""
        return np.asarray(self._ask("logpdf", y))

    def cdf(self, y: npt.ArrayLike) -> Floats:
        """Return P(Y <= y)."""
        return np.asarray(self._ask("cdf", y))

    def quantile(self, q: npt.ArrayLike) -> Floats:
        """Return the y with P(Y <= y) = q."""
        return np.asarray(self._ask("ppf", np.broadcast_to(np.asarray(q, np.float64), self.shape)))

    def interval(self, coverage: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Return the central interval (low, high) that holds Y with probability `coverage`."""
        tail = (1 - np.asarray(coverage, np.float64)) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    def crps(self, y: npt.ArrayLike) -> Floats:
        """Return 2 * integral over q of (1[y < F^-1(q)] - q) (F^-1(q) - y), numerically.

        The integrand has its kink at q = F(y), so either side has a rule of its own.
        """
        truth = np.asarray(y, np.float64)
        level = np.clip(self.cdf(truth), 1e-12, 1 - 1e-12)
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        total = np.zeros(self.shape)
        for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            below, above = level * node, level + (1 - level) * node
            total += weight * level * below * (truth - self.quantile(below))
            total += weight * (1 - level) * (1 - above) * (self.quantile(above) - truth)
        return 2 * total

    def _ask(self, name: str, values: npt.ArrayLike) -> Any:
        return getattr(vars(self)["_source"], name)(np.asarray(values, np.float64))
