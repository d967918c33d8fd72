"""Columns of a table as numpy has them: of pandas, polars, pyarrow, or a dictionary of arrays.

None of these libraries is imported. Texts come as numbers of their distinct values, because ten
million objects of Python would take more memory than the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.errors import InputError, nearest
from rdeepsense.precision import needs_double

Table = Any  # of pandas, polars or pyarrow, or a mapping of names to arrays
LISTED = 20
SOME = 1 << 20  # values that tell what a column is like
LARGEST = float(np.finfo(np.float32).max)
Codes = NDArray[np.int32]
ABSENT = -1  # the code of a value that is missing


def names_of(table: Table) -> list[str]:
    """Return the names of a table's columns."""
    if type(table).__name__ == "LazyFrame":
        raise InputError("table is a LazyFrame, which holds no rows yet; call collect() on it")
    names = getattr(table, "column_names", None)
    if names is None:
        names = getattr(table, "columns", None)
    if names is None:
        if not hasattr(table, "keys"):
            raise InputError(
                f"table is a {type(table).__name__}; accepted: a table of pandas, polars or "
                "pyarrow, or a dictionary of arrays"
            )
        names = table.keys()
    return [str(name) for name in names]


def check_columns(table: Table, argument: str, wanted: Sequence[str]) -> None:
    """Refuse a column that the table does not have."""
    names = names_of(table)
    for name in wanted:
        if name not in names:
            more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
            raise InputError(
                f"{argument}: there is no column {name!r}{nearest(name, names)}; the table has "
                f"{', '.join(names[:LISTED])}{more}"
            )


def check_lengths(table: Table, names: Sequence[str], rows: int, time: str) -> None:
    """Refuse columns of another length than the time's, which a dictionary may have."""
    for name in names:
        if (own := len(table[name])) != rows:
            raise InputError(f"column {name!r} has {own:,} values, and {time!r} has {rows:,}")


def values_of(table: Table, name: str) -> NDArray[Any]:
    """Return a column as an array, without a copy where the library allows that."""
    column = table[name]
    if hasattr(column, "combine_chunks"):
        array = np.asarray(_in_one(column).to_numpy(zero_copy_only=False))
    elif hasattr(column, "to_numpy"):
        array = np.asarray(column.to_numpy())
    else:
        array = np.asarray(column)
    if array.ndim != 1:
        raise InputError(f"column {name!r} has the shape {array.shape}; accepted: one value a row")
    return array


def numbers_of(table: Table, name: str) -> NDArray[Any]:
    """Return a column of numbers, in the type that it has; what is missing is NaN."""
    array = values_of(table, name)
    if array.dtype.kind in "iuf":
        return array
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    try:
        if array.dtype.kind != "O":
            raise TypeError
        return np.array([np.nan if v is None else v for v in array.tolist()], dtype=np.float64)
    except (TypeError, ValueError):
        kind = "text" if array.dtype.kind in "OUT" else str(array.dtype)
        raise InputError(f"column {name!r} holds {kind}; numbers are needed") from None


def need_double(columns: Mapping[str, NDArray[Any]]) -> list[str]:
    """Return the names of columns of numbers that float32 does not tell apart, or cannot hold."""
    found = []
    for name, values in columns.items():
        if values.dtype.itemsize <= np.dtype(np.float32).itemsize and values.dtype.kind == "f":
            continue
        some = values[:: -(-len(values) // SOME) if len(values) else 1].astype(np.float64)
        some = some[np.isfinite(some)]
        if len(some):
            size = np.abs(some).max()
            if size > LARGEST or needs_double(some.mean(), some.std()):
                found.append(name)
    return found


def coded(table: Table, name: str) -> tuple[Codes, NDArray[Any]]:
    """Return the number of each row's value, -1 where it is missing, and the distinct values."""
    column = table[name]
    if hasattr(column, "combine_chunks"):
        return _of_arrow(_in_one(column))
    if type(column).__module__.partition(".")[0] == "polars" and hasattr(column, "to_physical"):
        column = column.to_arrow()
        if type(column).__module__.partition(".")[0] == "pyarrow":
            return _of_arrow(column)
    if hasattr(column, "factorize"):  # pandas
        codes, distinct = column.factorize(sort=True)
        return np.asarray(codes, np.int32), _plain(np.asarray(distinct))
    return _of_array(values_of(table, name))


def _in_one(column: Any) -> Any:  # Any: pyarrow ships no types
    """Return a chunked column in one piece; one that is, without a copy."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _of_arrow(column: Any) -> tuple[Codes, NDArray[Any]]:  # Any: pyarrow ships no types
    if not column.null_count and str(column.type).startswith(("int", "uint", "float", "double")):
        return _of_array(column.to_numpy())  # runs take less memory than a dictionary
    if not hasattr(column, "dictionary"):
        column = column.dictionary_encode()
    codes = column.indices.fill_null(ABSENT).to_numpy(zero_copy_only=False).astype(np.int32)
    distinct = _plain(np.array(column.dictionary.to_pylist()))
    return _ordered(codes, distinct)


def _of_array(array: NDArray[Any]) -> tuple[Codes, NDArray[Any]]:
    """Code the first value of each run: a log has few runs and many rows."""
    if not len(array):
        return np.zeros(0, np.int32), array
    heads = np.flatnonzero(np.r_[True, array[1:] != array[:-1]])
    runs = array[heads]
    if runs.dtype.kind == "O":
        absent = np.array([v is None or v != v for v in runs.tolist()])
    else:
        absent = runs != runs
    codes = np.full(len(runs), ABSENT, np.int32)
    distinct, codes[~absent] = np.unique(_plain(runs[~absent]), return_inverse=True)
    return np.repeat(codes, np.diff(np.r_[heads, len(array)])), distinct


def _ordered(codes: Codes, distinct: NDArray[Any]) -> tuple[Codes, NDArray[Any]]:
    """Number the values in their order, so that no number depends on where a log begins."""
    order = np.argsort(distinct, kind="stable")
    place = np.empty(len(order) + 1, np.int32)
    place[order], place[-1] = np.arange(len(order)), ABSENT
    values, kept = distinct[order], place[codes]
    if values.dtype.kind == "f" and len(values) and np.isnan(values[-1]):
        kept[kept == len(values) - 1] = ABSENT
        values = values[:-1]
    return kept, values


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return texts as numpy's own, which compare and sort alike everywhere."""
    if array.dtype.kind != "O":
        return array
    if all(isinstance(value, str) for value in array.tolist()):
        return array.astype(str) if len(array) else np.zeros(0, "U1")
    return np.array(array.tolist())
