"""A runner predicts checked rows: numpy, C through ctypes, ONNX Runtime, each behind one method."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.status import Statuses

Values = NDArray[Any]  # float64, or float32 where a runner computes in that


class MeanStd(NamedTuple):
    """Mean and std of each row and output, and the epistemic part of the std where it is known."""

    mean: Values
    std: Values
    epistemic: Values | None = None
    status: Statuses | None = None  # None where the model has no guard

    def stacked(self) -> Values:
        """(2, rows, outputs): means, then stds."""
        return np.stack([self.mean, self.std])


class Probabilities(NamedTuple):
    """The probability of each class, and the epistemic std of each logit where it is known."""

    probs: Values
    epistemic: Values | None = None
    status: Statuses | None = None


Outputs = MeanStd | Probabilities


class Runner(Protocol):
    """Something that predicts rows of raw sensor values."""

    @property
    def facts(self) -> Facts:
        """What a caller must know."""

    def run(self, X: NDArray[Any]) -> Outputs:
        """Predict rows that `facts.check` has let through."""


def apart(wanted: Outputs, found: Outputs) -> Values:
    """Measure how far predictions are: probabilities, or means and stds in wanted stds (2, ...)."""
    if isinstance(wanted, MeanStd):
        assert isinstance(found, MeanStd)
        return np.asarray(np.abs(found.stacked() - wanted.stacked()) / wanted.std)
    assert isinstance(found, Probabilities)
    return np.asarray(np.abs(found.probs - wanted.probs))
