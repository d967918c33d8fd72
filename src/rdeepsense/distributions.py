"""Predictive distributions: what a network believes about a value it has not seen.

Every entry of an array of any shape has its own distribution, independent of the others (several
outputs are several independent Gaussians, as in the paper). Objects never change once made: their
arrays are float64 and read-only, and every method returns something new.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Self, cast

import numpy as np
import numpy.typing as npt
from scipy import special  # type: ignore[import-untyped,unused-ignore]

from rdeepsense.errors import InputError

Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Seed = np.random.Generator | int

_LOG_2PI = float(np.log(2 * np.pi))


class Distribution:
    """What all distributions share: immutability, indexing, comparison by value."""

    __hash__ = None  # type: ignore[assignment]

    def _freeze(self, **parameters: Array) -> None:
        for name, value in parameters.items():
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed: make a new one")

    def __setstate__(self, state: dict[str, Array]) -> None:
        self._freeze(**state)

    @property
    def is_categorical(self) -> bool:
        """Whether values are class indices rather than numbers."""
        return False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values; for classes, the class axis is not part of it."""
        raise NotImplementedError

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"a {type(self).__name__} of one value has no length")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        return all(np.array_equal(mine, vars(other)[name]) for name, mine in vars(self).items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape})"

    def __getitem__(self, index: Any) -> Self:
        """The distributions of some entries; `index` is whatever numpy takes for `shape`."""
        entries = np.arange(np.prod(self.shape, dtype=int)).reshape(self.shape)[index]
        # Not the constructor: normalising probabilities twice could change their last digit.
        new = object.__new__(type(self))
        for name, value in vars(self).items():
            class_axis = value.shape[len(self.shape) :]
            new._freeze(**{name: np.array(value.reshape(-1, *class_axis)[entries])})
        return new


class _LocationScale(Distribution):
    """Y = centre + width * Z, for a standard Z that is symmetric about 0 and has one mode."""

    _centre: Array
    _width: Array

    def _with(self, centre: Array, width: Array) -> Self:
        raise NotImplementedError

    def _log_density(self, z: Array) -> Array:
        raise NotImplementedError

    def _cdf(self, z: Array) -> Array:
        raise NotImplementedError

    def _quantile(self, q: Array) -> Array:
        raise NotImplementedError

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        raise NotImplementedError

    def _entropy(self) -> Array | float:
        raise NotImplementedError

    def _distance(self, z: Array) -> Array:
        """E|Z - z|."""
        raise NotImplementedError

    def _self_distance(self) -> Array | float:
        """E|Z - Z'| of two independent draws."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        return self._centre.shape

    @property
    def mean(self) -> Array:
        return self._centre

    @property
    def std(self) -> Array:
        return self._width

    @property
    def var(self) -> Array:
        return self.std**2

    @property
    def mode(self) -> Array:
        return self._centre

    def _standardised(self, y: npt.ArrayLike) -> Array:
        return (_values("y", y, self.shape) - self._centre) / self._width

    def log_prob(self, y: npt.ArrayLike) -> Array:
        """Logarithm of the density at y."""
        return self._log_density(self._standardised(y)) - np.log(self._width)

    def cdf(self, y: npt.ArrayLike) -> Array:
        """P(Y <= y)."""
        return self._cdf(self._standardised(y))

    def quantile(self, q: npt.ArrayLike) -> Array:
        """The y with P(Y <= y) = q; -inf and inf for q = 0 and 1."""
        return self._centre + self._width * self._quantile(_fractions("q", q, self.shape))

    def interval(self, coverage: npt.ArrayLike) -> tuple[Array, Array]:
        """The central interval (low, high) that holds Y with probability `coverage`."""
        low = self.quantile((1 - _fractions("coverage", coverage, self.shape)) / 2)
        return low, 2 * self._centre - low

    def entropy(self) -> Array:
        """E[-log p(Y)] in nats: that of Z plus log width."""
        return self._entropy() + np.log(self._width)

    def crps(self, y: npt.ArrayLike) -> Array:
        """Continuous ranked probability score E|Y - y| - E|Y - Y'| / 2, in the unit of y."""
        return self._width * (self._distance(self._standardised(y)) - self._self_distance() / 2)

    def _mean_distance(self, y: Array) -> Array:
        """E|Y - y|."""
        return self._width * self._distance((y - self._centre) / self._width)

    def sample(self, n: int, rng: Seed) -> Array:
        """n independent draws of every entry, of shape (n, *shape)."""
        shape = (_count(n), *self.shape)
        return self._centre + self._width * self._draw(shape, _generator(rng))

    def affine(self, shift: npt.ArrayLike, scale: npt.ArrayLike) -> Self:
        """The distribution of shift + scale * Y, for a scale that is not 0."""
        factor = _finite("scale", scale)
        _refuse("scale", factor, factor == 0, "different from 0")
        return self._with(
            _finite("shift", shift) + factor * self._centre, abs(factor) * self._width
        )

    def widened(self, factor: npt.ArrayLike) -> Self:
        """The same centre, the standard deviation times `factor`."""
        return self._with(self._centre, _positive("factor", factor) * self._width)


