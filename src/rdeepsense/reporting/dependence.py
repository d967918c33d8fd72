"""How predictions go along one input, all others as they are in the table (Friedman 2001).

At each value v of an input, some rows have v in its place, and their predictions are averaged:
means with means, the lower ends of the 90 % intervals with lower ends, of classes probabilities.
Where inputs go together in the table, some of these rows are none that could be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.distributions import Categorical
from rdeepsense.estimators.loading import Estimator
from rdeepsense.reporting.inputs import DatePart, sample
from rdeepsense.reporting.subject import LEVEL

ROWS, VALUES, MOST_LEVELS = 200, 17, 12
ENDS = (0.02, 0.98)  # quantiles: what is rarer is not drawn


@dataclass(frozen=True)
class Dependence:
    """Values of an input, and at each the averages: mean, low and high, or of each class."""

    column: int
    values: Floats
    mean: Floats  # (values, targets), or (values, classes)
    low: Floats | None
    high: Floats | None
    part: DatePart | None = None  # of a column of dates, along which it goes


def dependence(
    model: Estimator,
    rows: NDArray[Any],
    column: int,
    is_level: bool,
    seed: int = 0,
    part: DatePart | None = None,
) -> Dependence | None:
    """Ask the model along one input, or a part of its dates; None where it does not vary."""
    own = rows[:, column] if part is None else part.decoded(rows)
    own = own[np.isfinite(own)]
    if is_level:
        levels, counts = np.unique(own[own >= 0], return_counts=True)
        values = np.sort(levels[np.argsort(-counts, kind="stable")][:MOST_LEVELS])
    else:
        values = np.unique(np.quantile(own, np.linspace(*ENDS, VALUES))) if len(own) else own
    if len(values) < 2:
        return None
    X = rows[sample(len(rows), ROWS, seed)]
    asked = np.repeat(X[None], len(values), axis=0)
    changed = {column: values}
    if part is not None:
        changed = dict(zip(part.columns, part.encoded(values), strict=True))
    for k, made in changed.items():
        asked[:, :, k] = made[:, None]
    dist = model.predict_rows(asked.reshape(-1, X.shape[1]))
    if isinstance(dist, Categorical):
        return Dependence(column, values, _averaged(dist.probs, len(values)), None, None, part)
    ends = dist.interval(LEVEL)
    mean, low, high = (_averaged(np.asarray(one), len(values)) for one in (dist.mean, *ends))
    return Dependence(column, values, mean, low, high, part)


def _averaged(predicted: Floats, values: int) -> Floats:
    shaped: Floats = predicted.reshape(values, -1, *(predicted.shape[1:] or (1,)))
    return np.asarray(shaped.mean(axis=1))
