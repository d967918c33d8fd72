"""The inputs of a model by name, and some of a table's rows to ask the model about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.fitting.fitted import Inputs


@dataclass(frozen=True)
class InputNames:
    """What the columns of rows are called, their units, and the levels of those with levels."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    levels: dict[int, tuple[str, ...]]

    @classmethod
    def of(cls, inputs: Inputs) -> InputNames:
        """Take them from a fitted model; inputs without a name have a number."""
        count = inputs.shape[-1]
        encoding = inputs.encoding
        return cls(
            inputs.names or tuple(f"input {k}" for k in range(count)),
            inputs.units or ("",) * count,
            {} if encoding is None else {c.column: c.levels for c in encoding.categories},
        )

    def named(self, column: int) -> str:
        """Return a name with its unit."""
        unit = self.units[column]
        return f"{self.names[column]} ({unit})" if unit else self.names[column]

    def words(self, column: int, value: float) -> str:
        """Return a value of a column in words."""
        if np.isnan(value):
            return "missing"
        if column in self.levels:
            levels = self.levels[column]
            return levels[int(value)] if 0 <= value < len(levels) else "a level never seen"
        return f"{value:.4g}".replace("-", "−")


def sample(rows: int, most: int, seed: int) -> NDArray[Any]:
    """Choose rows at random, in their order."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