class Gaussian(_LocationScale):
    """Normal distributions with these means and standard deviations."""

    def __init__(self, mean: npt.ArrayLike, std: npt.ArrayLike) -> None:
        centre, width = _broadcast(mean=_finite("mean", mean), std=_positive("std", std))
        self._freeze(_centre=centre, _width=width)

    def _with(self, centre: Array, width: Array) -> Self:
        return type(self)(centre, width)

    def _log_density(self, z: Array) -> Array:
        return -0.5 * z * z - 0.5 * _LOG_2PI

    def _cdf(self, z: Array) -> Array:
        return cast(Array, special.ndtr(z))

    def _quantile(self, q: Array) -> Array:
        return cast(Array, special.ndtri(q))

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return rng.standard_normal(shape)

    def _entropy(self) -> float:
        """log(2 pi e) / 2."""
        return 0.5 * (_LOG_2PI + 1)

    def _distance(self, z: Array) -> Array:
        """z (2 Phi(z) - 1) + 2 phi(z)."""
        return cast(Array, z * special.erf(z / 2**0.5) + 2 * np.exp(self._log_density(z)))

    def _self_distance(self) -> float:
        """2 / sqrt(pi): Z - Z' is a Gaussian of variance 2."""
        return 2 / float(np.sqrt(np.pi))


class StudentT(_LocationScale):
    """Student-t distributions loc + scale * T with df > 2 degrees of freedom.

    `scale` is not the standard deviation: std = scale sqrt(df / (df - 2)).
    """

    df: Array

    def __init__(self, loc: npt.ArrayLike, scale: npt.ArrayLike, df: npt.ArrayLike) -> None:
        freedom = _finite("df", df)
        _refuse("df", freedom, freedom <= 2, "greater than 2 (or else the std is not finite)")
        centre, width, freedom = _broadcast(
            loc=_finite("loc", loc), scale=_positive("scale", scale), df=freedom
        )
        self._freeze(_centre=centre, _width=width, df=freedom)

    @property
    def loc(self) -> Array:
        return self._centre

    @property
    def scale(self) -> Array:
        return self._width

    @property
    def std(self) -> Array:
        return self.scale * np.sqrt(self.df / (self.df - 2))

    def _with(self, centre: Array, width: Array) -> Self:
        return type(self)(centre, width, self.df)

    def _log_peak(self) -> Array:
        """log f(0) = log Gamma((df + 1) / 2) - log Gamma(df / 2) - log(pi df) / 2."""
        return _log_gamma_step(self.df / 2) - 0.5 * np.log(np.pi * self.df)

    def _log_density(self, z: Array) -> Array:
        return self._log_peak() - (self.df + 1) / 2 * np.log1p(z * z / self.df)

    def _cdf(self, z: Array) -> Array:
        return cast(Array, special.stdtr(self.df, z))

    def _quantile(self, q: Array) -> Array:
        """Inverts the tail, an incomplete beta function of w = df / (df + z^2).

        It is solved for whichever of 1 - w and w is small, so digits are lost neither at the
        centre nor far out; scipy's stdtrit keeps only eight at df = 4 and fails in far tails.
        """
        tails = 2 * np.minimum(q, 1 - q)
        near = special.betainccinv(0.5, self.df / 2, tails)
        far = special.betaincinv(self.df / 2, 0.5, tails)
        with np.errstate(divide="ignore"):
            ratio = np.where(near < 0.5, np.sqrt(near / (1 - near)), np.sqrt(1 - far) / far**0.5)
        return cast(Array, np.sign(q - 0.5) * np.sqrt(self.df) * ratio)

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return rng.standard_t(self.df, shape)

    def _entropy(self) -> Array:
        """(df + 1) / 2 (psi((df + 1) / 2) - psi(df / 2)) - log f(0)."""
        return (self.df + 1) / 2 * _digamma_step(self.df / 2) - self._log_peak()

    def _distance(self, z: Array) -> Array:
        """z (2 F(z) - 1) + 2 f(z) (df + z^2) / (df - 1) (Jordan, Krueger and Lerch 2019)."""
        log_spread = self._log_peak() - (self.df - 1) / 2 * np.log1p(z * z / self.df)
        straight = np.abs(z) * (1 - 2 * self._cdf(-np.abs(z)))
        return straight + 2 * self.df / (self.df - 1) * np.exp(log_spread)

    def _self_distance(self) -> Array:
        """4 sqrt(df) / (df - 1) B(1/2, df - 1/2) / B(1/2, df / 2)^2."""
        log_ratio = 2 * _log_gamma_step(self.df / 2) - _log_gamma_step(self.df - 0.5)
        return 4 * np.sqrt(self.df / np.pi) / (self.df - 1) * np.exp(log_ratio)


