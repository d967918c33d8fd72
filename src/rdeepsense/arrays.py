"""Names for the array types of signatures."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

_OneIndex = SupportsIndex | slice | EllipsisType | Sequence[int] | NDArray[Any] | None
Index = _OneIndex | tuple[_OneIndex, ...]  # what numpy takes between brackets
RandomState = int | np.random.RandomState | None  # as scikit-learn takes it
