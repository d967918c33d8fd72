"""Trackers of a quantile: a number that follows how often intervals miss, whatever the data does.

A row's interval is its model's interval stretched by q, or the model's at level 1 - alpha_t. After
each label, miss is 1 where the interval did not hold it and 0 where it did, and the wanted rate of
misses is alpha = 1 - coverage. Nothing is assumed about rows or labels: the guarantee of each
tracker is arithmetic, on the very sequence that came. Each is one small frozen state, and `after`
returns the next one.

    Multiplicative   log q += eta (miss - alpha), the default: q > 0, and has no unit
    Adaptive         alpha_t -= gamma (miss - alpha)       (ACI, Gibbs & Candes 2021)
    Proportional     q += eta (miss - alpha), and an integrator (conformal P and PI control,
                     Angelopoulos, Candes & Tibshirani 2023)
    ScaleFree        q += eta g / sqrt(sum g^2), g = miss - alpha (SF-OGD, Bhatnagar et al. 2023)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

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


@dataclass(frozen=True)
class Adaptive:
    """Move the level itself: adaptive conformal inference.

    An interval is the whole line where level >= 1 and nothing where level <= 0. Then, for any
    sequence (proposition 4.1 of Gibbs & Candes),

        mean(miss) - alpha = (alpha_0 - alpha_T) / (gamma T)
        |mean(miss) - alpha| <= (max(alpha, 1 - alpha) + gamma) / (gamma T).
    """

    alpha: float
    gamma: float
    alpha_t: float

    @classmethod
    def start(cls, alpha: float, gamma: float) -> Adaptive:
        """Return the state before any label, at the level that is wanted."""
        return cls(alpha, gamma, alpha)

    @property
    def level(self) -> float:
        """The coverage to ask the model for, between 0 and 1."""
        return min(max(1 - self.alpha_t, 0.0), 1.0)

    def after(self, miss: bool) -> Adaptive:
        """Return the state after one more label."""
        return replace(self, alpha_t=self.alpha_t + self.gamma * (self.alpha - miss))


@dataclass(frozen=True)
class Proportional:
    """Move a threshold of scores; with `saturation`, an integrator beside it.

        p_t = p_0 + eta sum(miss - alpha)
        q_t = p_t + strength tan(sum(miss - alpha) log(t + 1) / ((t + 1) saturation))

    The tangent is infinite beyond +- pi / 2. Without the integrator, for scores within [0, b] and
    p_0 too,

        mean(miss) - alpha = (p_T - p_0) / (eta T),
        |mean(miss) - alpha| <= (b + eta) / (eta T).
    """

    alpha: float
    eta: float
    proportional: float = 0.0
    excess: float = 0.0  # sum(miss - alpha)
    labels: int = 0
    strength: float = 1.0
    saturation: float | None = None

    @property
    def q(self) -> float:
        """The threshold: scores above it miss."""
        if self.saturation is None:
            return self.proportional
        steps = self.labels + 1
        angle = self.excess * math.log(steps) / (steps * self.saturation)
        if abs(angle) >= math.pi / 2:
            return math.copysign(math.inf, angle)
        return self.proportional + self.strength * math.tan(angle)

    def after(self, miss: bool) -> Proportional:
        """Return the state after one more label."""
        step = miss - self.alpha
        return replace(
            self,
            proportional=self.proportional + self.eta * step,
            excess=self.excess + step,
            labels=self.labels + 1,
        )


@dataclass(frozen=True)
class ScaleFree:
    """Descend along the pinball loss with steps that shrink by themselves.

        q_T - q_0 = eta sum_t (miss_t - alpha) / sqrt(sum_{i <= t} (miss_i - alpha)^2)

    Its regret against the best fixed threshold grows with sqrt(T); for scores within [0, b] and
    eta of the order of b, |mean(miss) - alpha| = O(T^(-1/4) log T) (theorem 4.1 of Bhatnagar et
    al.).
    """

    alpha: float
    eta: float
    q: float = 0.0
    squares: float = 0.0

    def after(self, miss: bool) -> ScaleFree:
        """Return the state after one more label."""
        step = miss - self.alpha
        squares = self.squares + step * step
        return replace(self, q=self.q + self.eta * step / math.sqrt(squares), squares=squares)