class Categorical(Distribution):
    """Class probabilities along the last axis; the values are class indices 0, 1, ...

    `mean`, `var` and `std` are those of the one-hot indicator and keep the class axis. `cdf`,
    `quantile` and `interval` follow the order of the classes: they mean something only where
    that order does.
    """

    probs: Array

    def __init__(self, probs: npt.ArrayLike) -> None:
        values = _finite("probs", probs)
        if values.ndim == 0 or values.shape[-1] == 0:
            raise InputError(f"probs needs a last axis of classes; got shape {values.shape}")
        _refuse("probs", values, values < 0, "0 or greater")
        sums = values.sum(axis=-1, keepdims=True)
        _refuse("the sum of probs", sums, abs(sums - 1) > 1e-6, "1 along the last axis")
        self._freeze(probs=values / sums)

    @property
    def is_categorical(self) -> bool:
        return True

    @property
    def shape(self) -> tuple[int, ...]:
        return self.probs.shape[:-1]

    @property
    def n_classes(self) -> int:
        return int(self.probs.shape[-1])

    @property
    def mean(self) -> Array:
        return self.probs

    @property
    def var(self) -> Array:
        return self.probs * (1 - self.probs)

    @property
    def std(self) -> Array:
        return np.sqrt(self.var)

    @property
    def mode(self) -> IntArray:
        return np.asarray(np.argmax(self.probs, axis=-1), np.int64)

    def __repr__(self) -> str:
        return f"Categorical(shape={self.shape}, classes={self.n_classes})"

    def log_prob(self, y: npt.ArrayLike) -> Array:
        """Logarithm of the probability of the class y."""
        values = _values("y", y, self.shape)
        known = (values >= 0) & (values < self.n_classes) & (values == np.floor(values))
        _refuse("y", values, ~known, f"a class index from 0 to {self.n_classes - 1}")
        shape = np.broadcast_shapes(values.shape, self.shape)
        probs = np.broadcast_to(self.probs, (*shape, self.n_classes))
        chosen = np.broadcast_to(values, shape).astype(np.int64)[..., None]
        with np.errstate(divide="ignore"):
            return np.log(np.take_along_axis(probs, chosen, axis=-1)[..., 0])

    def cdf(self, y: npt.ArrayLike) -> Array:
        """Probability of the classes up to and including y."""
        reached = np.arange(self.n_classes) <= _values("y", y, self.shape)[..., None]
        return cast(Array, np.where(reached, self.probs, 0.0).sum(axis=-1))

    def quantile(self, q: npt.ArrayLike) -> IntArray:
        """The first class up to which the probabilities add up to q."""
        short = self.probs.cumsum(axis=-1)[..., :-1] < _fractions("q", q, self.shape)[..., None]
        return np.asarray(short.sum(axis=-1), np.int64)

    def interval(self, coverage: npt.ArrayLike) -> tuple[IntArray, IntArray]:
        """Classes (low, high) with at most (1 - coverage) / 2 of the probability on each side."""
        tail = (1 - _fractions("coverage", coverage, self.shape)) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    def entropy(self) -> Array:
        """-sum p log p in nats, at most log(number of classes)."""
        return cast(Array, special.entr(self.probs).sum(axis=-1))

    def crps(self, y: npt.ArrayLike) -> NoReturn:
        """Not defined: classes have no distance. Use the Brier score."""
        raise InputError("crps is defined for continuous distributions; got a Categorical")

    def sample(self, n: int, rng: Seed) -> IntArray:
        """n independent draws of every entry, of shape (n, *shape)."""
        uniform = _generator(rng).random((_count(n), *self.shape, 1))
        passed = self.probs.cumsum(axis=-1)[..., :-1] <= uniform
        return np.asarray(passed.sum(axis=-1), np.int64)

    def tempered(self, temperature: npt.ArrayLike) -> Categorical:
        """Probabilities proportional to probs^(1 / temperature), taken in log space."""
        heat = _positive("temperature", temperature)[..., None]
        with np.errstate(divide="ignore", over="ignore"):
            log_odds = np.log(self.probs) - np.log(self.probs.max(axis=-1, keepdims=True))
            return Categorical(special.softmax(log_odds / heat, axis=-1))


