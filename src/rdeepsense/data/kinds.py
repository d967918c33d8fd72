"""The values of a column as numpy has them, whichever library it comes from.

Targets, labels and groups come as lists, arrays, and columns of pandas, polars or pyarrow. Decimals
and whole numbers of 128 bits are numbers like others; lists, structs, durations, dates and bytes
are refused by name where they have no meaning, before numpy makes something else of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.encoding import MISSING_TYPES
from rdeepsense.errors import InputError

NUMBERS = "numbers"
LABELS = "text, yes/no or whole numbers"
GROUPS = "text, yes/no, numbers or dates"
_MADE_OF = (  # how the names of types begin, in numpy, pandas, polars and pyarrow
    ("lists", r"(large_|fixed_size_)?list|array\(|tuple|set|frozenset|ndarray|series"),
    ("structs", r"struct|map|dict|union|sparse_union|dense_union"),
    ("durations", r"duration|timedelta|month_day_nano_interval|pandas_timedelta"),
    ("dates or times", r"date|time|timestamp|period"),
    ("bytes", r"(large_|fixed_size_)?binary|\|s\d|bytes"),
    ("complex numbers", r"complex"),
    ("records", r"void|\|v\d|\[\("),
)
_HINTS = {
    "durations": "; write it in seconds, as numbers",
    "dates or times": "; write it as numbers, or as text",
    "bytes": "; write it as text",
}
_SCALAR = ("durations", "dates or times", "bytes")  # that can tell groups apart


def plain(name: str, values: ArrayLike, accepted: str) -> NDArray[Any]:
    """Return the values of a column, or of each column of a table, checked.

    `accepted` is NUMBERS, LABELS or GROUPS. What is missing becomes NaN among numbers, where it is
    found with its place, and is refused here otherwise.
    """
    if isinstance(values, np.ma.MaskedArray) and accepted != NUMBERS:
        values = values.astype(object)
    values = unmasked(values)
    columns = columns_of(values)
    if columns:
        return np.column_stack([_column(name, one, said, accepted) for said, one in columns])
    column = getattr(values, "name", None)
    return _column(name, values, column if isinstance(column, str) else None, accepted)


def groups_of(values: ArrayLike, rows: int) -> NDArray[Any]:
    """Return the group of each of so many rows, checked."""
    found = plain("groups", values, GROUPS)
    if found.ndim == 0:
        raise InputError(f"groups is one value, {values!r:.60}; accepted: one for each row")
    if found.ndim > 1 and found.shape[1:] != (1,):
        raise InputError(f"groups has the shape {found.shape}; accepted: one value for each row")
    if len(found) != rows:
        raise InputError(f"groups has {len(found)} rows, X has {rows}; they must agree")
    return found.reshape(rows)


def unmasked(values: Any) -> Any:  # Any: whatever an argument takes
    """Return a masked array with NaN where it is masked; anything else as it is.

    What holds no numbers has None there.
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.getmaskarray(values).any():
        return values.data
    if values.dtype.kind in "biuf":
        kind = values.dtype if values.dtype.kind == "f" else np.float64
        return np.ma.filled(values.astype(kind), np.nan)
    found = np.array(values.data, dtype=object)
    found[np.ma.getmaskarray(values)] = None
    return found


def check_table(name: str, table: Any) -> None:  # Any: whatever an argument takes
    """Refuse a table that was not computed yet, and one with two columns of one name."""
    if type(table).__name__ == "LazyFrame":
        raise InputError(f"{name} is a LazyFrame, which holds no rows yet; call collect() on it")
    if isinstance(table, np.ndarray | list | tuple) or not hasattr(table, "columns"):
        return
    names = [said for said, _ in columns_of(table)]
    if len(set(names)) < len(names):
        twice = next(said for k, said in enumerate(names) if said in names[:k])
        raise InputError(f"{name} has two columns named {twice!r}")


def columns_of(table: Any) -> list[tuple[str, Any]]:  # Any: of pandas, polars or pyarrow
    """Return the columns of a table with their names, which may be the same; none of an array."""
    if not hasattr(table, "columns"):
        return []
    if hasattr(table, "iter_columns"):
        return [(column.name, column) for column in table.iter_columns()]
    if hasattr(table, "column_names"):
        return list(zip(table.column_names, table.columns, strict=True))
    return [(str(name), column) for name, column in getattr(table, "items", list)()]


