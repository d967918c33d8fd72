"""The rows of one fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from rdeepsense.data.splits import Part

SET_ASIDE = 0.2  # of the rows, for conformal prediction


@dataclass(frozen=True)
class Data:
    """The rows of one fit: checked, encoded, split."""

    X: NDArray[Any]
    y: NDArray[Any]
    rows: Part  # all that may be learnt from, validation included where it is split off
    train: Part
    X_val: NDArray[Any]
    y_val: NDArray[Any]
    validation: Part
    labels: NDArray[Any] | None  # class numbers, for splits that keep every class's share
    split_off: bool  # whether the validation rows are rows of X
    seed: int
