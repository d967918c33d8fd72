"""Probabilities of classes."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, cast

import numpy as np
import numpy.typing as npt
from scipy import special

from rdeepsense.arrays import Floats, Integers
from rdeepsense.distributions import base as checks
from rdeepsense.distributions.base import Distribution, Seed
from rdeepsense.errors import InputError


class Categorical(Distribution):
    """Class probabilities along the last axis; the values are class indices 0, 1, ...

    `classes` are the labels in the order of the probabilities, where there are any: `encode` turns
    labels into indices, and metrics take labels instead of indices. Whatever is made of the
    distribution (entries of it, a mixture, a tempered one) has the same labels.

    `mean`, `var` and `std` are those of the one-hot indicator and keep the class axis. `cdf`,
    `quantile` and `interval` follow the order of the classes: they mean something only where
    that order does.
    """

    probs: Floats
    classes: npt.NDArray[Any] | None = None
    _shared: ClassVar[tuple[str, ...]] = ("classes",)

    def __init__(self, probs: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> None:
        values = checks.finite("probs", probs)
        if values.ndim == 0 or values.shape[-1] == 0:
            raise InputError(f"probs needs a last axis of classes; got shape {values.shape}")
        checks.refuse("probs", values, values < 0, "0 or greater")
        sums = values.sum(axis=-1, keepdims=True)
        checks.refuse("the sum of probs", sums, abs(sums - 1) > 1e-6, "1 along the last axis")
        self._freeze(probs=values / sums)
        if classes is not None:
            self._freeze(classes=_labels(classes, values.shape[-1]))

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

    def labelled(self, classes: npt.ArrayLike) -> Categorical:
        """Return the same probabilities with labels, one for each class."""
        return self._made_of(lambda _, probs: probs, classes=_labels(classes, self.n_classes))

    def encode(self, y: npt.ArrayLike) -> Integers:
        """Return the class indices of labels; without `classes`, check that they are indices."""
        try:
            given = np.asarray(y)
            values, inverse = np.unique(given, return_inverse=True)
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"y must be an array of labels of one kind; {error}") from error
        known = range(self.n_classes) if self.classes is None else self.classes.tolist()
        number = {label: index for index, label in enumerate(known)}
        found = [number.get(label) for label in values.tolist()]
        if None in found:
            unknown = values[found.index(None)].item()
            if self.classes is None:
                accepted = f"class indices from 0 to {self.n_classes - 1}"
            else:
                accepted = f"of the classes {', '.join(map(repr, known))}"
            raise InputError(f"y must be {accepted}; got {unknown!r}")
        return np.array(found, dtype=np.int64)[inverse].reshape(given.shape)

    def log_prob(self, y: npt.ArrayLike) -> Floats:
        """Return the logarithm of the probability of the class with index y."""
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
            return Categorical(special.softmax(log_odds / heat, axis=-1), self.classes)


def _labels(classes: npt.ArrayLike, count: int) -> npt.NDArray[Any]:
    labels = np.array(classes)
    if labels.shape != (count,) or len(set(labels.tolist())) < count:
        raise InputError(f"classes must be {count} different labels; got {labels.tolist()}")
    return labels
