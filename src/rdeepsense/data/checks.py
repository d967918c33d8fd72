"""Checks of inputs and targets where they enter, and their names and units."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from rdeepsense.arrays import Booleans, Floats
from rdeepsense.data.columns import NUMBERS, as_numpy
from rdeepsense.data.scaling import Scaler
from rdeepsense.errors import InputError
from rdeepsense.refusal import unanswerable

# --------------------------------------------------------------------------------------------------
# Names of targets, and units of inputs and targets
#
# Texts that travel with a model into its file and its exports; nothing is computed from them.
# --------------------------------------------------------------------------------------------------

Texts = tuple[str, ...]
Given = str | Sequence[str] | Mapping[str, str]  # a text, one for each, or some by name
KEPT = ("target_names", "target_units", "feature_units")


def of_target(y: object) -> Texts | None:
    """Return the names that a table or column of pandas or polars brings; only text counts."""
    columns = getattr(y, "columns", None)
    names: list[object] = [getattr(y, "name", None)] if columns is None else list(columns)
    found = tuple(name for name in names if isinstance(name, str) and name)
    return found if found and len(found) == len(names) else None


def texts(argument: str, given: Given, count: int, names: Iterable[object] | None = None) -> Texts:
    """Return `count` texts out of a sequence, a single text, or a dictionary by name.

    Names that a dictionary leaves out get an empty text.
    """
    if isinstance(given, Mapping):
        known = None if names is None else [str(name) for name in names]
        if known is None:
            raise InputError(
                f"{argument} is a dictionary, but there are no names here; give a list of {count}"
            )
        accepted = set(known)
        strange = [key for key in given if key not in accepted]
        if strange:
            raise InputError(f"{argument} names {strange[0]!r}; known: {', '.join(known)}")
        given = [given.get(name, "") for name in known]
    found = (given,) if isinstance(given, str) else tuple(given)
    if len(found) != count or not all(isinstance(text, str) for text in found):
        raise InputError(f"{argument} = {given!r}; accepted: one text for each of {count}")
    if odd := next((one for one in found if _has_controls(one)), None):
        raise InputError(f"{argument}: {odd!r:.80} holds a control character")
    return found


def _has_controls(text: str) -> bool:
    """Tell whether a text holds controls of a terminal; names in spreadsheets have line breaks."""
    return any(unicodedata.category(one) == "Cc" and not one.isspace() for one in text)


# --------------------------------------------------------------------------------------------------
# Checks of the arguments of a fit
# --------------------------------------------------------------------------------------------------

FEWEST_ROWS = 10
MISSING = ("auto", "refuse", "mean", "indicator")
CHUNK = 65_536
HEAVIEST = 1e100  # of weights, so that sums and squares of them remain numbers
LARGEST = 1e140  # of a target: variances and what is multiplied with them remain numbers


def check_values(
    X: NDArray[Any],
    missing: str,
    names: Sequence[str] | None,
    gaps: Booleans | None = None,
) -> None:
    """Refuse infinities, and NaN that is not filled in, with a count and the first place.

    `missing` is "refuse", "mean" or "indicator". The last takes NaN in the columns that `gaps`
    tells alone; None is all of them.
    """
    _check_finite(X, "X", names, missing, gaps)


def check_precision(X: NDArray[Any], scaler: Scaler, names: Sequence[str] | None) -> None:
    """Refuse float32 rows where a column needs float64, in which the model was fitted."""
    if X.dtype != np.float32 or not (columns := scaler.double_columns):
        return
    k = columns[0]
    raise InputError(
        f"X is float32, which cannot tell the values of column {k if names is None else names[k]!r}"
        f" apart ({scaler.about(k)}); give float64, as at fit"
    )


def accepted_rows(X: NDArray[Any], missing: str, gaps: Booleans | None = None) -> Booleans:
    """Tell which rows have no value that `check_values` refuses."""
    return np.asarray(~unanswerable(X, missing, gaps).reshape(len(X), -1).any(1))


def resolved_missing(missing: str, X: NDArray[Any]) -> str:
    """Return what "auto" is for these rows: "indicator" where some values are missing.

    The channels of windows have no flag of their own: there it is "mean".
    """
    if missing == "indicator" and X.ndim > 2:
        raise InputError("missing = 'indicator' is for tables; accepted for windows: mean, refuse")
    if missing != "auto":
        return missing
    if not gaps_of(X).any():
        return "refuse"
    return "indicator" if X.ndim == 2 else "mean"


def gaps_of(X: NDArray[Any]) -> Booleans:
    """Tell which columns, or channels of windows, have NaN; without a copy of X."""
    found: Booleans = np.isnan(X.min(tuple(range(X.ndim - 1))))
    return found


def check_filled(X: NDArray[Any], names: Sequence[str] | None = None) -> None:
    """Refuse a column, or a channel of windows, that has no value to take the mean of."""
    empty = np.flatnonzero(np.isnan(X).all(tuple(range(X.ndim - 1))))
    if len(empty):
        part = "column" if X.ndim == 2 else "channel"
        named = empty[0] if names is None else repr(names[empty[0]])
        raise InputError(f"{part} {named} of X has no value at all; leave it out")


def check_targets(y: ArrayLike | None, rows: int) -> Floats:
    """Check y of a regression: numbers, 1-D or 2-D, finite, of the right length."""
    if y is None:
        raise InputError(
            "requires y to be passed, but the target y is None: fit(X, y) needs the true values"
        )
    values = as_numpy("y", y, NUMBERS)
    try:
        array: Floats = check_array(
            values,
            ensure_2d=False,
            allow_nd=True,
            dtype=np.float64,
            ensure_all_finite=False,
            input_name="y",
        )
    except (TypeError, ValueError) as error:
        raise InputError(f"y cannot be used as numbers: {error}") from error
    if array.ndim not in (1, 2):
        raise InputError(f"y has {array.ndim} axes; accepted: (rows,) or (rows, outputs)")
    check_length("y", len(array), rows)
    _check_finite(array.reshape(rows, -1), "y", of_target(y))
    return array


def check_not_constant(y: Floats) -> None:
    """Refuse a constant target: nothing to learn, and no scale to standardise by."""
    columns = y.reshape(len(y), -1)
    constant = np.flatnonzero(np.ptp(columns, axis=0) == 0)
    if len(constant):
        which = "y" if y.ndim == 1 else f"column {constant[0]} of y"
        raise InputError(f"{which} is constant ({columns[0, constant[0]]:g}): nothing to learn")


def check_size(y: Floats, names: Sequence[str] | None) -> None:
    """Refuse targets whose variance is no number: its square would be 0 or infinite."""
    columns = y.reshape(len(y), -1)
    low, high = columns.min(axis=0), columns.max(axis=0)
    size = np.maximum(np.abs(low), np.abs(high))
    bad = np.flatnonzero((size > LARGEST) | (high / 2 - low / 2 < 1 / LARGEST))
    if len(bad):
        k = bad[0]
        which = "y" if y.ndim == 1 else f"column {k} of y"
        which = which if names is None else f"y, column {names[k]!r},"
        factor = 10.0 ** -np.floor(np.log10(size[k]))
        raise InputError(
            f"{which} goes from {low[k]:g} to {high[k]:g}; accepted: values and differences of "
            f"{1 / LARGEST:g} to {LARGEST:g}, so multiply it by a constant, such as {factor:g}"
        )


def check_length(name: str, length: int, rows: int) -> None:
    """Check that what goes with X has as many rows as X."""
    if length != rows:
        raise InputError(f"{name} has {length} rows, X has {rows}; they must agree")


def check_weights(sample_weight: ArrayLike | None, rows: int) -> Floats | None:
    """Check weights: one number per row, none negative, not all zero."""
    if sample_weight is None:
        return None
    given = as_numpy("sample_weight", sample_weight, NUMBERS)
    if given.ndim != 1:
        raise InputError(f"sample_weight has {given.ndim} axes; accepted: one number per row")
    weight = given.astype(np.float64)
    check_length("sample_weight", len(weight), rows)
    if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise InputError("sample_weight must be finite, not negative and not all zero")
    held = weight[weight > 0]
    if held.max() > HEAVIEST or held.min() < 1 / HEAVIEST:
        odd = held.max() if held.max() > HEAVIEST else held.min()
        raise InputError(
            f"sample_weight holds {odd:g}; accepted: 0, or {1 / HEAVIEST:g} to {HEAVIEST:g}"
        )
    return weight


def check_choice(name: str, value: object, accepted: tuple[str, ...]) -> str:
    """Check that a value is one of a few words."""
    if value not in accepted:
        raise InputError(f"{name} = {value!r} is unknown; accepted: {', '.join(accepted)}")
    return str(value)


def check_whole(name: str, value: object, least: int) -> int:
    """Check that a value is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} = {value!r} is not a whole number of at least {least}")
    return int(value)


