"""A distribution whose probabilities were corrected by a monotone map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from rdeepsense.arrays import Floats, Index
from rdeepsense.distributions import base as checks
from rdeepsense.distributions.base import Distribution, LocationScale, Seed, concatenate
from rdeepsense.distributions.mixture import Mixture
from rdeepsense.errors import InputError

LEVELS = 1_000  # equally likely values that stand for a distribution in its moments
FEW_LEVELS = 100  # the same for mixtures, whose quantiles are searched for


class Recalibrated(Distribution):
    """P(Y <= y) = R(F(y)), with F that of `base` and R through the knots (stated, actual).

    Both run from 0 to 1 and rise strictly; between knots R is a straight line, so the density is
    that of the base times the slope of R.
    """

    base: LocationScale | Mixture
    stated: Floats
    actual: Floats

    def __init__(
        self,
        base: LocationScale | Mixture,
        stated: npt.ArrayLike,
        actual: npt.ArrayLike,
    ) -> None:
        if base.is_categorical:
            raise InputError("only continuous distributions can be recalibrated")
        knots = checks.finite("stated", stated), checks.finite("actual", actual)
        for name, values in zip(("stated", "actual"), knots, strict=True):
            rises = values.ndim == 1 and len(values) >= 2 and bool((np.diff(values) > 0).all())
            if not rises or values[0] != 0 or values[-1] != 1:
                raise InputError(f"{name} must rise strictly from 0 to 1; got {values}")
        object.__setattr__(self, "base", base)
        self._freeze(stated=knots[0], actual=knots[1])

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Recalibrated)
            and self.base == other.base
            and np.array_equal(self.stated, other.stated)
            and np.array_equal(self.actual, other.actual)
        )

    def __getitem__(self, index: Index) -> Self:
        return type(self)(self.base[index], self.stated, self.actual)

    def followed_by(self, others: Sequence[Self]) -> Self:
        base = concatenate([self.base, *(other.base for other in others)])
        return type(self)(base, self.stated, self.actual)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.base.shape

    @property
    def mean(self) -> Floats:
        return self._moments()[0]

    @property
    def std(self) -> Floats:
        return self._moments()[1]

    @property
    def var(self) -> Floats:
        return self.std**2

    @property
    def mode(self) -> Floats:
        return cast(Floats, self.base.mode)

    def _moments(self) -> tuple[Floats, Floats]:
        """Return mean and std of equally likely quantiles, found on the base's own scale."""
        if isinstance(self.base, Mixture):
            values = self.values(FEW_LEVELS)
            return values.mean(0), values.std(0)
        mean, std = np.empty(self.shape), np.empty(self.shape)
        for where, values in self._standard_values():
            mean[where], std[where] = values.mean(), values.std()
        return self.base.centre + self.base.width * mean, self.base.width * std

    def _standard_values(self) -> Iterator[tuple[Index, Floats]]:
        """Yield entries that differ in centre and width alone, and their standardised values."""
        assert isinstance(self.base, LocationScale)
        for where, standard in self.base.standard_forms():
            yield where, Recalibrated(standard, self.stated, self.actual).values(LEVELS)

    def values(self, count: int) -> Floats:
        """Return `count` equally likely values of every entry."""
        levels = (np.arange(count) + 0.5) / count
        return self.quantile(levels.reshape(-1, *[1] * len(self.shape)))

    def log_prob(self, y: npt.ArrayLike) -> Floats:
        """Return log f(y) + log R'(F(y))."""
        slopes = np.diff(self.actual) / np.diff(self.stated)
        at = np.searchsorted(self.stated, self.base.cdf(y), side="right") - 1
        return self.base.log_prob(y) + np.log(slopes[np.clip(at, 0, len(slopes) - 1)])

    def cdf(self, y: npt.ArrayLike) -> Floats:
        """Return R(F(y))."""
        return np.interp(self.base.cdf(y), self.stated, self.actual)

    def quantile(self, q: npt.ArrayLike) -> Floats:
        """Return the base's quantile at the level that R maps to q."""
        wanted = checks.fractions("q", q, self.shape)
        return cast(Floats, self.base.quantile(np.interp(wanted, self.actual, self.stated)))

    def interval(self, coverage: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Return the central interval, with probability (1 - coverage) / 2 on each side of it."""
        tail = (1 - checks.fractions("coverage", coverage, self.shape)) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    def entropy(self) -> Floats:
        """Return E[-log p(Y)] over equally likely values."""
        return cast(Floats, -self.log_prob(self.values(LEVELS)).mean(0))

    def crps(self, y: npt.ArrayLike) -> Floats:
        """Return 2 E over levels t of (1[y < q_t] - t)(q_t - y), the sum of all quantile losses."""
        truth = checks.numbers("y", y, self.shape)
        if isinstance(self.base, Mixture):
            values = self.values(FEW_LEVELS)
            level = (np.arange(FEW_LEVELS) + 0.5).reshape(-1, *[1] * len(self.shape)) / FEW_LEVELS
            return cast(Floats, 2 * (((truth < values) - level) * (values - truth)).mean(0))
        z = np.broadcast_to((truth - self.base.centre) / self.base.width, self.shape)
        loss = np.empty(self.shape)
        for where, values in self._standard_values():
            loss[where] = _quantile_losses(values, z[where])
        return self.base.width * loss

    def sample(self, n: int, rng: Seed) -> Floats:
        """Draw n independent values of every entry, of shape (n, *shape)."""
        return self.quantile(checks.generator(rng).random((checks.count(n), *self.shape)))

    def affine(self, shift: npt.ArrayLike, scale: npt.ArrayLike) -> Recalibrated:
        """Return the distribution of shift + scale * Y, for a scale above 0."""
        return Recalibrated(
            self.base.affine(shift, checks.positive("scale", scale)), self.stated, self.actual
        )


def _quantile_losses(values: Floats, z: Floats) -> Floats:
    """Return the mean over levels t of 2 (1[z < q_t] - t)(q_t - z), for rising values q_t.

    Sums of what lies below z and above it, so that each z costs a search and not all levels.
    """
    level = (np.arange(len(values)) + 0.5) / len(values)

    def below(terms: Floats) -> Floats:
        return np.concatenate([[0.0], np.cumsum(terms)])

    t, tq, q = below(level), below(level * values), below(values)
    at = np.searchsorted(values, z, side="right")
    under = z * t[at] - tq[at]
    over = (q[-1] - q[at]) - (tq[-1] - tq[at]) - z * ((len(values) - at) - (t[-1] - t[at]))
    return cast(Floats, 2 * (under + over) / len(values))
