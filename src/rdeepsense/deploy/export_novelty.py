"""The compact novelty that an export takes along, and what it is worth.

Where `fit_novelty` was called the density is that of columns drawn from the full one, and all rows
at hand judge it. Otherwise it is that of the rows at hand: each fifth of them is judged by a
density of the others. Either way the threshold is a quantile of rows that the density did not see.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.deploy.compact_novelty import Marginals, Units, fit_compact
from rdeepsense.deploy.drawn_columns import drawn_columns
from rdeepsense.deploy.folded.novelty import CompactNovelty
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.novelty_quality import NoveltyReport, aurocs, false_alarms, quantile
from rdeepsense.epistemic.novelty import Novelty, described
from rdeepsense.epistemic.novelty_groups import drawn
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted

LEVEL = 0.99
FEWEST_ROWS = 40
FOLDS = 5
Found = tuple[CompactNovelty, NoveltyReport]


def export_novelty(fitted: Fitted, rows: LabelledRows) -> Found:
    """Fit it, and find its threshold; refuse rows that it cannot describe, or too few."""
    shape, encoding = fitted.inputs.shape, fitted.inputs.encoding
    numbers = list(range(shape[-1]) if encoding is None else encoding.numbers)
    if len(shape) > 2 or not numbers:
        raise InputError(
            f"a novelty is for tables of numbers and windows (time, channels), not for rows of "
            f"shape {shape} with {len(numbers)} numbers"
        )
    X = rows.X[drawn(len(rows.X))]
    if len(X) < FEWEST_ROWS:
        raise InputError(
            f"a novelty needs {FEWEST_ROWS} rows to set its threshold, and has {len(X)}; fit "
            "the model with keep_rows, or give rows="
        )
    scaler = fitted.inputs.scaler
    shift, scale = scaler.shift[: len(numbers)], scaler.scale[: len(numbers)]
    units = Units.of(shift, scale, len(shape) == 2)

    def columns(raw: NDArray[Any]) -> Floats:
        found = described(fitted.scaled(raw))
        return found if len(shape) == 2 else found[:, : len(numbers)]

    def read(raw: NDArray[Any]) -> NDArray[Any]:
        return raw if len(shape) == 2 else raw[:, numbers]

    full = fitted.novelty
    if full is not None:
        known = Marginals.of_novelty(full, len(units.shift))
        found = fit_compact(drawn_columns(full)[:, : len(units.shift)], known, units)
        surprise = found.surprise(read(X))
        judged = aurocs(lambda raw: found.surprise(read(raw)), X)
        beside = aurocs(lambda raw: full.surprise(fitted.scaled(raw)), X)
        origin = "the novelty that was fitted"
    else:
        found = _of_rows(columns(X), units)
        surprise = _crossed(X, columns, read, units)
        own, others = X[::2], X[1::2]
        half, beside_half = _of_rows(columns(own), units), Novelty.fit(columns(own), columns(own))
        judged = aurocs(lambda raw: half.surprise(read(raw)), others)
        beside = aurocs(lambda raw: beside_half.surprise(columns(raw)), others)
        origin = rows.origin
    threshold = np.array([np.float32(quantile(surprise, LEVEL))], np.float64)
    report = NoveltyReport(
        len(units.shift),
        found.components,
        found.gaussians,
        found.bytes,
        found.multiply_adds,
        origin,
        len(X),
        LEVEL,
        float(threshold[0]),
        false_alarms(surprise, LEVEL),
        judged,
        beside,
    )
    return replace(found, threshold=threshold), report


def _of_rows(x: Floats, units: Units) -> CompactNovelty:
    return fit_compact(x, Marginals.of_rows(x), units)


def _crossed(
    X: NDArray[Any],
    columns: Callable[[NDArray[Any]], Floats],
    read: Callable[[NDArray[Any]], NDArray[Any]],
    units: Units,
) -> Floats:
    """Return the surprise of each row by a density of the other folds."""
    surprise, fold = np.empty(len(X)), np.arange(len(X)) % FOLDS
    for own in range(FOLDS):
        out = fold == own
        surprise[out] = _of_rows(columns(X[~out]), units).surprise(read(X[out]))
    return surprise
