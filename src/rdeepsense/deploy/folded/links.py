"""Links in numpy: from the columns of the last layer to location and width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rdeepsense.arrays import Floats


@dataclass(frozen=True)
class ArrayArithmetic:
    """The arithmetic of links over arrays (rows, outputs), one for each column of an output."""

    columns: list[Floats]

    def column(self, number: int) -> Floats:
        return self.columns[number]

    def constant(self, value: float) -> Floats:
        return np.asarray(value, dtype=np.float64)

    def apply(self, operation: str, *arguments: Floats) -> Floats:
        return FUNCTIONS[operation](*arguments)


def softplus(v: Floats) -> Floats:
    """Compute log(1 + e^v) without overflow."""
    found: Floats = np.logaddexp(0.0, v)
    return found


FUNCTIONS: dict[str, Callable[..., Floats]] = {
    "add": np.add,
    "multiply": np.multiply,
    "softplus": softplus,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "square": np.square,
}