def _column(name: str, values: Any, column: str | None, accepted: str) -> NDArray[Any]:
    said = name if column is None else f"{name}, column {column!r},"
    kind = getattr(values, "dtype", getattr(values, "type", None))
    kind = getattr(getattr(kind, "categories", None), "dtype", kind)  # pandas' categories
    refuse_kind(said, str(kind), accepted)
    try:
        array = np.asarray(values)
    except Exception as error:  # of any library, such as polars for 128 bits
        if not hasattr(values, "to_list"):
            raise InputError(f"{said} cannot be read as an array: {error}") from error
        array = np.array(values.to_list(), dtype=object)
    refuse_kind(said, array.dtype.str if array.dtype.kind == "S" else str(array.dtype), accepted)
    if array.ndim == 0:
        return array
    if array.dtype.kind == "O":
        array = _of_objects(said, array, accepted)
    if accepted == NUMBERS and array.dtype.kind in "OU":
        return _from_text(said, array)
    if accepted == LABELS and array.dtype.kind == "f" and (abs(array) >= 2.0**63).any():
        beyond = array[abs(array) >= 2.0**63].flat[0]
        raise InputError(f"{said} holds {beyond:g}; accepted: {accepted}, of 64 bits at most")
    if accepted == GROUPS and array.dtype.kind in "fmM":
        _check_all_there(said, np.flatnonzero(array != array), array, accepted)
    return array


def _of_objects(said: str, array: NDArray[Any], accepted: str) -> NDArray[Any]:
    """Return Python's objects as an array of their kind."""
    flat = array.ravel().tolist()
    missing = [k for k, v in enumerate(flat) if type(v).__name__ in MISSING_TYPES or _is_nan(v)]
    if accepted != NUMBERS:
        _check_all_there(said, missing, array, accepted)
    absent = set(missing)
    present = {type(v).__name__: type(v) for k, v in enumerate(flat) if k not in absent}
    for found in present:
        refuse_kind(said, found.lower(), accepted)
    if not present or all(issubclass(t, str) for t in present.values()):
        return array
    if all(issubclass(t, bool | np.bool_) for t in present.values()) and not missing:
        return array.astype(bool)
    if all(issubclass(t, int | float | Decimal | np.number | np.bool_) for t in present.values()):
        whole = all(issubclass(t, int | np.integer) for t in present.values())
        whole = whole or (Decimal in present.values() and all(map(_is_whole, flat)))
        return _numbers(said, array, whole and accepted != NUMBERS)
    if accepted == GROUPS and len(present) == 1:
        return array
    mix = " and ".join(sorted(present))
    raise InputError(f"{said} holds {mix}; accepted: {accepted}, of one kind")


def _numbers(said: str, array: NDArray[Any], whole: bool) -> NDArray[Any]:
    if not whole:
        filled = [
            np.nan if type(v).__name__ in MISSING_TYPES else v for v in array.ravel().tolist()
        ]
        return np.array(filled, dtype=np.float64).reshape(array.shape)
    try:
        return array.astype(np.int64)
    except OverflowError:
        largest = max(array.ravel().tolist(), key=abs)
        raise InputError(
            f"{said} holds the whole number {largest}, which takes more than 64 bits; write it as "
            "text"
        ) from None


def _from_text(said: str, array: NDArray[Any]) -> NDArray[np.float64]:
    """Return the numbers that texts hold."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        stray = next((v for v in array.ravel().tolist() if not is_number(v)), None)
        raise InputError(f"{said} holds text, such as {stray!r}; accepted: numbers") from None


def _check_all_there(
    said: str, missing: Sequence[int] | NDArray[Any], array: NDArray[Any], accepted: str
) -> None:
    if len(missing):
        row = int(missing[0]) // (array.size // len(array))
        raise InputError(f"{said} holds no value in row {row}; accepted: {accepted}")


def refuse_kind(said: str, kind: str, accepted: str) -> None:
    """Refuse a type by its name where its values cannot be what is accepted."""
    for what, begins in _MADE_OF:
        if re.match(begins, kind.lower()) and not (accepted == GROUPS and what in _SCALAR):
            raise InputError(
                f"{said} holds {what} ({kind}); accepted: {accepted}{_HINTS.get(what, '')}"
            )


def is_number(text: Any) -> bool:  # Any: a text, a number, or neither
    """Tell whether a text or a value reads as a number."""
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def _is_whole(value: Any) -> bool:  # Any: a number, or none at all
    try:
        return bool(value == int(value))
    except (OverflowError, TypeError, ValueError):
        return False


def _is_nan(value: object) -> bool:
    return isinstance(value, float | Decimal) and value != value
