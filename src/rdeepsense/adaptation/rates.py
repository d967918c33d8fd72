"""The frozen model and filters of several rates as experts: forgetting costs nothing by itself.

A way is the frozen model (nothing added, its own variance) or a filter with its own rate of
forgetting. Each way comes with its spread as it is, doubled and fourfold, since the first thing
that drift does is to make a model too sure: way x stretch are the experts.

    expert e     y ~ the model's distribution, moved by m_e, stretched by f_e about its median
    way 0        m = 0,             f^2 = stretch^2
    way k        m = psi^T w_k,     f^2 = stretch^2 (within + (1 - within) s_k)
                 with s_k = psi^T C_k psi / psi^T psi, what labels have left open
    prediction   m = sum w_e m_e,   f^2 = sum w_e (f_e^2 + (m_e - m)^2 / variance)

Weights follow the likelihood (`experts`) and begin with 0.768 at the frozen model as it is: on a
stream without drift the mixture loses 0.264 nats once, and 0.0024 nats a label, at most.

The state is rounded to single precision after every label, so that a state from a file goes on
exactly as the one that was written. With keep <= MOST_KEPT a covariance is never below
1 - MOST_KEPT in any direction, which is far above what rounding can take away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from rdeepsense.adaptation.experts import updated
from rdeepsense.adaptation.last_layer import Correction
from rdeepsense.arrays import Floats
from rdeepsense.errors import InputError

STRETCHES = np.array([1.0, 2.0, 4.0])
STRETCHED = np.array([0.96, 0.03, 0.01])  # their weights before any label
UNMOVED = 0.8  # that of the frozen model
SHARE = 0.01
MOST_KEPT = 0.9999
MOST_FILTERS = 16
ABOVE_0, BELOW_1 = float(np.nextafter(0.0, 1.0)), float(np.nextafter(1.0, 0.0))


def is_real(value: object) -> bool:
    """Tell whether a value is a number that is finite; True and False are none."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return False
    try:
        return bool(np.isfinite(float(value)))
    except (OverflowError, TypeError):
        return False


@dataclass(frozen=True)
class Rates:
    """What a live model learns by; chosen by replaying left-out groups, or these defaults.

    `rows` is what the training counts for, in rows; `within` the share of a row's variance that no
    label takes away; `between` the variance of the offset, in squares of the target's scale; `keep`
    one factor for each filter, what of its knowledge a label leaves; `eta` the quantile's step.
    """

    rows: float = 30.0
    within: float = 0.5
    between: float = 0.1
    keep: tuple[float, ...] = (0.997,)
    eta: float = 0.05

    def __post_init__(self) -> None:
        for name, least, most, accepted in (
            ("rows", ABOVE_0, np.inf, "greater than 0"),
            ("within", ABOVE_0, 1.0, "above 0, at most 1"),
            ("between", 0.0, np.inf, "0 or more"),
            ("eta", ABOVE_0, 1.0, "above 0, at most 1"),
        ):
            value = getattr(self, name)
            if not is_real(value) or not least <= value <= most:
                raise InputError(f"{name} = {value!r:.60}; accepted: {accepted}")
        keep = self.keep
        if (
            not isinstance(keep, tuple)
            or not 1 <= len(keep) <= MOST_FILTERS
            or not all(is_real(one) and 0 < one <= MOST_KEPT for one in keep)
        ):
            raise InputError(
                f"keep = {keep!r:.60}; accepted: a tuple of 1 to {MOST_FILTERS} factors above 0, "
                f"at most {MOST_KEPT}"
            )


@dataclass(frozen=True)
class Outlook:
    """What each way says about one row, before its label: the frozen model first."""

    shift: Floats  # (ways, outputs), in units of the target's scale
    share: Floats  # (ways,), of the model's variance


@dataclass(frozen=True)
class Filters:
    """A correction for each rate, and the weights (ways, stretches) of the experts."""

    corrections: tuple[Correction, ...]
    weights: Floats

    @classmethod
    def start(cls, directions: int, outputs: int, rates: Rates) -> Self:
        """Return the state before any label."""
        none = Correction.none(np.eye(directions), outputs)
        return cls((none,) * len(rates.keep), prior_weights(len(rates.keep)))

    def outlook(self, psi: Floats, rates: Rates) -> Outlook:
        """Return what the ways say about a row."""
        shift = np.zeros((1 + len(self.corrections), self.corrections[0].weights.shape[1]))
        share = np.ones(len(shift))
        length = float(psi @ psi)
        for k, own in enumerate(self.corrections, 1):
            shift[k] = psi @ own.weights
            known = float(psi @ own.covariance @ psi) / length if length > 0 else 1.0
            share[k] = rates.within + (1 - rates.within) * min(max(known, 0.0), 1.0)
        return Outlook(shift, share)

    def matched(self, outlook: Outlook, variance: Floats) -> tuple[Floats, Floats]:
        """Return how the mixture moves and stretches the model's distribution, by output."""
        own = self.weights.sum(1)
        shift = own @ outlook.shift
        spread = float(np.sum(self.weights * outlook.share[:, None] * STRETCHES**2))
        apart = own @ (outlook.shift - shift) ** 2
        return shift, np.sqrt(spread + apart / variance)

    def observed(
        self, psi: Floats, errors: Floats, noise: float | Floats, logs: Floats, rates: Rates
    ) -> Self:
        """Take in a label.

        `errors` is what it leaves over of the frozen model, (outputs,), `noise` its variance, or
        both for each filter by itself, and `logs` the log likelihoods (ways, stretches) that the
        experts gave it when they spoke: labels that came in between have moved the filters on, and
        weights judge what was said.
        """
        prior = prior_weights(len(self.corrections))
        weights = updated(self.weights, logs, prior, SHARE)
        eye = np.eye(len(psi))
        count = len(self.corrections)
        own = np.broadcast_to(errors, (count, errors.shape[-1]))
        noises = np.broadcast_to(noise, count)
        corrections = tuple(
            _rounded(correction.observed(psi, error, float(each)).forgotten(eye, keep))
            for correction, error, each, keep in zip(
                self.corrections, own, noises, rates.keep, strict=True
            )
        )
        return type(self)(corrections, weights)


def experts(outlook: Outlook) -> tuple[Floats, Floats]:
    """Return the shift (ways, stretches, outputs) and the factor of each expert."""
    factor = np.sqrt(outlook.share)[:, None] * STRETCHES
    shift = np.broadcast_to(outlook.shift[:, None], (*factor.shape, outlook.shift.shape[1]))
    return shift, factor[:, :, None]


def prior_weights(filters: int) -> Floats:
    """Return the weights (ways, stretches) before any label."""
    ways = np.r_[UNMOVED, np.full(filters, (1 - UNMOVED) / filters)]
    return np.outer(ways, STRETCHED)


def _rounded(correction: Correction) -> Correction:
    return Correction(
        correction.weights.astype(np.float32).astype(np.float64),
        correction.covariance.astype(np.float32).astype(np.float64),
    )
