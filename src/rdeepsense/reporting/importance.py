"""What a model goes by: how much worse its probabilities become where an input is shuffled.

The importance of an input is the mean over rows of NLL(row with the input of another row) -
NLL(row), in nats, over several shufflings; its error is the standard error over rows, between
groups where there are groups. Of windows a whole channel is shuffled, of dates all inputs that are
made of one column together. Inputs that say the same as others share their importance: each alone
may have little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.estimators.loading import Estimator
from rdeepsense.reporting.inputs import sample
from rdeepsense.reporting.per_target import standard_error

SHUFFLES = 5
PREDICTED = 400_000  # rows, at most, for all inputs together
FEWEST, MOST = 200, 2_000  # rows that are asked about
LARGEST = 1e6  # nats; a row that becomes impossible would hide all others


@dataclass(frozen=True)
class Importance:
    """An input's importance and its standard error; of several columns the first names it."""

    column: int
    increase: float
    error: float


def importances(
    model: Estimator,
    rows: NDArray[Any],
    truth: NDArray[Any],
    groups: NDArray[Any] | None = None,
    seed: int = 0,
    together: Sequence[Sequence[int]] | None = None,
) -> list[list[Importance]]:
    """Return for each target the inputs, the most important first; truth is (rows[, targets]).

    Columns that are one input come `together`; each is one of its own by default.
    """
    inputs = [(k,) for k in range(rows.shape[-1])] if together is None else together
    most = int(np.clip(PREDICTED // (SHUFFLES * len(inputs)), FEWEST, MOST))
    chosen = sample(len(rows), most, seed)
    X, y = rows[chosen], truth[chosen]
    between = None if groups is None else groups[chosen]
    rng = np.random.default_rng(seed)
    before = _nll(model, X, y)
    found: list[list[Importance]] = [[] for _ in range(before.shape[1])]
    for columns in map(list, inputs):
        risen = np.zeros_like(before)
        for _ in range(SHUFFLES):
            changed = X.copy()
            changed[..., columns] = X[rng.permutation(len(X))][..., columns]
            risen += _nll(model, changed, y) - before
        for target, own in enumerate(risen.T / SHUFFLES):
            error = standard_error(own, between) or 0.0
            found[target].append(Importance(columns[0], float(own.mean()), error))
    return [sorted(own, key=lambda one: -one.increase) for own in found]


def _nll(model: Estimator, X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return the NLL of each row and target, bounded."""
    nll = np.asarray(-model.predict_rows(X).log_prob(y), np.float64)
    return np.clip(np.nan_to_num(nll, nan=LARGEST), -LARGEST, LARGEST).reshape(len(X), -1)
