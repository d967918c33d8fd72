"""Decisions of a stream taken together: a class that lasts, and windows that share samples.

Between two windows the class stays, or with the probability `change` another one begins, drawn with
the frequencies pi of the training. A window whose model says p counts as the part `evidence` of an
independent one:

    b' = (1 - change) b + change pi,      b_k ~ b'_k (p_k / pi_k)^evidence,      sum b = 1

b is a distribution: where both numbers fit, b_k is how often class k is the true one. A label comes
where b_k >= `at`, and goes where it is wrong with that probability, 1 - b_k > `at`; between the two
it stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.errors import InputError
from rdeepsense.fields import Json, check_fields, number
from rdeepsense.status import Status
from rdeepsense.windowing.recipe import Recipe

LEAST = 1e-6  # of a probability: no window excludes a class for ever
LASTS = 30.0  # seconds that a class is believed to last where no stream was seen
TRUSTED = Status.UNSURE  # a window with any other flag is no evidence
RANGES = {"evidence": (1e-4, 1.0), "change": (1e-4, 1.0), "at": (0.5, 1.0)}
FIELDS = {name: number(least, most) for name, (least, most) in RANGES.items()}


@dataclass(frozen=True)
class Smoothing:
    """How decisions are taken together.

    Parameters
    ----------
    evidence : what a window counts beside an independent one: 0 to 1.
    change : the probability that another class has begun since the window before.
    at : the probability that a label comes with, above 0.5; it goes where it is wrong with that.
    """

    evidence: float
    change: float
    at: float = 0.6

    def __post_init__(self) -> None:
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"{name} = {value!r:.40} is no number")
            if not least <= value <= most:
                raise InputError(f"{name} = {value!r:.40}; accepted: {least:g} to {most:g}")

    @classmethod
    def unseen(cls, recipe: Recipe) -> Smoothing:
        """Return what is believed before any stream was seen.

        Half of what is new in a window counts: its other half is believed to be like the window
        before. A class lasts half a minute.
        """
        new = min(1.0, recipe.hop / recipe.window)
        return cls(max(1e-4, new / 2), float(np.clip(recipe.hop / LASTS, 1e-4, 0.5)))

    @classmethod
    def from_json(cls, value: Json) -> Smoothing:
        """Read what a file holds, which anyone may have written."""
        check_fields(value, FIELDS, at="smoothing.")
        return cls(**{name: float(value[name]) for name in FIELDS})

    def spaced(self, factor: float) -> Smoothing:
        """Return it for windows so many times as far apart: a second is worth what it was."""
        return Smoothing(
            float(np.clip(self.evidence * factor, *RANGES["evidence"])),
            float(np.clip(self.change * factor, *RANGES["change"])),
            self.at,
        )

    def next(self, belief: Floats, probs: Floats | None, prior: Floats) -> Floats:
        """Return the belief after a window; None where it is no evidence."""
        ahead: Floats = belief + self.change * (prior - belief)
        if probs is None:
            return ahead
        logs = np.log(ahead) + self.evidence * (np.log(np.maximum(probs, LEAST)) - np.log(prior))
        odds = np.exp(logs - logs.max(-1, keepdims=True))
        found: Floats = odds / odds.sum(-1, keepdims=True)
        return found

    def label(self, belief: Floats, label: int) -> int:
        """Return the label after a window, -1 where none is probable."""
        best = int(np.argmax(belief))
        if belief[best] >= self.at:
            return best
        return -1 if label >= 0 and belief[label] < 1 - self.at else label


def prior_of(frequencies: Floats | None, classes: int) -> Floats:
    """Return the frequencies of classes, none of them 0; all alike where they are not known."""
    if frequencies is None:
        return np.full(classes, 1 / classes)
    kept = np.maximum(frequencies, LEAST)
    found: Floats = kept / kept.sum()
    return found
