"""Learning rates over time: experts, trackers of coverage and an alarm for drift."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from rdeepsense.adaptation.last_layer import Correction
from rdeepsense.arrays import Floats, Integers
from rdeepsense.errors import InputError

# --------------------------------------------------------------------------------------------------
# Weights of experts: likelihood, with a fixed share back to the prior
#
#     v_e = w_e exp(l_e) / sum,        w_e <- (1 - share) v_e + share prior_e
#
# with l_e the log likelihood that expert e gave to what came (Herbster & Warmuth 1998). The
# mixture's own log likelihood, L = sum_t log sum_e w_e exp(l_e), is after T steps at least that of
# every single expert less a constant and a cost by step, whatever came:
#
#     L >= sum_t l_e + log prior_e + (T - 1) log(1 - share + share prior_e)
#
# and where the best expert changes k times, less k log(1 / (share prior)) instead of a cost that
# grows with the number of steps after the change.
# --------------------------------------------------------------------------------------------------


def updated(weights: Floats, logs: Floats, prior: Floats, share: float) -> Floats:
    """Return the weights after log likelihoods `logs`, of which some may be -inf, not all."""
    likely = weights * np.exp(logs - logs.max())
    found: Floats = (1 - share) * likely / likely.sum() + share * prior
    return found


def regret_bound(prior: float, share: float, steps: int) -> float:
    """Return the most that a mixture can lose in `steps` steps against an expert, in nats."""
    return float(-np.log(prior) - (steps - 1) * np.log1p(-share * (1 - prior)))


# --------------------------------------------------------------------------------------------------
# A tracker of a quantile, from the rate at which intervals miss
#
# A row's interval is its model's interval stretched by q. After each label, miss is 1 where the
# interval did not contain it and 0 where it did, and the rate of misses to reach is
# alpha = 1 - coverage. Then log q += eta (miss - alpha): q > 0, and has no unit. Nothing is assumed
# about rows or labels: the guarantee is arithmetic, on the very sequence that came.
# --------------------------------------------------------------------------------------------------

FARTHEST = 30.0  # of log q: beyond, an interval is the whole line for all it says


@dataclass(frozen=True)
class Multiplicative:
    """Multiply the width by exp(eta (miss - alpha)).

    After T labels, exactly,

        mean(miss) - alpha = (log q_T - log q_0) / (eta T)

    as long as |log q| stays below 30. Where the stretch that would have held each label lies within
    [a, b], and q_0 too, log q stays within [log a - eta alpha, log b + eta (1 - alpha)], so that

        |mean(miss) - alpha| <= (log(b / a) + eta) / (eta T).
    """

    alpha: float
    eta: float
    log_q: float = 0.0

    @property
    def q(self) -> float:
        """The factor of the interval's width."""
        return math.exp(self.log_q)

    def after(self, miss: bool) -> Multiplicative:
        """Return the state after one more label."""
        moved = self.log_q + self.eta * (miss - self.alpha)
        return replace(self, log_q=min(max(moved, -FARTHEST), FARTHEST))


# --------------------------------------------------------------------------------------------------
# A drift alarm with a bounded rate of false alarms
#
# A score says how strange a row is: its novelty, without a label, or how far out its label lies in
# the predicted distribution. Among the scores of reference rows and of all rows that came before, a
# row's smoothed rank
#
#     p = (#{stranger} + U (#{as strange} + 1)) / (n + 1),      U uniform
#
# is uniform and independent of all earlier ones as long as rows come in an order that says nothing
# (they are exchangeable; Vovk, Gammerman & Shafer 2005). Whoever bets against that, gains nothing
# on average. Bets are densities f on [0, 1]: none, on small p, on large p,
#
#     f(p) = 1,      f(p) = k p^(k - 1),      f(p) = k (1 - p)^(k - 1)
#
# and capital moves between them by a fixed share (`experts`), as in the simple jumper. The capital
# M is a martingale that starts at 1, so that by Ville's inequality
#
#     P(M ever reaches 1 / rate) <= rate
#
# however long an unchanged stream lasts. Scores are sorted into bins, whose ranks are
# as uniform as those of scores, so that the state stays a few numbers.
# --------------------------------------------------------------------------------------------------

