"""A simulated sensor whose conditional distribution is known, to judge uncertainty by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rdeepsense.distributions import Gaussian
from rdeepsense.errors import InputError

FEATURES = ("x0", "x1", "x2", "x3")
SHIFT, SCALE = 50.0, 20.0


@dataclass(frozen=True)
class KnownTruth:
    """Inputs, targets, and the distribution the targets were drawn from."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    truth: Gaussian


def simulate(rows: int, seed: int) -> KnownTruth:
    """Draw rows of the task."""
    if rows < 1:
        raise InputError(f"rows = {rows}: at least one row is needed")
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (rows, len(FEATURES)))
    truth = truth_at(X)
    return KnownTruth(X, truth.sample(1, rng)[0], truth)


def truth_at(X: NDArray[np.float64]) -> Gaussian:
    """Return the true distribution of y given x."""
    x0, x1, x2 = X[:, 0], X[:, 1], X[:, 2]
    mean = np.sin(1.5 * x0) + 0.5 * x1 * np.tanh(x2) + 0.25 * x2
    std = 0.1 + 0.5 / (1 + np.exp(-2 * x0)) * (0.5 + 0.25 * np.abs(x1))
    return Gaussian(SHIFT + SCALE * mean, SCALE * std)


def kl_from_truth(truth: Gaussian, predicted: Gaussian) -> float:
    """Return the mean of KL = log(sp/st) + (st^2 + (mt - mp)^2) / (2 sp^2) - 1/2 from the truth."""
    ratio = (truth.var + (truth.mean - predicted.mean) ** 2) / predicted.var
    return float(np.mean(np.log(predicted.std / truth.std) + 0.5 * ratio - 0.5))
