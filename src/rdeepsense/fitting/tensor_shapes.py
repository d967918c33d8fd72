"""What a tensor of a model file must be like: its shape, its type, the range of its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rdeepsense.errors import InputError

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
LARGEST = 1e200  # of what has the target's units


class Numbers(NamedTuple):
    """What a tensor must be like."""

    shape: Shape
    least: float = -LARGEST
    most: float = LARGEST
    kind: str = "f"  # numpy's letter for floats or whole numbers; with their bytes, such as f8
    gaps: bool = False  # whether NaN may stand for a missing value


def length(shapes: Shapes, name: str, axis: int = 0) -> int:
    """Return the length of an axis of a tensor that must be there."""
    shape = shapes.get(name)
    if shape is None or len(shape) <= axis or not shape[axis]:
        raise InputError(f"the tensor {name} is missing or has no numbers")
    return shape[axis]
