"""What an export loses: scores of the exported model beside the original, on labelled rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense import metrics
from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.model import MeanStd, Outputs, Runner
from rdeepsense.distributions import AnyDistribution, Categorical, LocationScale, Recalibrated
from rdeepsense.errors import InputError
from rdeepsense.fitting.epistemic import quantile
from rdeepsense.fitting.fitted import Fitted

# --------------------------------------------------------------------------------------------------
# Change of predictions by an export, on labeled rows
# --------------------------------------------------------------------------------------------------

Figures = dict[str, float]
REGRESSION = ("nll", "coverage_90", "deviation_area", "mae")
CLASSES = ("nll", "accuracy", "ece")


@dataclass(frozen=True)
class FineTuning:
    """What int8 was fine-tuned on, and the change of the NLL that there would be without."""

    rows: int
    steps: int
    nll_change_without: float


@dataclass(frozen=True)
class Quality:
    """Figures of a model as trained and as exported, on the same rows."""

    rows: int
    before: Figures
    after: Figures
    rows_from: str = ""
    fine_tuned: FineTuning | None = None

    @property
    def nll_change(self) -> float:
        """By how much the negative log-likelihood rose."""
        return self.after["nll"] - self.before["nll"]

    def to_json(self) -> dict[str, object]:
        tuned = {} if self.fine_tuned is None else {"fine_tuned": asdict(self.fine_tuned)}
        return {
            "rows_from": self.rows_from,
            "rows": self.rows,
            "before": self.before,
            "after": self.after,
            "nll_change": self.nll_change,
            **tuned,
        }


def quality(runner: Runner, fitted: Fitted, X: NDArray[Any], y: NDArray[Any]) -> Quality:
    """Judge a runner by labelled rows, beside the fitted model's own distributions."""
    found = runner.run(X)
    before = fitted.distribution(X, None if found.epistemic is None else "laplace")
    after = distribution(before, found)
    return Quality(len(y), figures(before, y), figures(after, y))


def check_change(found: Quality, most: float, dtype: str, fine_tuned: bool = False) -> None:
    """Refuse an export that is worse by more than the bound."""
    if not found.nll_change <= most:
        ways = ["accept a larger change", "take a wider dtype="]
        if fine_tuned:
            ways.insert(0, "give rows= with more rows to fine-tune on")
        elif dtype == "int8":
            ways.insert(0, "try fine_tune=True")
        raise InputError(
            f"{dtype} moves the NLL from {found.before['nll']:.4f} to "
            f"{found.after['nll']:.4f} on {found.rows} rows, by more than "
            f"max_nll_change={most:g}; nothing was written. You can {', '.join(ways[:-1])} or "
            f"{ways[-1]}"
        )


def moved(dist: LocationScale | Recalibrated, mean: Floats, std: Floats) -> AnyDistribution:
    """Give a distribution another mean and std, entry by entry, and keep its shape."""
    ratio = std / dist.std
    base = dist.base if isinstance(dist, Recalibrated) else dist
    centre = mean - ratio * (dist.mean - base.mean)
    shifted = base.affine(centre - ratio * base.mean, ratio)
    if isinstance(dist, Recalibrated):
        return Recalibrated(shifted, dist.stated, dist.actual)
    return shifted


def distribution(before: AnyDistribution, found: Outputs) -> AnyDistribution:
    """Return what a runner found, of the shape that a distribution had before."""
    if not isinstance(found, MeanStd):
        return Categorical(found.probs / found.probs.sum(1, keepdims=True))
    assert isinstance(before, LocationScale | Recalibrated)
    return moved(before, found.mean.reshape(before.shape), found.std.reshape(before.shape))


def figures(dist: AnyDistribution, y: NDArray[Any]) -> Figures:
    """Compute what distributions are judged by."""
    keys = CLASSES if dist.is_categorical else REGRESSION
    scores = metrics.evaluate(dist, y)
    return {key: float(scores[key]) for key in keys}


# --------------------------------------------------------------------------------------------------
# Quality of a novelty: false alarms and detected faults
#
# A fault is put into every row, as `paper.tasks.faults` does it for the benchmarks:
#
#     shuffled   each input, or channel, is that of another row
#     stuck      one repeats the first reading of its window, or has that of another row
#     drift      one moves away, up to 3 standard deviations, along a line in a window
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# The report of an export
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExportReport:
    """The format, the file or folder, and the quality where labelled rows could judge it.

    Each format adds what it knows; `to_json` gives all of it as plain values.
    """

    to: str
    path: Path
    quality: Quality | None

    def to_json(self) -> dict[str, object]:
        return {"to": self.to, "path": str(self.path), "quality": self.quality_json()}

    def quality_json(self) -> dict[str, object] | None:
        return None if self.quality is None else self.quality.to_json()
