"""The threshold of a reject option, as a deployed model has it: `Status.UNSURE` beyond."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats


@dataclass(frozen=True)
class Refusal:
    """Refuse a row whose score is above `threshold`.

    The score is mean_k std_k / spread_k over the outputs, of classes 1 - max p.
    """

    threshold: Floats  # (1,)
    spread: Floats  # (outputs,), of classes (1,)

    def refused(self, predicted: NDArray[Any], is_classifier: bool) -> Booleans:
        """Tell which stds (rows, outputs), or probabilities, are refused; NaN is."""
        score = 1 - predicted.max(1) if is_classifier else (predicted / self.spread).mean(1)
        return np.asarray(~(score <= self.threshold[0]))

    def to_json(self) -> dict[str, object]:
        """Return the numbers as plain values."""
        return {"threshold": float(self.threshold[0]), "spread": self.spread.tolist()}

    def arrays(self) -> dict[str, Floats]:
        """Name the arrays, as files have them."""
        return dict(vars(self))
