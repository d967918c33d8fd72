"""The Student-t, for targets with heavy tails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self, cast

import numpy as np
import numpy.typing as npt
from scipy import special

from rdeepsense.arrays import Floats, Index
from rdeepsense.distributions import base as checks
from rdeepsense.distributions.base import Distribution, LocationScale


class StudentT(LocationScale):
    """Student-t distributions loc + scale * T with df > 2 degrees of freedom.

    `scale` is not the standard deviation: std = scale sqrt(df / (df - 2)).
    """

    df: Floats

    def __init__(self, loc: npt.ArrayLike, scale: npt.ArrayLike, df: npt.ArrayLike) -> None:
        freedom = checks.finite("df", df)
        checks.refuse("df", freedom, freedom <= 2, "greater than 2 (or else the std is not finite)")
        centre, width, freedom = checks.broadcast(
            loc=checks.finite("loc", loc), scale=checks.positive("scale", scale), df=freedom
        )
        self._freeze(centre=centre, width=width, df=freedom)

    @property
    def loc(self) -> Floats:
        return self.centre

    @property
    def scale(self) -> Floats:
        return self.width

    @property
    def std(self) -> Floats:
        return self.scale * np.sqrt(self.df / (self.df - 2))

    def _with(self, centre: Floats, width: Floats) -> Self:
        return type(self)(centre, width, self.df)

    def is_like(self, other: Distribution) -> bool:
        return isinstance(other, StudentT) and np.array_equal(self.df, other.df)

    def with_moments(self, mean: Floats, std: Floats) -> Self:
        return self._with(mean, std * np.sqrt((self.df - 2) / self.df))

    def standard_forms(self) -> Iterator[tuple[Index, Self]]:
        for df in np.unique(self.df):
            yield self.df == df, type(self)(0.0, 1.0, df)

    def _log_peak(self) -> Floats:
        """Return log f(0) = log Gamma((df + 1) / 2) - log Gamma(df / 2) - log(pi df) / 2."""
        return _log_gamma_step(self.df / 2) - 0.5 * np.log(np.pi * self.df)

    def _log_density(self, z: Floats) -> Floats:
        return self._log_peak() - (self.df + 1) / 2 * np.log1p(z * z / self.df)

    def _cdf(self, z: Floats) -> Floats:
        return cast(Floats, special.stdtr(self.df, z))

    def _quantile(self, q: Floats) -> Floats:
        """Invert the tail, an incomplete beta function of w = df / (df + z^2).

        It is solved for whichever of 1 - w and w is small, so digits are lost neither at the
        centre nor far out; scipy's stdtrit keeps only eight at df = 4 and fails in far tails.
        """
        df = self.df
        if df.size > 1 and np.ptp(df) == 0 and np.ptp(q) == 0:
            # All are the same number, which takes longer to find than all the rest of a row.
            df, q = df.ravel()[:1], q.ravel()[:1]
        tails = 2 * np.minimum(q, 1 - q)
        near = special.betainccinv(0.5, df / 2, tails)
        far = special.betaincinv(df / 2, 0.5, tails)
        with np.errstate(divide="ignore"):
            ratio = np.where(near < 0.5, np.sqrt(near / (1 - near)), np.sqrt(1 - far) / far**0.5)
        return cast(Floats, np.sign(q - 0.5) * np.sqrt(df) * ratio)

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return rng.standard_t(self.df, shape)

    def _entropy(self) -> Floats:
        """Return (df + 1) / 2 (psi((df + 1) / 2) - psi(df / 2)) - log f(0)."""
        return (self.df + 1) / 2 * _digamma_step(self.df / 2) - self._log_peak()

    def _distance(self, z: Floats) -> Floats:
        """Return z (2 F(z) - 1) + 2 f(z) (df + z^2) / (df - 1) (Jordan, Krueger and Lerch 2019)."""
        log_spread = self._log_peak() - (self.df - 1) / 2 * np.log1p(z * z / self.df)
        straight = np.abs(z) * (1 - 2 * self._cdf(-np.abs(z)))
        return straight + 2 * self.df / (self.df - 1) * np.exp(log_spread)

    def _self_distance(self) -> Floats:
        """Return 4 sqrt(df) / (df - 1) B(1/2, df - 1/2) / B(1/2, df / 2)^2."""
        log_ratio = 2 * _log_gamma_step(self.df / 2) - _log_gamma_step(self.df - 0.5)
        return 4 * np.sqrt(self.df / np.pi) / (self.df - 1) * np.exp(log_ratio)


def _log_gamma_step(x: Floats) -> Floats:
    """Return log Gamma(x + 1/2) - log Gamma(x), by a series for large x, where they cancel."""
    big = np.maximum(x, 30.0)
    series = -1 / (8 * big) + 1 / (192 * big**3) - 1 / (640 * big**5) + 17 / (14336 * big**7)
    exact = special.gammaln(x + 0.5) - special.gammaln(x)
    return np.where(x < 30, exact, 0.5 * np.log(big) + series)


def _digamma_step(x: Floats) -> Floats:
    """Return psi(x + 1/2) - psi(x), the derivative of the above."""
    big = np.maximum(x, 30.0)
    series = 1 / (2 * big) + 1 / (8 * big**2) - 1 / (64 * big**4) + 1 / (128 * big**6)
    return np.where(x < 30, special.digamma(x + 0.5) - special.digamma(x), series)