def check_positive(name: str, value: float, zero: bool = False) -> float:
    """Check that a value is a finite number above 0 (or 0 itself where that makes sense)."""
    if isinstance(value, bool | str) or not np.isfinite(value) or value < 0 or not (value or zero):
        raise InputError(f"{name} = {value!r} is not a number {'>= 0' if zero else '> 0'}")
    return float(value)


def _check_finite(
    array: NDArray[Any],
    name: str,
    names: Sequence[str] | None = None,
    missing: str = "refuse",
    gaps: Booleans | None = None,
) -> None:
    """Refuse NaN and infinity, with a count and the first place; in chunks to spare memory."""
    bad_rows, first = 0, None
    for start in range(0, len(array), CHUNK):
        part = array[start : start + CHUNK]
        bad = unanswerable(part, missing, gaps)
        rows = bad.reshape(len(bad), -1).any(1)
        if rows.any():
            bad_rows += int(rows.sum())
            if first is None:
                row, *place = (int(k) for k in np.argwhere(bad)[0])
                first = (start + row, place, part[row, *place])
    if first is None:
        return
    row, place, value = first
    if len(place) > 1:
        where = f", time {place[0]}, channel {place[1]}"
    elif names is not None:
        where = f", column {names[place[0]]!r}"
    else:
        where = f", column {place[0]}" if name == "X" or array.shape[1] > 1 else ""
    what = "NaN" if np.isnan(value) else "infinity"
    hint = ""
    if name == "X" and what == "NaN" and missing == "refuse":
        column = "column" if array.ndim == 2 else "channel"
        hint = f"; at fit, missing='mean' fills NaN with the {column}'s mean"
        hint += " and missing='indicator' also says so to the model" * (array.ndim == 2)
    elif name == "X" and what == "NaN":
        hint = "; no training row lacked a value there, so the model does not know what it means"
    raise InputError(
        f"{name} contains NaN or infinity in {bad_rows} of {len(array)} rows, first {what} in row "
        f"{row}{where}; finite numbers are accepted{hint}"
    )