BINS, MOST_REFERENCE, FEWEST_REFERENCE = 32, 256, 32
POWERS = (0.3, 0.6)
JUMP = 0.01
BETS = np.r_[0.5, np.full(2 * len(POWERS), 0.5 / (2 * len(POWERS)))]
_RICHEST = 690.0  # of log capital, so that it stays a number
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Alarm:
    """A running test: edges of the bins, scores seen in each, weights of the bets, capital."""

    edges: Floats
    counts: Integers
    weights: Floats
    log_capital: float = 0.0
    highest: float = 0.0  # log of the most that the capital ever was
    seen: int = 0

    @classmethod
    def start(cls, reference: Floats) -> Self:
        """Begin with the scores of rows like the training rows that nothing was fitted to.

        A quarter of them or more, drawn at random, places the bins, and the others count, at most
        MOST_REFERENCE: edges must not know the scores that are ranked, and more would tell a
        difference from training that is too small to matter, and blame the stream for it.
        """
        if len(reference) < FEWEST_REFERENCE or not np.isfinite(reference).all():
            raise InputError(
                f"an alarm needs {FEWEST_REFERENCE} finite scores or more; got {len(reference)}"
            )
        scores = np.random.default_rng(0).permutation(reference)
        ranked = min(3 * len(scores) // 4, MOST_REFERENCE)
        edges = np.unique(np.quantile(scores[ranked:], np.arange(1, BINS) / BINS))
        counts = np.bincount(np.searchsorted(edges, scores[:ranked]), minlength=len(edges) + 1)
        return cls(edges, counts.astype(np.int64), BETS)

    def after(self, score: float, seed: int = 0) -> Self:
        """Return the state after one more row; the larger its score, the stranger it is."""
        own = int(np.searchsorted(self.edges, score))
        above, same = int(self.counts[own + 1 :].sum()), int(self.counts[own])
        total = int(self.counts.sum())
        p = (above + uniform(seed, self.seen) * (same + 1)) / (total + 1)
        logs = bets(p)
        gain = float(np.log(self.weights @ np.exp(logs)))
        counts = self.counts.copy()
        counts[own] += 1
        capital = min(self.log_capital + gain, _RICHEST)
        return replace(
            self,
            counts=counts,
            weights=updated(self.weights, logs, BETS, JUMP),
            log_capital=capital,
            highest=max(self.highest, capital),
            seen=self.seen + 1,
        )

    def rings(self, rate: float) -> bool:
        """Tell whether the capital ever reached 1 / rate; it stays so."""
        return bool(self.highest >= -np.log(rate))


def bets(p: float) -> Floats:
    """Return log f(p) of every bet."""
    logs = [0.0]
    for side in (p, 1 - p):
        logs += [np.log(k) + (k - 1) * np.log(max(side, 1e-15)) for k in POWERS]
    return np.array(logs)


def uniform(seed: int, step: int) -> float:
    """Return a number in (0, 1) that step and seed alone decide (SplitMix64)."""
    z = (seed * 0xD1B54A32D192ED03 + (step + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((z ^ (z >> 31)) + 0.5) / (_MASK + 1)


# --------------------------------------------------------------------------------------------------
# The frozen model and filters of several rates as experts
#
# A way is the frozen model (nothing added, its own variance) or a filter with its own rate of
# forgetting. Each way comes with its spread as it is, doubled and fourfold, since the first thing
# that drift does is to make a model too sure: way x stretch are the experts.
#
#     expert e     y ~ the model's distribution, moved by m_e, stretched by f_e about its median
#     way 0        m = 0,             f^2 = stretch^2
#     way k        m = psi^T w_k,     f^2 = stretch^2 (within + (1 - within) s_k)
#                  with s_k = psi^T C_k psi / psi^T psi, what labels have left open
#     prediction   m = sum w_e m_e,   f^2 = sum w_e (f_e^2 + (m_e - m)^2 / variance)
#
# Weights follow the likelihood (`experts`) and begin with 0.768 at the frozen model as it is: on a
# stream without drift the mixture loses 0.264 nats once, and 0.0024 nats a label, at most.
#
# The state is rounded to single precision after every label, so that a state from a file goes on
# exactly as the one that was written. With keep <= MOST_KEPT a covariance is never below
# 1 - MOST_KEPT in any direction, which is far above what rounding can take away.
# --------------------------------------------------------------------------------------------------

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
