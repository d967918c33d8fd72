"""Standard errors of metrics: those of the jackknife, by rows and by groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rdeepsense import metrics
from rdeepsense.distributions import Categorical, Gaussian
from rdeepsense.reporting.subject import row_values, standard_error

ROWS = 600


def drawn(rng: np.random.Generator, groups: NDArray[np.intp], classes: bool) -> tuple[Any, Any]:
    """Predictions and actual values; rows of one group share an error."""
    shared = rng.normal(size=groups.max() + 1)[groups]
    if not classes:
        std = rng.uniform(0.5, 2.0, ROWS)
        return Gaussian(np.zeros(ROWS), std), std * rng.normal(size=ROWS) + shared
    logits = rng.normal([0.0, 0.5, 1.0, -1.5], 1.0, (ROWS, 4))
    probs = np.exp(1.5 * logits) / np.exp(1.5 * logits).sum(1, keepdims=True)
    actual = (logits + rng.gumbel(size=(ROWS, 4)) + 0.5 * shared[:, None] * [1, 0, 0, 0]).argmax(1)
    return Categorical(probs), np.minimum(actual, 2)  # the last class never occurs


def jackknife(metric: metrics.Metric, dist: Any, y: Any, groups: NDArray[np.intp]) -> float:
    """Leave out one group after the other."""
    count = groups.max() + 1
    values = np.array([metric(dist[groups != k], y[groups != k]) for k in range(count)])
    return float(np.sqrt((count - 1) / count * np.sum((values - values.mean()) ** 2)))


@pytest.mark.parametrize("count", [ROWS, 30], ids=["rows", "groups"])
@pytest.mark.parametrize(
    "name", ["mae", "rmse", "nll", "crps", "sharpness", "accuracy", "f1", "brier", "ece"]
)
def test_they_are_those_of_the_jackknife(rng: np.random.Generator, name: str, count: int) -> None:
    classes = name in ("accuracy", "f1", "brier", "ece")
    groups = np.arange(ROWS) % count
    dist, y = drawn(rng, groups, classes)
    metric = getattr(metrics, name)
    found = standard_error(row_values(dist, y)[name], groups)
    # They differ by about 2 / count. ECE has kinks, where the mean difference of a bin is near 0.
    rel = 0.25 if name == "ece" else 6 / count + 0.002
    assert found == pytest.approx(jackknife(metric, dist, y, groups), rel=rel)


def test_rmse_by_hand() -> None:
    dist, y = Gaussian(np.zeros(4), np.ones(4)), np.array([1.0, -1.0, 3.0, -3.0])
    # Squared errors 1, 1, 9, 9: mean 5, standard error 4 sqrt(4 / 3) / 2; divided by 2 RMSE.
    expected = 4 * np.sqrt(4 / 3) / 2 / (2 * np.sqrt(5))
    assert standard_error(row_values(dist, y)["rmse"]) == pytest.approx(expected)
    assert standard_error(row_values(dist, np.zeros(4))["rmse"]) == 0.0


def test_a_perfect_classifier_has_no_error() -> None:
    dist, y = Categorical(np.eye(3)[[0, 1, 2, 1]]), np.array([0, 1, 2, 1])
    rows = row_values(dist, y)
    for name in ("accuracy", "f1", "brier", "ece"):
        assert standard_error(rows[name]) == 0.0, name


def test_equal_values_have_no_error_though_their_mean_is_rounded() -> None:
    assert standard_error(np.full(40, 1.08507317521723845)) == 0.0
