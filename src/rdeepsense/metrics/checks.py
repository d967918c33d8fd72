"""Checks of a metric's arguments: refusals name the argument, the value and what is accepted."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from rdeepsense.arrays import Floats, Integers
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


def truth_of(dist: AnyDistribution, y: npt.ArrayLike) -> Floats | Integers:
    """Check the truth: finite, of the distribution's shape; labels become class indices."""
    classes = over_classes(dist)
    try:
        truth = np.asarray(y) if classes else np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"y must be an array of numbers; {error}") from error
    if truth.shape != dist.shape:
        raise InputError(f"y and dist must have the same shape; got {truth.shape} and {dist.shape}")
    refuse_empty(dist)
    if classes:
        return as_classes("a class", dist).encode(truth)
    if not np.all(np.isfinite(truth)):
        bad = np.flatnonzero(~np.isfinite(truth))
        raise InputError(f"y must be finite; got {truth.flat[bad[0]]} ({bad.size} not finite)")
    return truth
