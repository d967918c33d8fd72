"""Choosing head, alpha and dropout: the whole grid is trained as one bank, then compared.

The judge is the validation NLL after calibration, in the target's own units; the deviation area is
reported and never judges, because a badly fitting model can have a small one (reading: section
4.6). `alpha="paper"` does what the paper does instead: the least deviation area on its grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.errors import InputError
from rdeepsense.heads import head_named

DROPS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
ALPHAS = (0.0, 0.5)
PAPER_ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)
FOLDS = 5
FEW_VALIDATION_ROWS = 500
CLEARLY = 2.0  # standard errors

Drop = float | tuple[float, ...]
Criterion = Literal["nll", "deviation_area"]


@dataclass(frozen=True)
class Candidate:
    """One point of the grid."""

    likelihood: str
    alpha: float
    drop_prob: Drop


@dataclass(frozen=True)
class Trial:
    """A candidate and its results on rows it was not trained on, calibrated there."""

    candidate: Candidate
    nll: float
    deviation_area: float | None  # None for classes
    calibration: float | None
    best_step: int

    def to_json(self) -> dict[str, Any]:
        """Return one flat dictionary."""
        values = asdict(self)
        return {**values.pop("candidate"), **values}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Trial:
        values = dict(value)
        drop_prob = values.pop("drop_prob")
        drop = tuple(drop_prob) if isinstance(drop_prob, list) else drop_prob
        candidate = Candidate(values.pop("likelihood"), values.pop("alpha"), drop)
        return cls(candidate, **values)


def candidates(
    likelihoods: Sequence[str], alpha: float | str, drop_prob: float | Sequence[float] | str
) -> tuple[Candidate, ...]:
    """Return the grid that the arguments span; a single candidate when none is left open."""
    alphas: Sequence[float]
    if alpha == "auto":
        alphas = ALPHAS
    elif alpha == "paper":
        alphas = PAPER_ALPHAS
    elif isinstance(alpha, str):
        raise InputError(f"alpha = {alpha!r} is unknown; accepted: a number in [0, 1), auto, paper")
    else:
        alphas = (alpha,)
    if isinstance(drop_prob, str) and drop_prob != "auto":
        raise InputError(f"drop_prob = {drop_prob!r} is unknown; accepted: numbers in [0, 1), auto")
    drops: Sequence[Any] = DROPS if drop_prob == "auto" else (drop_prob,)
    return tuple(Candidate(*point) for point in product(likelihoods, alphas, drops))


def best(trials: Sequence[Trial], by: Criterion, losses: Sequence[Floats]) -> int:
    """Return the number of the trial with the least `by`, "nll" or "deviation_area".

    A head with light tails must win by more than two standard errors of the paired difference of
    `losses` (the NLL of each judged row): a Student-t can become a Gaussian, and one surprise in a
    thousand rows can cost a Gaussian more than it gained on the others.
    """
    winner = min(range(len(trials)), key=lambda i: getattr(trials[i], by))
    heavy = [i for i, trial in enumerate(trials) if _is_heavy(trial)]
    if by == "nll" and heavy and not _is_heavy(trials[winner]):
        rival = min(heavy, key=lambda i: trials[i].nll)
        difference = losses[rival] - losses[winner]
        if difference.mean() < CLEARLY * difference.std() / np.sqrt(len(difference)):
            return rival
    return winner


def _is_heavy(trial: Trial) -> bool:
    return head_named(trial.candidate.likelihood).heavy_tailed
