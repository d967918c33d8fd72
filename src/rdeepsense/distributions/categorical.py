"""Probabilities of classes."""

from __future__ import annotations

from typing import NoReturn, cast

import numpy as np
import numpy.typing as npt
from scipy import special

from rdeepsense.arrays import Floats, Integers
from rdeepsense.distributions import checks
from rdeepsense.distributions.base import Distribution
from rdeepsense.distributions.checks import Seed
from rdeepsense.errors import InputError


class Categorical(Distribution):
    """Class probabilities along the last axis; the values are class indices 0, 1, ...

    `mean`, `var` and `std` are those of the one-hot indicator and keep the class axis. `cdf`,
    `quantile` and `interval` follow the order of the classes: they mean something only where
    that order does.
    """

    probs: Floats

    def __init__(self, probs: npt.ArrayLike) -> None:
        values = checks.finite("probs", probs)
        if values.ndim == 0 or values.shape[-1] == 0:
            raise InputError(f"probs needs a last axis of classes; got shape {values.shape}")
        checks.refuse("probs", values, values < 0, "0 or greater")
        sums = values.sum(axis=-1, keepdims=True)
        checks.refuse("the sum of probs", sums, abs(sums - 1) > 1e-6, "1 along the last axis")
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
    def mean(self) -> Floats:
        return self.probs

    @property
    def var(self) -> Floats:
        return self.probs * (1 - self.probs)

    @property
    def std(self) -> Floats:
        return np.sqrt(self.var)

    @property
    def mode(self) -> Integers:
        return np.asarray(np.argmax(self.probs, axis=-1), np.int64)

    def __repr__(self) -> str:
        return f"Categorical(shape={self.shape}, classes={self.n_classes})"

    def log_prob(self, y: npt.ArrayLike) -> Floats:
        """Return the logarithm of the probability of the class y."""
        values = checks.numbers("y", y, self.shape)
        known = (values >= 0) & (values < self.n_classes) & (values == np.floor(values))
        checks.refuse("y", values, ~known, f"a class index from 0 to {self.n_classes - 1}")
        shape = np.broadcast_shapes(values.shape, self.shape)
        probs = np.broadcast_to(self.probs, (*shape, self.n_classes))
        chosen = np.broadcast_to(values, shape).astype(np.int64)[..., None]
        with np.errstate(divide="ignore"):
            return np.log(np.take_along_axis(probs, chosen, axis=-1)[..., 0])

    def cdf(self, y: npt.ArrayLike) -> Floats:
        """Return the probability of the classes up to and including y."""
        reached = np.arange(self.n_classes) <= checks.numbers("y", y, self.shape)[..., None]
        return cast(Floats, np.where(reached, self.probs, 0.0).sum(axis=-1))

    def quantile(self, q: npt.ArrayLike) -> Integers:
        """Return the first class up to which the probabilities add up to q."""
        short = (
            self.probs.cumsum(axis=-1)[..., :-1] < checks.fractions("q", q, self.shape)[..., None]
        )
        return np.asarray(short.sum(axis=-1), np.int64)

    def interval(self, coverage: npt.ArrayLike) -> tuple[Integers, Integers]:
        """Return classes (low, high) with at most probability (1 - coverage) / 2 on each side."""
        tail = (1 - checks.fractions("coverage", coverage, self.shape)) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    def entropy(self) -> Floats:
        """Return -sum p log p in nats, at most log(number of classes)."""
        return cast(Floats, special.entr(self.probs).sum(axis=-1))

    def crps(self, y: npt.ArrayLike) -> NoReturn:
        """Refuse: classes have no distance. Use the Brier score."""
        raise InputError("crps is defined for continuous distributions; got a Categorical")

    def sample(self, n: int, rng: Seed) -> Integers:
        """Draw n independent values of every entry, of shape (n, *shape)."""
        uniform = checks.generator(rng).random((checks.count(n), *self.shape, 1))
        passed = self.probs.cumsum(axis=-1)[..., :-1] <= uniform
        return np.asarray(passed.sum(axis=-1), np.int64)

    def tempered(self, temperature: npt.ArrayLike) -> Categorical:
        """Return probabilities proportional to probs^(1 / temperature), taken in log space."""
        heat = checks.positive("temperature", temperature)[..., None]
        with np.errstate(divide="ignore", over="ignore"):
            log_odds = np.log(self.probs) - np.log(self.probs.max(axis=-1, keepdims=True))
            return Categorical(special.softmax(log_odds / heat, axis=-1))
