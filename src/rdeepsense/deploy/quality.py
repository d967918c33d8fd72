"""What the export did to the predictions, measured on labelled rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense import metrics
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.distributions import AnyDistribution, Categorical, Recalibrated
from rdeepsense.errors import InputError

REGRESSION = ("nll", "coverage_90", "deviation_area", "mae")
CLASSES = ("nll", "accuracy", "ece")


def quality(
    estimator: Any, folded: Folded, network: Any, X: NDArray[Any], y: NDArray[Any]
) -> dict[str, Any]:
    """Figures of the model as trained and as exported, on the same rows."""
    with warnings.catch_warnings():
        # Kept rows are in the order of the names, but carry none.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        options = {} if folded.doubt is None else {"epistemic": "laplace"}
        before = estimator.predict_dist(X, **options)
    predicted = folded.finish(network.raw(np.asarray(X)))
    if folded.is_classifier:
        after: AnyDistribution = Categorical(predicted / predicted.sum(1, keepdims=True))
    else:
        mean, std = (part.reshape(before.shape) for part in predicted)
        after = moved(before, mean, std)
    figures = {}
    for when, dist in (("before", before), ("after", after)):
        scores = metrics.evaluate(dist, y)
        keys = CLASSES if folded.is_classifier else REGRESSION
        figures[when] = {key: float(scores[key]) for key in keys}
    change = figures["after"]["nll"] - figures["before"]["nll"]
    return {"rows": len(y), **figures, "nll_change": change}


def check_change(found: dict[str, Any], most: float, dtype: str, fine_tuned: bool = False) -> None:
    """Refuse an export that is worse by more than the bound."""
    if not found["nll_change"] <= most:
        ways = ["accept a larger change", "take a wider --dtype"]
        if fine_tuned:
            ways.insert(0, "give --data with more rows to fine-tune on")
        elif dtype == "int8":
            ways.insert(0, "try --fine-tune")
        raise InputError(
            f"{dtype} moves the NLL from {found['before']['nll']:.4f} to "
            f"{found['after']['nll']:.4f} on {found['rows']} rows, by more than "
            f"--max-nll-change {most:g}; nothing was written. You can {', '.join(ways[:-1])} or "
            f"{ways[-1]}"
        )


def moved(dist: Any, mean: NDArray[np.float64], std: NDArray[np.float64]) -> Any:
    """A distribution of the same shape with another mean and std, entry by entry."""
    ratio = std / dist.std
    base = dist.base if isinstance(dist, Recalibrated) else dist
    centre = mean - ratio * (dist.mean - base.mean)
    shifted = base.affine(centre - ratio * base.mean, ratio)
    if isinstance(dist, Recalibrated):
        shifted = Recalibrated(shifted, dist.stated, dist.actual)
    return shifted
