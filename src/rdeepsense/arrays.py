"""Names of array types, and values that single precision cannot hold."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

# --------------------------------------------------------------------------------------------------
# Array types for signatures
# --------------------------------------------------------------------------------------------------

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

_OneIndex = SupportsIndex | slice | EllipsisType | Sequence[int] | NDArray[Any] | None
Index = _OneIndex | tuple[_OneIndex, ...]  # what numpy takes between brackets
RandomState = int | np.random.RandomState | None  # as scikit-learn takes it


# --------------------------------------------------------------------------------------------------
# Values that float32 cannot tell apart, such as 1.7e9 ± 30
#
# float32 has 24 bits, float64 has 53. Models subtract an input's mean in float64, so that such
# inputs are as good as any; forms of a model that read float32 cannot take them.
# --------------------------------------------------------------------------------------------------

SINGLE = float(np.finfo(np.float32).eps)
DOUBLE = 1e-13  # a few hundred roundings: what a constant that was computed varies by


def resolution(dtype: DTypeLike) -> float:
    """Return the part of its size that a value of this type must differ by to be another one."""
    return SINGLE if np.dtype(dtype).itemsize <= np.dtype(np.float32).itemsize else DOUBLE


def needs_double(centre: ArrayLike, spread: ArrayLike) -> Booleans:
    """Tell which values, so far about so large a centre, float64 alone tells apart."""
    size, spread = np.abs(np.asarray(centre, np.float64)), np.asarray(spread, np.float64)
    return np.asarray((spread > DOUBLE * size) & (spread <= SINGLE * size), np.bool_)


def double_columns(centre: ArrayLike, spread: ArrayLike) -> tuple[int, ...]:
    """Return the numbers of the columns that need float64."""
    return tuple(np.flatnonzero(needs_double(centre, spread)).tolist())


def about(centre: float, spread: float) -> str:
    """Say what values are like, such as "1.7e+09 ± 30"."""
    return f"{centre:.6g} ± {spread:.2g}"
