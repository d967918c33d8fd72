"""What must be known of a model to put its predictions into columns; numpy holds all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats
from rdeepsense.encoding import Encoding
from rdeepsense.guard import Guard
from rdeepsense.refusal import Refusal
from rdeepsense.status import Statuses

Values = NDArray[Any]  # (rows, outputs), float32 of C and float64 of torch


@dataclass(frozen=True)
class Known:
    """Names of inputs and targets, what codes and ranges are, and thresholds."""

    inputs: int
    outputs: int
    names: tuple[str, ...] | None
    targets: tuple[str, ...] | None
    classes: NDArray[Any] | None
    encoding: Encoding | None
    guard: Guard | None
    reach: Floats | None = None  # of conformal intervals, in stds of each output
    refusal: Refusal | None = None

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, or their numbers."""
        return list(self.names or map(str, range(self.inputs)))

    @property
    def suffixes(self) -> list[str]:
        """What the columns of each target end in: its name, or nothing for one without."""
        return suffixes(self.targets, 1 if self.classes is not None else self.outputs)

    def beyond(self, X: Values) -> Booleans:
        """Tell which inputs of each row the guard flags; infinity always is."""
        found = np.isinf(X)
        return found if self.guard is None else found | self.guard.beyond(X)


def suffixes(targets: Sequence[str] | None, columns: int) -> list[str]:
    """Return what columns end in: the targets' names, else numbers, or nothing for a single one."""
    if targets is not None:
        return [f"_{name}" for name in targets]
    return [""] if columns == 1 else [f"_{k}" for k in range(columns)]


@dataclass(frozen=True)
class Predicted:
    """Moments, or the probability of each class.

    `quantile` and `interval` give one of every row and output, for a probability.

    `further` are the columns that the runner has beside: epistemic (rows, outputs) or (rows,), and
    novelty (rows,).
    """

    mean: Values
    std: Values | None = None  # None for classes
    quantile: Callable[[float], Values] | None = None
    interval: Callable[[float], tuple[Values, Values]] | None = None
    further: Mapping[str, Values] = field(default_factory=dict)


class Runner(Protocol):
    """Something that predicts rows of numbers and codes."""

    @property
    def name(self) -> str:
        """What it computes with, in words."""

    def run(self, X: Values) -> tuple[Predicted, Statuses]:
        """Predict rows, and say what is the matter with each.

        A row that is MISSING a value or holds infinity gets numbers that mean nothing.
        """