class Mixture(Distribution):
    """Equal-weight mixture of Gaussian and StudentT distributions, or of Categoricals.

    Everything is that of the exact mixture; `moment_matched` gives the simpler approximation
    that RDeepSense-MC and SSP report. Draws are independent from entry to entry.
    """

    components: tuple[Gaussian | StudentT | Categorical, ...]

    def __init__(self, components: Sequence[Gaussian | StudentT | Categorical]) -> None:
        parts = tuple(components)
        kinds = " and ".join(sorted({type(part).__name__ for part in parts}))
        shapes = sorted({part.mean.shape for part in parts if isinstance(part, Distribution)})
        if not all(isinstance(part, Gaussian | StudentT) for part in parts) and not all(
            isinstance(part, Categorical) for part in parts
        ):
            raise InputError(
                f"components must be all Gaussian or StudentT, or all Categorical; got {kinds}"
            )
        if len(shapes) != 1:
            raise InputError(
                f"components must be one or more distributions of one shape; got shapes {shapes}"
            )
        object.__setattr__(self, "components", parts)

    def __setstate__(self, state: dict[str, Any]) -> None:
        object.__setattr__(self, "components", state["components"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mixture) and self.components == other.components

    def __repr__(self) -> str:
        kinds = " and ".join(sorted({type(part).__name__ for part in self.components}))
        return f"Mixture({len(self.components)} {kinds}, shape={self.shape})"

    def __getitem__(self, index: Any) -> Self:
        return type(self)([part[index] for part in self.components])

    @property
    def is_categorical(self) -> bool:
        return self.components[0].is_categorical

    @property
    def shape(self) -> tuple[int, ...]:
        return self.components[0].shape

    @property
    def mean(self) -> Array:
        return cast(Array, np.mean([part.mean for part in self.components], axis=0))

    @property
    def var(self) -> Array:
        """Law of total variance: mean variance + population variance of the means.

        The means are centred first; E[Y^2] - E[Y]^2 would cancel.
        """
        mean = self.mean
        parts = [part.var + (part.mean - mean) ** 2 for part in self.components]
        return cast(Array, np.mean(parts, axis=0))

    @property
    def std(self) -> Array:
        return np.sqrt(self.var)

    @property
    def mode(self) -> Array | IntArray:
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

    def _most_likely(self, candidates: Array) -> Array:
        best = np.argmax(self.log_prob(candidates), axis=0)
        return cast(Array, np.take_along_axis(candidates, best[None], axis=0)[0])

    def _pooled(self) -> Categorical:
        """A mixture of Categoricals is one Categorical, exactly."""
        return Categorical(self.mean)

    def _continuous(self, what: str) -> tuple[Gaussian | StudentT, ...]:
        if self.is_categorical:
            raise InputError(f"{what} is defined for continuous distributions; got {self!r}")
        return cast(tuple[Gaussian | StudentT, ...], self.components)

    def log_prob(self, y: npt.ArrayLike) -> Array:
        """log((1/K) sum_k p_k(y)), without leaving log space."""
        logs = np.array([part.log_prob(y) for part in self.components])
        return cast(Array, special.logsumexp(logs, axis=0) - np.log(len(self.components)))

    def cdf(self, y: npt.ArrayLike) -> Array:
        """(1/K) sum_k F_k(y)."""
        return cast(Array, np.mean([part.cdf(y) for part in self.components], axis=0))

    def quantile(self, q: npt.ArrayLike) -> Array | IntArray:
        """Bisection between the smallest and the largest of the components' quantiles."""
        if self.is_categorical:
            return self._pooled().quantile(q)
        fraction = _fractions("q", q, self.shape)
        ends = np.array([part.quantile(fraction) for part in self.components])
        low, high = ends.min(axis=0), ends.max(axis=0)
        for _ in range(100):
            middle = low / 2 + high / 2
            if np.all((middle == low) | (middle == high)):
                break
            below = self.cdf(middle) < fraction
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return cast(Array, high)

    def interval(self, coverage: npt.ArrayLike) -> tuple[Array | IntArray, Array | IntArray]:
        """The central interval: probability (1 - coverage) / 2 on each side of it."""
        if self.is_categorical:
            return self._pooled().interval(coverage)
        tail = (1 - _fractions("coverage", coverage, self.shape)) / 2
        # The upper end is the mirror image's lower end: 1 - tail would round small tails away.
        return self.quantile(tail), -self.affine(0.0, -1.0).quantile(tail)

    def entropy(self) -> Array:
        """E[-log p(Y)] in nats: exact for classes, by quadrature otherwise."""
        if self.is_categorical:
            return self._pooled().entropy()
        return self._expectation(lambda mixture, y: -mixture.log_prob(y))

    def crps(self, y: npt.ArrayLike) -> Array:
        """E|Y - y| - E|Y - Y'| / 2: closed form for Gaussians, else the second by quadrature."""
        parts = self._continuous("crps")
        values = _values("y", y, self.shape)
        if all(isinstance(part, Gaussian) for part in parts):
            pairs = (
                Gaussian(a.mean - b.mean, np.hypot(a.std, b.std)) for a in parts for b in parts
            )
            self_distance = (
                sum(pair._mean_distance(np.zeros(())) for pair in pairs) / len(parts) ** 2
            )
        else:
            standard = self.affine(-self.mean / self.std, 1 / self.std)
            self_distance = self.std * standard._expectation(Mixture._mean_distance)
        return self._mean_distance(values) - self_distance / 2

    def _mean_distance(self, y: Array) -> Array:
        """E|Y - y|."""
        distances = [part._mean_distance(y) for part in self._continuous("a distance")]
        return cast(Array, np.mean(distances, axis=0))

    def _expectation(self, of: Callable[[Mixture, Array], Array]) -> Array:
        """E[of(mixture, Y)], the step halved for the entries that it still changes.

        Only components of very different widths need steps below the first.
        """
        step = 0.5
        value = np.array(self._trapezoids(of, step))
        moving = np.ones(self.shape, dtype=bool)
        while moving.any() and step > 2**-8:
            step /= 2
            finer = self[moving]._trapezoids(of, step)
            change = abs(finer - value[moving])
            value[moving] = finer
            moving[moving] = change > 1e-10
        return value

    def _trapezoids(self, of: Callable[[Mixture, Array], Array], step: float) -> Array:
        """(1/K) sum_k of the integral of `of` over u = F_k(y), with u = 1 / (1 + exp(-t)).

        The integrand is smooth in t and dies out like exp(-|t|), or exp(-|t| / 2) where `of`
        grows with y and df is near 2; trapezoids then converge exponentially in 1 / step.
        """
        parts = self._continuous("an expectation")
        reach = 36 if all(isinstance(part, Gaussian) for part in parts) else 72
        total = np.zeros(self.shape)
        for t in np.arange(0, reach + step, step):
            u = special.expit(-t)
            weight = step * u * (1 - u) * (0.5 if t == 0 else 1.0)
            for part in parts:
                low = part.quantile(u)
                total += weight * (of(self, low) + of(self, 2 * part.mode - low))
        return total / len(self.components)

    def sample(self, n: int, rng: Seed) -> Array | IntArray:
        """n independent draws of every entry, of shape (n, *shape)."""
        generator = _generator(rng)
        draws = np.array([part.sample(n, generator) for part in self.components])
        chosen = generator.integers(len(self.components), size=(1, *draws.shape[1:]))
        return cast(Array | IntArray, np.take_along_axis(draws, chosen, axis=0)[0])

    def affine(self, shift: npt.ArrayLike, scale: npt.ArrayLike) -> Mixture:
        """The distribution of shift + scale * Y, for a scale that is not 0."""
        return Mixture([part.affine(shift, scale) for part in self._continuous("affine")])

    def moment_matched(self) -> Gaussian | StudentT | Categorical:
        """One distribution with the mixture's mean and variance.

        A StudentT where all components are StudentT with the same df, exact for Categoricals,
        a Gaussian otherwise.
        """
        if self.is_categorical:
            return self._pooled()
        first = self.components[0]
        if isinstance(first, StudentT) and all(
            isinstance(part, StudentT) and np.array_equal(part.df, first.df)
            for part in self.components
        ):
            return StudentT(self.mean, self.std * np.sqrt((first.df - 2) / first.df), first.df)
        return Gaussian(self.mean, self.std)


def _log_gamma_step(x: Array) -> Array:
    """log Gamma(x + 1/2) - log Gamma(x); by its series for large x, where they would cancel."""
    big = np.maximum(x, 30.0)
    series = -1 / (8 * big) + 1 / (192 * big**3) - 1 / (640 * big**5) + 17 / (14336 * big**7)
    exact = special.gammaln(x + 0.5) - special.gammaln(x)
    return np.where(x < 30, exact, 0.5 * np.log(big) + series)


def _digamma_step(x: Array) -> Array:
    """psi(x + 1/2) - psi(x), the derivative of the above."""
    big = np.maximum(x, 30.0)
    series = 1 / (2 * big) + 1 / (8 * big**2) - 1 / (64 * big**4) + 1 / (128 * big**6)
    return np.where(x < 30, special.digamma(x + 0.5) - special.digamma(x), series)


def _floats(name: str, value: npt.ArrayLike) -> Array:
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} must be a number or an array of numbers; {error}") from error


