"""What a novelty is worth on rows that a model kept: false alarms, and faults that it tells.

A fault is put into every row, as `experiments.tasks.faults` does it for the benchmarks:

    shuffled   each input, or channel, is that of another row
    stuck      one repeats the first reading of its window, or has that of another row
    drift      one moves away, up to 3 standard deviations, along a line in a window
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense import metrics
from rdeepsense.arrays import Floats
from rdeepsense.fitting.unlike import quantile

DRIFT = 3.0
Score = Callable[[NDArray[Any]], Floats]


@dataclass(frozen=True)
class NoveltyReport:
    """The compact novelty of an export beside the full one, on rows that neither has seen.

    `auroc` has, by fault, how well each ranks faulty rows above healthy ones; of the full one it
    is that of `fit_novelty`, or where that was never called, of one fitted to the same rows.
    """

    columns: int
    components: int
    gaussians: int
    bytes_in_flash: int
    multiply_adds: int
    fitted_to: str
    rows: int
    level: float  # the share of healthy rows that are to be no false alarms
    threshold: float
    false_alarms: float  # on rows that did not choose the threshold
    auroc: dict[str, float]
    full_auroc: dict[str, float]


def faulty(X: NDArray[Any], seed: int = 0) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield each fault and what it makes of rows (rows, inputs), or windows."""
    rng = np.random.default_rng(seed)
    rows, inputs = len(X), X.shape[-1]
    shuffled = X.copy()
    for column in range(inputs):
        shuffled[..., column] = X[rng.permutation(rows), ..., column]
    yield "shuffled", shuffled
    one = rng.integers(0, inputs, rows)
    others = (np.arange(rows) + rng.integers(1, max(2, rows), rows)) % rows
    stuck, drift = X.copy(), X.astype(np.float64)
    std = np.nanstd(X.reshape(-1, inputs), axis=0, dtype=np.float64)
    sign = rng.choice([-DRIFT, DRIFT], rows)
    for row, (column, other) in enumerate(zip(one, others, strict=True)):
        if X.ndim == 2:
            stuck[row, column] = X[other, column]
            drift[row, column] += sign[row] * std[column] * rng.uniform()
        else:
            stuck[row, :, column] = X[row, 0, column]
            drift[row, :, column] += sign[row] * std[column] * np.linspace(0, 1, X.shape[1])
    yield "stuck", stuck
    yield "drift", drift


def aurocs(score: Score, X: NDArray[Any]) -> dict[str, float]:
    """Return, by fault, how well a score ranks faulty rows above healthy ones."""
    known = score(X)
    return {fault: metrics.auroc(known, score(rows)) for fault, rows in faulty(X)}


def false_alarms(surprise: Floats, level: float) -> float:
    """Return the share of rows above the quantile of the others, by halves."""
    halves = surprise[::2], surprise[1::2]
    above = [(own > quantile(other, level)).sum() for own, other in (halves, halves[::-1])]
    return float(sum(above) / len(surprise))
