"""Mixtures: what sampling with dropout or an ensemble predicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from scipy import special

from rdeepsense.arrays import Floats, Index, Integers
from rdeepsense.distributions import base as checks
from rdeepsense.distributions.base import Distribution, LocationScale, Seed, all_equal, concatenate
from rdeepsense.distributions.categorical import Categorical
from rdeepsense.distributions.gaussian import Gaussian
from rdeepsense.errors import InputError


class Mixture(Distribution):
    """Equal-weight mixture of location-scale distributions, such as Gaussians, or of Categoricals.

    Everything is that of the exact mixture; `moment_matched` gives the simpler approximation
    that RDeepSense-MC and SSP report. Draws are independent from entry to entry.
    """

    components: tuple[LocationScale | Categorical, ...]

    def __init__(self, components: Sequence[LocationScale | Categorical]) -> None:
        parts = tuple(components)
        kinds = " and ".join(sorted({type(part).__name__ for part in parts}))
        shapes = sorted({part.mean.shape for part in parts if isinstance(part, Distribution)})
        if not all(isinstance(part, LocationScale) for part in parts) and not all(
            isinstance(part, Categorical) for part in parts
        ):
            raise InputError(
                f"components must be all Gaussian or StudentT, or all Categorical; got {kinds}"
            )
        if len(shapes) != 1:
            raise InputError(
                f"components must be one or more distributions of one shape; got shapes {shapes}"
            )
        if not all_equal([vars(part).get("classes") for part in parts]):
            raise InputError("components must have the same classes")
        object.__setattr__(self, "components", parts)

    def __setstate__(self, state: dict[str, Any]) -> None:
        object.__setattr__(self, "components", state["components"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mixture) and self.components == other.components

    def __repr__(self) -> str:
        kinds = " and ".join(sorted({type(part).__name__ for part in self.components}))
        return f"Mixture({len(self.components)} {kinds}, shape={self.shape})"

    def __getitem__(self, index: Index) -> Self:
        return type(self)([part[index] for part in self.components])

    def followed_by(self, others: Sequence[Self]) -> Self:
        columns = zip(self.components, *(other.components for other in others), strict=True)
        return type(self)([concatenate(parts) for parts in columns])

    @property
    def is_categorical(self) -> bool:
        return self.components[0].is_categorical

    @property
    def shape(self) -> tuple[int, ...]:
        return self.components[0].shape

    @property
    def mean(self) -> Floats:
        return cast(Floats, np.mean([part.mean for part in self.components], axis=0))

    @property
    def var(self) -> Floats:
        """Law of total variance: mean variance + population variance of the means.

        The means are centred first; E[Y^2] - E[Y]^2 would cancel.
        """
        mean = self.mean
        parts = [part.var + (part.mean - mean) ** 2 for part in self.components]
        return cast(Floats, np.mean(parts, axis=0))

    @property
    def std(self) -> Floats:
        return np.sqrt(self.var)

    @property
    def mode(self) -> Floats | Integers:
        """Uphill from the most likely of the components' modes, step by doubled or halved step.

        A local maximum at least as likely as every component's mode.
        """
        if self.is_categorical:
            return self._pooled().mode
        x = self._most_likely(np.array([part.mode for part in self.components]))
        step = np.min([part.std for part in self.components], axis=0)
        for _ in range(100):
            best = self._most_likely(np.array([x, x - step, x + step]))
            x, step = best, np.where(best == x, step / 2, step * 2)
        return x

    def _most_likely(self, candidates: Floats) -> Floats:
        best = np.argmax(self.log_prob(candidates), axis=0)
        return cast(Floats, np.take_along_axis(candidates, best[None], axis=0)[0])

    def _pooled(self) -> Categorical:
        """Return the one Categorical that a mixture of Categoricals is, exactly."""
        return Categorical(self.mean, cast(Categorical, self.components[0]).classes)

    def _continuous(self, what: str) -> tuple[LocationScale, ...]:
        if self.is_categorical:
            raise InputError(f"{what} is defined for continuous distributions; got {self!r}")
        return cast(tuple[LocationScale, ...], self.components)

    def log_prob(self, y: npt.ArrayLike) -> Floats:
        """Return log((1/K) sum_k p_k(y)), without leaving log space."""
        logs = np.array([part.log_prob(y) for part in self.components])
        return cast(Floats, special.logsumexp(logs, axis=0) - np.log(len(self.components)))

    def cdf(self, y: npt.ArrayLike) -> Floats:
        """Return (1/K) sum_k F_k(y)."""
        return cast(Floats, np.mean([part.cdf(y) for part in self.components], axis=0))

    def quantile(self, q: npt.ArrayLike) -> Floats | Integers:
        """Find quantiles by Newton's steps, between the components' least and greatest ones.

        Where a step would leave what is known to hold the quantile, that is halved instead.
        """
        if self.is_categorical:
            return self._pooled().quantile(q)
        fraction = checks.fractions("q", q, self.shape)
        ends = np.array([part.quantile(fraction) for part in self.components])
        low, high = ends.min(axis=0), ends.max(axis=0)
        x = low / 2 + high / 2
        for _ in range(100):
            missing = fraction - self.cdf(x)
            low, high = np.where(missing > 0, x, low), np.where(missing > 0, high, x)
            with np.errstate(all="ignore"):  # a density of 0 between far components
                step = x + missing / np.exp(self.log_prob(x))
            inside = (step > low) & (step < high)
            before, x = x, np.where(inside, step, low / 2 + high / 2)
            still = (x != low) & (x != high)
            if np.all(abs(x[still] - before[still]) <= 4 * np.spacing(abs(x[still]))):
                break
        return cast(Floats, x)

    def interval(self, coverage: npt.ArrayLike) -> tuple[Floats | Integers, Floats | Integers]:
        """Return the central interval, with probability (1 - coverage) / 2 on each side of it."""
        if self.is_categorical:
            return self._pooled().interval(coverage)
        tail = (1 - checks.fractions("coverage", coverage, self.shape)) / 2
        # The upper end is the mirror image's lower end: 1 - tail would round small tails away.
        return self.quantile(tail), -self.affine(0.0, -1.0).quantile(tail)

    def entropy(self) -> Floats:
        """Return E[-log p(Y)] in nats: exact for classes, by quadrature otherwise."""
        if self.is_categorical:
            return self._pooled().entropy()
        return self.expectation(lambda mixture, y: -mixture.log_prob(y))

    def crps(self, y: npt.ArrayLike) -> Floats:
        """Return E|Y - y| - E|Y - Y'| / 2: in closed form for Gaussians, else by quadrature."""
        parts = self._continuous("crps")
        values = checks.numbers("y", y, self.shape)
        if all(isinstance(part, Gaussian) for part in parts):
            pairs = (
                Gaussian(a.mean - b.mean, np.hypot(a.std, b.std)) for a in parts for b in parts
            )
            self_distance = (
                sum(pair.mean_distance(np.zeros(())) for pair in pairs) / len(parts) ** 2
            )
        else:
            standard = self.affine(-self.mean / self.std, 1 / self.std)
            self_distance = self.std * standard.expectation(Mixture.mean_distance)
        return self.mean_distance(values) - self_distance / 2

    def mean_distance(self, y: Floats) -> Floats:
        """Return E|Y - y|."""
        distances = [part.mean_distance(y) for part in self._continuous("a distance")]
        return cast(Floats, np.mean(distances, axis=0))

    def expectation(self, of: Callable[[Mixture, Floats], Floats]) -> Floats:
        """Return E[of(mixture, Y)], halving the step for the entries that it still changes.

        Only components of very different widths need steps below the first.
        """
        step = 0.5
        value = np.array(self.trapezoids(of, step))
        moving = np.ones(self.shape, dtype=bool)
        while moving.any() and step > 2**-8:
            step /= 2
            finer = self[moving].trapezoids(of, step)
            change = abs(finer - value[moving])
            value[moving] = finer
            moving[moving] = change > 1e-10
        return value

    def trapezoids(self, of: Callable[[Mixture, Floats], Floats], step: float) -> Floats:
        """Integrate `of` over u = F_k(y), averaged over k, with u = 1 / (1 + exp(-t)).

        The integrand is smooth in t and dies out like exp(-|t|), or exp(-|t| / 2) where `of`
        grows with y and df is near 2; trapezoids then converge exponentially in 1 / step.
        """
        parts = self._continuous("an expectation")
        reach = 36 if all(isinstance(part, Gaussian) for part in parts) else 72
        nodes = np.arange(0, reach + step, step)
        blocks = 1 + nodes.size * int(np.prod(self.shape)) // 100_000  # bounds the memory in use
        total = np.zeros(self.shape)
        for t in np.array_split(nodes, blocks):
            u = special.expit(-t).reshape(-1, *[1] * len(self.shape))
            weight = step * u * (1 - u) * np.where(u == 0.5, 0.5, 1.0)  # t = 0 is met twice below
            for part in parts:
                low = part.quantile(u)
                total += np.sum(weight * (of(self, low) + of(self, 2 * part.mode - low)), axis=0)
        return total / len(parts)

    def sample(self, n: int, rng: Seed) -> Floats | Integers:
        """Draw n independent values of every entry, of shape (n, *shape)."""
        generator = checks.generator(rng)
        draws = np.array([part.sample(n, generator) for part in self.components])
        chosen = generator.integers(len(self.components), size=(1, *draws.shape[1:]))
        return cast(Floats | Integers, np.take_along_axis(draws, chosen, axis=0)[0])

    def affine(self, shift: npt.ArrayLike, scale: npt.ArrayLike) -> Mixture:
        """Return the distribution of shift + scale * Y, for a scale that is not 0."""
        return Mixture([part.affine(shift, scale) for part in self._continuous("affine")])

    def moment_matched(self) -> LocationScale | Categorical:
        """Return one distribution with the mixture's mean and variance.

        That of the components where they differ in centre and width alone (StudentT of the same
        df, say), exact for Categoricals, a Gaussian otherwise.
        """
        if self.is_categorical:
            return self._pooled()
        first, *others = self._continuous("moment_matched")
        if all(first.is_like(other) for other in others):
            return first.with_moments(self.mean, self.std)
        return Gaussian(self.mean, self.std)