def _refuse(name: str, values: Array, bad: npt.NDArray[np.bool_], accepted: str) -> None:
    if np.any(bad):
        raise InputError(f"{name} must be {accepted}; got {values[bad].flat[0]}")


def _finite(name: str, value: npt.ArrayLike) -> Array:
    values = _floats(name, value)
    _refuse(name, values, ~np.isfinite(values), "finite")
    return values


def _positive(name: str, value: npt.ArrayLike) -> Array:
    values = _finite(name, value)
    _refuse(name, values, values <= 0, "greater than 0")
    return values


def _values(name: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    """Numbers, infinite ones too, that broadcast against the shape of a distribution."""
    values = _floats(name, value)
    _refuse(name, values, np.isnan(values), "a number")
    try:
        np.broadcast_shapes(values.shape, shape)
    except ValueError:
        raise InputError(
            f"{name} must broadcast against the distribution's shape {shape}; got {values.shape}"
        ) from None
    return values


def _fractions(name: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    values = _values(name, value, shape)
    _refuse(name, values, (values < 0) | (values > 1), "between 0 and 1")
    return values


def _broadcast(**parameters: Array) -> list[Array]:
    try:
        return [np.array(values) for values in np.broadcast_arrays(*parameters.values())]
    except ValueError:
        shapes = ", ".join(f"{name} {values.shape}" for name, values in parameters.items())
        raise InputError(f"shapes must broadcast against each other; got {shapes}") from None


def _count(n: int) -> int:
    try:
        count = operator.index(n)
    except TypeError:
        raise InputError(f"n must be an integer; got {n!r}") from None
    if count < 1:
        raise InputError(f"n must be 1 or greater; got {n}")
    return count


def _generator(rng: Seed) -> np.random.Generator:
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, int | np.integer) and rng >= 0:
        return np.random.default_rng(int(rng))
    raise InputError(f"rng must be a numpy Generator or a seed of 0 or greater; got {rng!r}")
