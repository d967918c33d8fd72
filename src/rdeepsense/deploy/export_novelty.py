"""The compact novelty that an export takes along, and what it is worth.

A model that has one from its fit, or from `fit_novelty`, exports that, and all rows at hand judge
it. Otherwise it is that of the rows at hand: each fifth of them is judged by a
density of the others. Either way the threshold is a quantile of rows that the density did not see.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.compact_novelty import CompactNovelty
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.novelty_quality import NoveltyReport, aurocs, false_alarms
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.fitting.unlike import LEVEL, Reading, judging, with_threshold
from rdeepsense.uncertainty.novelty import Marginals, Novelty, Units, fit_compact

FOLDS = 5
Found = tuple[CompactNovelty, NoveltyReport]


def export_novelty(fitted: Fitted, rows: LabelledRows) -> Found:
    """Fit it, and find its threshold; refuse rows that it cannot describe, or too few."""
    reading = Reading(fitted.inputs.shape, fitted.inputs.scaler)
    X, full, known = judging(rows.X), fitted.novelty, fitted.compact_novelty
    if known is not None:
        found, origin = known, "the novelty that was fitted"
        surprise = found.surprise(reading.raw(X))
        judged = aurocs(lambda raw: found.surprise(reading.raw(raw)), X)
        columns = reading.columns if full is None else fitted.scaled
        density = Novelty.fit(columns(X[::2]), columns(X[::2])) if full is None else full
        beside = aurocs(lambda raw: density.surprise(columns(raw)), X)
    else:
        units, columns = reading.units, reading.columns
        surprise = _crossed(X, reading)
        found = with_threshold(_of_rows(columns(X), units), surprise)
        own, others = X[::2], X[1::2]
        half, beside_half = _of_rows(columns(own), units), Novelty.fit(columns(own), columns(own))
        judged = aurocs(lambda raw: half.surprise(reading.raw(raw)), others)
        beside = aurocs(lambda raw: beside_half.surprise(columns(raw)), others)
        origin = rows.origin
    report = NoveltyReport(
        len(reading.units.shift),
        found.components,
        found.gaussians,
        found.bytes,
        found.multiply_adds,
        origin,
        len(X),
        LEVEL,
        float(found.threshold[0]),
        false_alarms(surprise, LEVEL),
        judged,
        beside,
    )
    return found, report


def _of_rows(x: Floats, units: Units) -> CompactNovelty:
    return fit_compact(x, Marginals.of_rows(x), units)


def _crossed(X: NDArray[Any], reading: Reading) -> Floats:
    """Return the surprise of each row by a density of the other folds."""
    surprise, fold = np.empty(len(X)), np.arange(len(X)) % FOLDS
    for own in range(FOLDS):
        out = fold == own
        density = _of_rows(reading.columns(X[~out]), reading.units)
        surprise[out] = density.surprise(reading.raw(X[out]))
    return surprise
