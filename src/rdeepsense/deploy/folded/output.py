"""From the columns of the last layer to what they mean in the target's units.

    numbers:  std = spread width,   mean = location + shift std
    classes:  probabilities = softmax(columns)

with location and width as the head's link computes them. `shift` is 0 but for an isotonic
calibration, whose distribution is not symmetric. With a `laplace` (see `folded.laplace`) std and
probabilities also hold what the model does not know of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.laplace import LastLayerLaplace
from rdeepsense.deploy.folded.links import ArrayArithmetic
from rdeepsense.deploy.folded.runner import MeanStd, Outputs, Probabilities
from rdeepsense.link import Link, LocationWidth, Softmax, evaluate


@dataclass(frozen=True)
class Output:
    """A link, and the numbers that it leaves to be multiplied and added."""

    link: Link
    spread: Floats | None = None  # None for classes, as is shift
    shift: Floats | None = None
    laplace: LastLayerLaplace | None = None

    def finish(self, raw: NDArray[Any]) -> Outputs:
        """Turn columns into predictions; with a laplace, the last of them is its size."""
        widened, epistemic = None, None
        if self.laplace is not None:
            raw, size = raw[:, :-1], raw[:, -1:]
            widened, epistemic = np.sqrt(self.laplace.gain) * size, self.laplace.std * size
        if isinstance(self.link, Softmax):
            return Probabilities(_softmax(raw, widened), epistemic)
        outputs = raw.shape[1] // self.link.columns
        # Slices and not np.split, which takes as long as a small network.
        columns = [raw[:, k * outputs : (k + 1) * outputs] for k in range(self.link.columns)]
        arithmetic = ArrayArithmetic(columns)
        location = _full(evaluate(self.link.location, arithmetic), columns[0])
        if self.link.width is None:
            return MeanStd(location, np.zeros(location.shape), epistemic)
        width = _full(_width(self.link, arithmetic, widened), columns[0])
        assert self.spread is not None
        assert self.shift is not None
        std = self.spread * width
        return MeanStd(location + self.shift * std, std, epistemic)


def _width(link: LocationWidth, arithmetic: ArrayArithmetic, widened: Floats | None) -> Floats:
    assert link.width is not None
    width = evaluate(link.width, arithmetic)
    return width if widened is None else np.hypot(width, widened)


def _softmax(logits: Floats, widened: Floats | None) -> Floats:
    if widened is not None:
        logits = (logits - logits.mean(axis=1, keepdims=True)) / np.hypot(1.0, widened)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs: Floats = odds / odds.sum(axis=1, keepdims=True)
    return probs


def _full(values: Floats, like: Floats) -> Floats:
    """Repeat what a link that reads no column gives: one number for all rows and outputs."""
    return values if values.shape == like.shape else np.broadcast_to(values, like.shape)
