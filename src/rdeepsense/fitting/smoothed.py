"""How the decisions of a stream are taken together, found on groups that were left out.

Windows of a log stand in the order of time within their recording. Each group was predicted by a
network that did not see it, so its recordings are streams of a new person, with the truth.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from rdeepsense.arrays import Integers
from rdeepsense.calibration import Calibration
from rdeepsense.calibration.decisions import Streams, fit_smoothing
from rdeepsense.data.rows import FitRows
from rdeepsense.distributions import Categorical
from rdeepsense.fitting.left_out import LeftOut
from rdeepsense.guard import Guard
from rdeepsense.windowing.stream import Smoothing, prior_of


def smoothing_for(
    rows: FitRows, left_out: LeftOut | None, calibration: Calibration | None, guard: Guard
) -> Smoothing | None:
    """Fit the smoothing of classes; None where rows are no windows, or no group was left out."""
    if rows.recipe is None or rows.runs is None or left_out is None:
        return None
    dist = left_out.dist
    if not dist.is_categorical:
        return None
    told = dist if calibration is None else calibration.apply(dist)
    assert isinstance(told, Categorical)
    index = np.concatenate([fold.hidden.index for fold in left_out.folds])
    order = np.argsort(index)
    run = np.empty(len(rows.X), np.int64)
    for number, own in enumerate(rows.runs):
        run[own] = number
    streams = Streams(
        told.probs[order],
        np.ones(len(index), np.bool_),
        left_out.joined("y")[order].astype(np.int64),
        unbroken(index[order], run),
        prior_of(guard.fallback, told.probs.shape[1]),
    )
    return fit_smoothing(streams, rows.recipe)


def unbroken(index: Integers, run: Integers) -> list[slice]:
    """Return where rows of a table, in its order, follow each other within one run of it."""
    follows = (np.diff(index) == 1) & (run[index[1:]] == run[index[:-1]])
    ends = [0, *(np.flatnonzero(~follows) + 1).tolist(), len(index)]
    return [slice(a, b) for a, b in pairwise(ends)]
