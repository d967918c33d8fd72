"""What an export did to the predictions, measured on labelled rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from numpy.typing import NDArray

from rdeepsense import metrics
from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.runner import MeanStd, Outputs, Runner
from rdeepsense.distributions import AnyDistribution, Categorical, LocationScale, Recalibrated
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted

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
