"""Checks of a metric's arguments: refusals name the argument, the value and what is accepted."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from rdeepsense.arrays import Floats
from rdeepsense.distributions import (
    AnyDistribution,
    Categorical,
    Distribution,
    LocationScale,
    Mixture,
)
from rdeepsense.errors import InputError


def over_classes(dist: AnyDistribution) -> bool:
    if not isinstance(dist, Distribution):
        raise InputError(f"dist must be a distribution of this package; got {type(dist).__name__}")
    return dist.is_categorical


def as_regression(metric: str, dist: AnyDistribution) -> LocationScale | Mixture:
    if over_classes(dist):
        raise InputError(f"{metric} is for regression; got {dist!r}, a distribution over classes")
    return cast(LocationScale | Mixture, dist)


def as_classes(metric: str, dist: AnyDistribution) -> Categorical:
    if not over_classes(dist):
        raise InputError(f"{metric} is for classification; got {dist!r}, which has no classes")
    return cast(Categorical, dist.moment_matched() if isinstance(dist, Mixture) else dist)


def refuse_empty(dist: AnyDistribution) -> None:
    if 0 in dist.shape:
        raise InputError(f"a metric needs at least one entry; got shape {dist.shape}")


def truth_of(dist: AnyDistribution, y: npt.ArrayLike) -> Floats:
    """Check the truth: finite, of the distribution's shape, class indices for classes."""
    classes = over_classes(dist)
    try:
        truth = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"y must be an array of numbers; {error}") from error
    if truth.shape != dist.shape:
        raise InputError(f"y and dist must have the same shape; got {truth.shape} and {dist.shape}")
    refuse_empty(dist)
    if not np.all(np.isfinite(truth)):
        bad = np.flatnonzero(~np.isfinite(truth))
        raise InputError(f"y must be finite; got {truth.flat[bad[0]]} ({bad.size} not finite)")
    if classes:
        _refuse_unknown_classes(truth, dist.mean.shape[-1])
    return truth


def _refuse_unknown_classes(truth: Floats, classes: int) -> None:
    unknown = (truth < 0) | (truth >= classes) | (truth != np.floor(truth))
    if unknown.any():
        raise InputError(
            f"y must be class indices from 0 to {classes - 1}; got {truth[unknown].flat[0]}"
        )
