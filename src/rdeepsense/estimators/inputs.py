"""Checks of an estimator's X: scikit-learn's own, and windows beside tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from rdeepsense.data.checks import FEWEST_ROWS, check_filled, check_values
from rdeepsense.errors import InputError
from rdeepsense.networks import Shape


def first_inputs(estimator: BaseEstimator, X: ArrayLike, missing: str) -> NDArray[Any]:
    """Check the X of a fit; the estimator remembers the number of features and their names.

    X is (rows, features) or windows (rows, time, channels), as floats: float32 stays so, the rest
    becomes float64.
    """
    array = as_floats(estimator, X, None)
    check_values(array, missing, feature_names(estimator))
    if missing == "mean":
        check_filled(array)
    return array


def further_inputs(
    estimator: BaseEstimator, X: ArrayLike, missing: str, shape: Shape
) -> NDArray[Any]:
    """Check an X whose rows must be like those of the fit, of this shape."""
    array = as_floats(estimator, X, shape)
    check_values(array, missing, feature_names(estimator))
    return array


def feature_names(estimator: BaseEstimator) -> tuple[str, ...] | None:
    """Return the names that the table of the fit brought."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


def as_floats(estimator: BaseEstimator, X: ArrayLike, shape: Shape | None) -> NDArray[Any]:
    """Return X as floats, whatever they are; `shape` is that of known rows, None in a fit."""
    options: dict[str, Any] = {
        "dtype": (np.float64, np.float32),
        "ensure_all_finite": False,
        "ensure_min_samples": FEWEST_ROWS if shape is None else 1,
    }
    array: NDArray[Any]
    axes = X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim
    if axes != 3 and (shape is None or len(shape) != 2):
        # It also remembers or compares the number of features and their names.
        array = validate_data(estimator, X, reset=shape is None, **options)
        return array
    array = check_array(X, allow_nd=True, input_name="X", **options)
    if shape is None:
        estimator.n_features_in_ = array.shape[2]
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif array.shape[1:] != shape:
        raise InputError(
            f"X has rows of shape {array.shape[1:]}; the model was fitted on rows of shape {shape}"
        )
    return array
