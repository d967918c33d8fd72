"""Continuous distributions that are a standard one, shifted and stretched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
import numpy.typing as npt

from rdeepsense.arrays import Floats, Index
from rdeepsense.distributions import checks
from rdeepsense.distributions.base import Distribution
from rdeepsense.distributions.checks import Seed


class LocationScale(Distribution):
    """Y = centre + width * Z, for a standard Z that is symmetric about 0 and has one mode.

    A subclass freezes `centre` and `width` and fills in the eight hooks below. One whose Z has a
    shape of its own, or a standard deviation other than 1, overrides the three after them too.
    """

    centre: Floats
    width: Floats

    def _with(self, centre: Floats, width: Floats) -> Self:
        raise NotImplementedError

    def _log_density(self, z: Floats) -> Floats:
        raise NotImplementedError

    def _cdf(self, z: Floats) -> Floats:
        raise NotImplementedError

    def _quantile(self, q: Floats) -> Floats:
        raise NotImplementedError

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        raise NotImplementedError

    def _entropy(self) -> Floats | float:
        raise NotImplementedError

    def _distance(self, z: Floats) -> Floats:
        """Return E|Z - z|."""
        raise NotImplementedError

    def _self_distance(self) -> Floats | float:
        """Return E|Z - Z'| of two independent draws."""
        raise NotImplementedError

    def is_like(self, other: Distribution) -> bool:
        """Tell whether Z is the same, entry by entry."""
        return type(self) is type(other)

    def with_moments(self, mean: Floats, std: Floats) -> Self:
        """Return the distribution of the same Z with this mean and standard deviation."""
        return self._with(mean, std)

    def standard_forms(self) -> Iterator[tuple[Index, Self]]:
        """Yield entries with one and the same Z, and its distribution (centre 0, width 1)."""
        yield ..., self._with(np.zeros(()), np.ones(()))

    def __repr__(self) -> str:
        if not self.centre.size:
            return super().__repr__()
        mean, std = float(np.mean(self.mean)), float(np.mean(self.std))
        return f"{type(self).__name__}(shape={self.shape}, mean={mean:.4g}, std={std:.4g})"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.centre.shape

    @property
    def mean(self) -> Floats:
        return self.centre

    @property
    def std(self) -> Floats:
        return self.width

    @property
    def var(self) -> Floats:
        return self.std**2

    @property
    def mode(self) -> Floats:
        return self.centre

    def _standardised(self, y: npt.ArrayLike) -> Floats:
        return (checks.numbers("y", y, self.shape) - self.centre) / self.width

    def log_prob(self, y: npt.ArrayLike) -> Floats:
        """Return the logarithm of the density at y."""
        return self._log_density(self._standardised(y)) - np.log(self.width)

    def cdf(self, y: npt.ArrayLike) -> Floats:
        """Return P(Y <= y)."""
        return self._cdf(self._standardised(y))

    def quantile(self, q: npt.ArrayLike) -> Floats:
        """Return the y with P(Y <= y) = q; -inf and inf for q = 0 and 1."""
        return self.centre + self.width * self._quantile(checks.fractions("q", q, self.shape))

    def interval(self, coverage: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Return the central interval (low, high) that holds Y with probability `coverage`."""
        low = self.quantile((1 - checks.fractions("coverage", coverage, self.shape)) / 2)
        return low, 2 * self.centre - low

    def entropy(self) -> Floats:
        """Return E[-log p(Y)] in nats: that of Z plus log width."""
        return self._entropy() + np.log(self.width)

    def crps(self, y: npt.ArrayLike) -> Floats:
        """Return the continuous ranked probability score E|Y - y| - E|Y - Y'| / 2."""
        return self.width * (self._distance(self._standardised(y)) - self._self_distance() / 2)

    def mean_distance(self, y: Floats) -> Floats:
        """Return E|Y - y|."""
        return self.width * self._distance((y - self.centre) / self.width)

    def sample(self, n: int, rng: Seed) -> Floats:
        """Draw n independent values of every entry, of shape (n, *shape)."""
        shape = (checks.count(n), *self.shape)
        return self.centre + self.width * self._draw(shape, checks.generator(rng))

    def affine(self, shift: npt.ArrayLike, scale: npt.ArrayLike) -> Self:
        """Return the distribution of shift + scale * Y, for a scale that is not 0."""
        factor = checks.finite("scale", scale)
        checks.refuse("scale", factor, factor == 0, "different from 0")
        return self._with(
            checks.finite("shift", shift) + factor * self.centre, abs(factor) * self.width
        )

    def widened(self, factor: npt.ArrayLike) -> Self:
        """Return the distribution of the same centre with the standard deviation times `factor`."""
        return self._with(self.centre, checks.positive("factor", factor) * self.width)
