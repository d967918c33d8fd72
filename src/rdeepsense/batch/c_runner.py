"""A model's own C over many rows, without torch.

Of a model that folds, every row's distribution is one and the same standard one, shifted and
stretched, so that a quantile is

    mean + f_q std,   f_q = (quantile_q - mean) / std of any one row

with one f_q for each output, computed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rdeepsense.batch.known import Predicted, Values
from rdeepsense.batch.wanted import tails
from rdeepsense.deploy.c.called import CompiledRunner
from rdeepsense.deploy.folded.runner import Probabilities
from rdeepsense.status import Statuses


@dataclass(frozen=True)
class CRunner:
    """Compiled C, and f_q of each quantile that will be asked for."""

    compiled: CompiledRunner
    factors: Mapping[float, Values]
    name: str = "C"

    def run(self, X: Values) -> tuple[Predicted, Statuses]:
        """Predict in float32; what lies beyond its range is out of the model's range anyway."""
        with np.errstate(over="ignore"):
            rows = np.ascontiguousarray(X, np.float32)
        found = self.compiled.run(rows)
        assert found.status is not None
        if isinstance(found, Probabilities):
            return Predicted(found.probs), found.status
        mean, std = found.mean, found.std

        def quantile(level: float) -> Values:
            return np.asarray(mean + self.factors[level] * std)

        def interval(coverage: float) -> tuple[Values, Values]:
            low, high = tails(coverage)
            return quantile(low), quantile(high)

        return Predicted(mean, std, quantile, interval), found.status
