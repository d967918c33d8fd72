"""Metrics of a score by which rows are refused, or two kinds of rows told apart.

A score is one number per row, larger where a model is less sure. The area under the risk-coverage
curve judges it by the losses of the rows kept (Geifman & El-Yaniv 2017), the AUROC by how well it
separates rows of one kind from rows of another.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rdeepsense.arrays import Floats
from rdeepsense.distributions.checks import finite, floats
from rdeepsense.errors import InputError


def risk_coverage(score: npt.ArrayLike, loss: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return (coverage, risk): the mean loss of the rows kept as the highest scores are refused.

    One point for each distinct score, from the smallest to all rows (coverage 1): rows of equal
    score are kept or refused together.
    """
    scores, losses = _rows("score", score), _rows("loss", loss)
    if scores.shape != losses.shape:
        raise InputError(
            f"score and loss must have one number per row; got {scores.shape} and {losses.shape}"
        )
    order = np.argsort(scores, kind="stable")
    kept = np.arange(1, len(order) + 1)
    risk = np.cumsum(losses[order]) / kept
    ends = np.flatnonzero(np.append(np.diff(scores[order]) > 0, True))
    return kept[ends] / len(order), risk[ends]


def aurc(score: npt.ArrayLike, loss: npt.ArrayLike) -> float:
    """Return the area under the risk-coverage curve: the mean risk over 1 to n rows kept.

    Lower is better; an uninformative score gives about the mean loss. Where scores are equal,
    the curve is that of their rows in an average order: their losses come in one by one, each the
    mean of them all.
    """
    coverage, risk = risk_coverage(score, loss)
    count = _rows("loss", loss).size
    kept = np.rint(coverage * count).astype(np.intp)
    total = np.append(0.0, risk * kept)
    running = np.interp(np.arange(1, count + 1), np.append(0, kept), total)
    return float(np.mean(running / np.arange(1, count + 1)))


def auroc(score_in: npt.ArrayLike, score_out: npt.ArrayLike) -> float:
    """Return the probability that a row of `score_out` scores above one of `score_in`, ties half.

    1 tells them apart perfectly, 0.5 not at all, 0 perfectly the wrong way round. Exact.
    """
    inside, outside = np.sort(_rows("score_in", score_in)), _rows("score_out", score_out)
    below, up_to = (np.searchsorted(inside, outside, side) for side in ("left", "right"))
    return float(np.mean(below + up_to) / (2 * len(inside)))


def _rows(name: str, value: npt.ArrayLike) -> Floats:
    values = floats(name, value)
    if values.ndim != 1 or not values.size:
        raise InputError(f"{name} must have one number for each of its rows; got {values.shape}")
    return finite(name, values)
