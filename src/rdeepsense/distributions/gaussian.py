"""The Gaussian, which the paper predicts."""

from __future__ import annotations

from typing import Self, cast

import numpy as np
import numpy.typing as npt
from scipy import special

from rdeepsense.arrays import Floats
from rdeepsense.distributions import base as checks
from rdeepsense.distributions.base import LocationScale

_LOG_2PI = float(np.log(2 * np.pi))


class Gaussian(LocationScale):
    """Normal distributions with these means and standard deviations."""

    def __init__(self, mean: npt.ArrayLike, std: npt.ArrayLike) -> None:
        centre, width = checks.broadcast(
            mean=checks.finite("mean", mean), std=checks.positive("std", std)
        )
        self._freeze(centre=centre, width=width)

    def _with(self, centre: Floats, width: Floats) -> Self:
        return type(self)(centre, width)

    def _log_density(self, z: Floats) -> Floats:
        return -0.5 * z * z - 0.5 * _LOG_2PI

    def _cdf(self, z: Floats) -> Floats:
        return cast(Floats, special.ndtr(z))

    def _quantile(self, q: Floats) -> Floats:
        return cast(Floats, special.ndtri(q))

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return rng.standard_normal(shape)

    def _entropy(self) -> float:
        """Return log(2 pi e) / 2."""
        return 0.5 * (_LOG_2PI + 1)

    def _distance(self, z: Floats) -> Floats:
        """Return z (2 Phi(z) - 1) + 2 phi(z)."""
        return cast(Floats, z * special.erf(z / 2**0.5) + 2 * np.exp(self._log_density(z)))

    def _self_distance(self) -> float:
        """Return 2 / sqrt(pi): Z - Z' is a Gaussian of variance 2."""
        return 2 / float(np.sqrt(np.pi))
