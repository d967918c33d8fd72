"""Checks of an estimator's X: scikit-learn's own, windows beside tables, categories as codes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from rdeepsense.arrays import Booleans
from rdeepsense.data.categories import Categorical, Columns, coded, found_levels, named_columns
from rdeepsense.data.checks import (
    FEWEST_ROWS,
    check_filled,
    check_precision,
    check_values,
    gaps_of,
    resolved_missing,
)
from rdeepsense.data.dates import first_columns, further_columns
from rdeepsense.data.findings import Finding
from rdeepsense.data.kinds import check_table, columns_of, unmasked
from rdeepsense.data.scaling import Scaler
from rdeepsense.encoding import Encoding
from rdeepsense.errors import ColumnWarning, InputError
from rdeepsense.networks import Shape

EXACT = 2.0**53  # whole numbers below are told apart as float64
SOME, LISTED = 10_000, 5  # rows that are looked at, columns that are named


@dataclass(frozen=True)
class KnownInputs:
    """What the X of a fit was like, and so what later ones must be like."""

    shape: Shape
    missing: str  # "refuse", "mean" or "indicator"
    encoding: Encoding | None = None
    gaps: Booleans | None = None  # columns that lacked values
    scaler: Scaler | None = None  # None in a fit, which has none yet
    dated: tuple[str, ...] = ()  # columns of dates that inputs are made from
    left_out: tuple[Finding, ...] = ()  # columns of dates that are none


def first_inputs(
    estimator: BaseEstimator,
    X: Any,  # Any: an array, or a table of any library
    missing: str,
    categorical: Categorical,
    parts: Sequence[str] = (),
) -> tuple[NDArray[Any], KnownInputs]:
    """Check the X of a fit; the estimator remembers the number of features and their names.

    X is (rows, features) or windows (rows, time, channels), as floats: float32 stays so, the rest
    becomes float64. Categories become codes, for which the encoding has no vectors yet. Of dates
    `parts` become inputs.
    """
    check_table("X", X)
    X = unmasked(X)
    named = () if categorical is None or isinstance(categorical, str) else categorical
    found = first_columns(X, parts, named)
    if parts and (found is None or not (found.dated or found.left_out)):
        raise InputError(f"datetime = {tuple(parts)!r}: no column of X holds dates or times")
    dated: tuple[str, ...] = ()
    left_out: tuple[Finding, ...] = ()
    if found is not None:
        if named:
            places = named_columns(named, Columns.of(X, every=True).names)  # type: ignore[union-attr]
            categorical = [found.places[k] for k in places]
        X, dated = found.columns, found.dated
        left_out = tuple(_left_out(name, why) for name, why in found.left_out.items())
    encoding = _found_encoding(X, categorical)
    array = _checked(estimator, X, None, encoding)
    names = feature_names(estimator)
    resolved = resolved_missing(missing, array)
    check_values(array, resolved, names)
    _warn_of_merged(X, array, names)
    gaps = None if resolved == "refuse" else gaps_of(array)
    if gaps is not None:
        check_filled(array, names)
    if resolved == "indicator" and gaps is not None and gaps.any():
        encoding = Encoding(array.shape[1]) if encoding is None else encoding
        flagged = tuple(k for k in encoding.numbers if gaps[k])
        encoding = replace(encoding, flagged=flagged)
    return array, KnownInputs(
        array.shape[1:], resolved, encoding, gaps, dated=dated, left_out=left_out
    )


def _warn_of_merged(X: ArrayLike, array: NDArray[Any], names: Sequence[str] | None) -> None:
    """Name the columns of whole numbers, some of which are one and the same as a float64."""
    large = np.abs(array[:SOME]).max(0) >= EXACT if array.ndim == 2 else np.zeros(0)
    if not large.any():
        return
    columns = [column for _, column in columns_of(X)] or list(np.asarray(X)[:SOME].T)
    lost = [
        str(k) if names is None else repr(names[k])
        for k in map(int, np.flatnonzero(large))
        if len(set(islice(columns[k], SOME))) > len(set(array[:SOME, k].tolist()))
    ]
    if lost:
        warnings.warn(
            f"X, column{'s' * (len(lost) > 1)} {', '.join(lost[:LISTED])}: some whole numbers "
            "beyond 2**53 are equal as float64; subtract an offset first",
            ColumnWarning,
            stacklevel=2,
        )


def further_inputs(estimator: BaseEstimator, X: ArrayLike, known: KnownInputs) -> NDArray[Any]:
    """Check an X whose rows must be like those of the fit."""
    array = as_floats(estimator, X, known)
    check_values(array, known.missing, feature_names(estimator), known.gaps)
    return array


def feature_names(estimator: BaseEstimator) -> tuple[str, ...] | None:
    """Return the names that the table of the fit brought."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


def as_floats(estimator: BaseEstimator, X: ArrayLike, known: KnownInputs) -> NDArray[Any]:
    """Return rows like those of the fit as floats, whatever they are."""
    check_table("X", X)
    X = unmasked(X)
    columns = further_columns(X, feature_names(estimator))
    array = _checked(estimator, X if columns is None else columns, known.shape, known.encoding)
    if known.scaler is not None:
        check_precision(array, known.scaler, feature_names(estimator))
    return array


def _left_out(name: str, why: str) -> Finding:
    """Say that a column of dates is no input."""
    what, _, cure = why.partition("; ")
    return Finding(
        code="dates",
        severity="info",
        message=f"column {name!r} holds {what}, and is left out",
        columns=(name,),
        cure=f"{cure}.",
    )


def _found_encoding(X: Any, categorical: Categorical) -> Encoding | None:
    """Find the levels of the columns that are categories; None where there are none."""
    columns = Columns.of(X, every=not (categorical is None or isinstance(categorical, str)))
    chosen = [] if columns is None else columns.chosen(categorical)
    return found_levels(columns, chosen) if columns is not None and chosen else None


def _checked(
    estimator: BaseEstimator, X: Any, shape: Shape | None, encoding: Encoding | None
) -> NDArray[Any]:
    """Return X as floats; `shape` is that of known rows, None in a fit."""
    try:
        return _read(estimator, X, shape, encoding)
    except ValueError as error:  # of scikit-learn, whose words are known
        raise error if isinstance(error, InputError) else InputError(str(error)) from error


def _read(
    estimator: BaseEstimator, X: Any, shape: Shape | None, encoding: Encoding | None
) -> NDArray[Any]:
    options: dict[str, Any] = {
        "dtype": (np.float64, np.float32),
        "ensure_all_finite": False,
        "ensure_min_samples": FEWEST_ROWS if shape is None else 1,
    }
    array: NDArray[Any]
    if isinstance(X, Columns):
        if shape is not None and shape != (len(X.names),):
            raise InputError(
                f"X has {len(X.names)} columns; the model was fitted on rows of shape {shape}"
            )
        array = check_array(coded(X, encoding or Encoding(len(X.names))), **options)
        if shape is None:
            _remember(estimator, X.names)
        return array
    if encoding is not None and encoding.categories:
        columns = Columns.of(X, every=True)
        if columns is not None:
            if not hasattr(X, "shape"):
                X = np.array(X, dtype=object)
            validate_data(estimator, X, reset=shape is None, skip_check_array=True)
            array = check_array(coded(columns, encoding), **options)
            return array
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


def _remember(estimator: BaseEstimator, names: Sequence[str | int]) -> None:
    """Let an estimator know its inputs, as scikit-learn does."""
    estimator.n_features_in_ = len(names)
    if all(isinstance(name, str) for name in names):
        vars(estimator)["feature_names_in_"] = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
