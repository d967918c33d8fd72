"""The figures of a verdict, by rules that know how much so many rows can tell.

Two questions are asked of labelled rows that nothing was chosen on:

1. Do the inputs say anything? With g the mean over rows of NLL(constant) - NLL(model), and s its
   standard error, the model is better than the mean if g > 2 s, worse if g < -2 s, and no better
   otherwise. The constant is the Gaussian, or the frequencies, of the training targets.
2. Do the stated probabilities hold? For numbers the share c of rows inside their 90 % interval is
   compared with 0.9, for classes the accuracy with the mean stated probability of the top class.
   They hold within 2 s, with s = sqrt(p (1 - p) / n) for independent rows, and with groups the
   error between them where that is larger. Where 2 s is more than 0.1, rows are too few to tell.

The factor by which intervals are too narrow is the 90 % quantile over rows of |y - m| / h, with m
the middle and h half the width of the interval: so much wider they would have held 90 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rdeepsense.experiments.records import Record
from rdeepsense.reporting.per_target import by_target, standard_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rdeepsense.distributions import AnyDistribution

LEVEL = 0.9
ERRORS = 2.0
TELLING = 0.1  # a difference of shares that rows should be able to show
UNCLEAR = "too few rows"
WORTH = {1: "better than the mean", 0: "no better than the mean", -1: "worse than the mean"}


@dataclass(frozen=True)
class Verdict(Record):
    """What can be said of all rows, and the numbers behind it; `overall` puts it in words."""

    worth: str  # of WORTH
    gain: float  # nats
    gain_error: float
    holds: str  # "hold", UNCLEAR, "too narrow", "too wide"; of classes "too sure", "too modest"
    share: float
    nominal: float
    share_error: float
    factor: float | None  # of classes None


def judge(
    dist: AnyDistribution,
    y: NDArray[np.generic],
    targets: Sequence[str],
    constant: NDArray[np.generic] | None = None,
    groups: NDArray[np.generic] | None = None,
) -> dict[str, Verdict]:
    """Judge each target; `constant` are the training targets, those of these rows where None."""
    known = y if constant is None else constant
    found = {}
    for place, (name, part, truth) in enumerate(by_target(dist, y, targets)):
        before = known if known.ndim == 1 else known[:, place]
        rule = _classes if hasattr(part, "probs") else _numbers
        found[name] = rule(part, truth, before, groups)
    return found


def worth_of(gain: float, error: float) -> str:
    """Tell whether a gain differs from none by more than its error allows."""
    if not math.isfinite(gain):
        return WORTH[-1]
    return WORTH[int(gain > ERRORS * error) - int(gain < -ERRORS * error)]


def held(share: float, nominal: float, error: float) -> int:
    """Return 0 where a share is as stated, 1 where it is larger, -1 where it is smaller."""
    return int(share - nominal > ERRORS * error) - int(nominal - share > ERRORS * error)


def _numbers(
    dist: AnyDistribution,
    y: NDArray[np.generic],
    known: NDArray[np.generic],
    groups: NDArray[np.generic] | None,
) -> Verdict:
    import numpy as np

    from rdeepsense.distributions import Gaussian

    truth, before = y.astype(np.float64), known.astype(np.float64)
    spread = max(float(before.std()), np.finfo(np.float64).tiny)
    constant = Gaussian(np.full(len(truth), before.mean()), np.full(len(truth), spread))
    gain, gain_error = _gain(dist.log_prob(truth) - constant.log_prob(truth), groups)
    low, high = dist.interval(LEVEL)
    inside = ((low <= truth) & (truth <= high)).astype(np.float64)
    share, error = float(inside.mean()), _share_error(inside, LEVEL, groups)
    with np.errstate(all="ignore"):
        factor = float(np.quantile(np.abs(2 * truth - low - high) / (high - low), LEVEL))
    found = held(share, LEVEL, error)
    few = found == 0 and ERRORS * error > TELLING
    holds = {0: UNCLEAR if few else "hold", 1: "too wide", -1: "too narrow"}[found]
    kept = factor if math.isfinite(factor) else None
    worth = worth_of(gain, gain_error)
    return Verdict(worth, gain, gain_error, holds, share, LEVEL, error, kept)


def _classes(
    dist: AnyDistribution,
    y: NDArray[np.generic],
    known: NDArray[np.generic],
    groups: NDArray[np.generic] | None,
) -> Verdict:
    import numpy as np

    from rdeepsense.distributions import Categorical

    assert isinstance(dist, Categorical)
    numbers = dist.encode(y)
    counts = np.bincount(dist.encode(known), minlength=dist.probs.shape[1])
    constant = np.log(np.maximum(counts, 0.5) / counts.sum())
    gain, gain_error = _gain(dist.log_prob(numbers) - constant[numbers], groups)
    correct = (dist.mode == numbers).astype(np.float64)
    stated = dist.probs.max(1)
    share, nominal = float(correct.mean()), float(stated.mean())
    error = math.sqrt(float(np.sum(stated * (1 - stated)))) / len(stated)
    if groups is not None:
        error = max(standard_error(correct - stated, groups) or 0.0, error)
    found = held(share, nominal, error)
    few = found == 0 and ERRORS * error > TELLING
    holds = {0: UNCLEAR if few else "hold", 1: "too modest", -1: "too sure"}[found]
    worth = worth_of(gain, gain_error)
    return Verdict(worth, gain, gain_error, holds, share, nominal, error, None)


def _gain(rows: NDArray[np.float64], groups: NDArray[np.generic] | None) -> tuple[float, float]:
    error = standard_error(rows, groups)
    if error is None or not math.isfinite(error):
        error = 0.0
    gain = float(rows.mean())
    return max(min(gain, 1e300), -1e300), error


def _share_error(
    inside: NDArray[np.float64], nominal: float, groups: NDArray[np.generic] | None
) -> float:
    """Return that of a true model; the rows' own would grow with what is to be found out."""
    independent = math.sqrt(nominal * (1 - nominal) / len(inside))
    return (
        independent if groups is None else max(standard_error(inside, groups) or 0.0, independent)
    )
