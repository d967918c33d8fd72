"""Metrics of distributions over classes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rdeepsense.arrays import Floats, Integers
from rdeepsense.distributions import AnyDistribution
from rdeepsense.metrics.checks import as_classes, truth_of


def accuracy(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Return the share of entries whose most probable class is the true one."""
    predicted, truth = _predicted_and_true("accuracy", dist, y)
    return float(np.mean(predicted == truth))


def f1(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Return macro F1: the plain mean of 2 TP / (2 TP + FP + FN) over the classes that occur in y.

    A class without a row is not judged: it would count as 0, however small the error.
    """
    predicted, truth = _predicted_and_true("f1", dist, y)
    scores = [
        2 * np.sum((predicted == c) & (truth == c)) / (np.sum(predicted == c) + np.sum(truth == c))
        for c in np.unique(truth)
    ]
    return float(np.mean(scores))


def brier(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Return the mean squared error of the probabilities, summed over classes (from 0 to 2)."""
    probs = as_classes("brier", dist).probs
    true_class = np.arange(probs.shape[-1]) == truth_of(dist, y)[..., None]
    return float(np.mean(np.sum((probs - true_class) ** 2, axis=-1)))


def ece(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Return the expected calibration error: mean |accuracy - confidence| over 15 bins.

    Bins of the top class's confidence are of equal width, closed below and open above, each
    weighted by its share of the entries; a confidence of exactly 1 has a separate bin, as in
    torchmetrics.
    """
    predicted, truth = _predicted_and_true("ece", dist, y)
    confidence = as_classes("ece", dist).probs.max(axis=-1).ravel()
    chosen_bin = np.searchsorted(np.linspace(0, 1, 16), confidence, side="right")
    excess = np.bincount(chosen_bin, weights=(predicted == truth).ravel() - confidence)
    return float(np.sum(np.abs(excess)) / truth.size)


def mefp(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Return the mean entropy of false predictions in nats, NaN where there are none (section 4.4).

    At most log(number of classes), which uniform guesses reach: never choose a model by it.
    """
    predicted, truth = _predicted_and_true("mefp", dist, y)
    wrong = predicted != truth
    entropy = np.asarray(as_classes("mefp", dist).entropy())
    return float(np.mean(entropy[wrong])) if wrong.any() else float("nan")


def _predicted_and_true(
    metric: str, dist: AnyDistribution, y: npt.ArrayLike
) -> tuple[Integers, Floats | Integers]:
    return as_classes(metric, dist).mode, truth_of(dist, y)
