"""From columns of Arrow to the rows that a model reads: numbers, and codes of levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.batch.known import Known
from rdeepsense.data.parquet import ArrowColumn, ArrowTable, labels, numbers
from rdeepsense.encoding import Category
from rdeepsense.errors import InputError, nearest, require


def input_names(known: Known, columns: Sequence[str], aside: Sequence[str]) -> list[str]:
    """Return the columns that a model reads, in its order; without names, all but those aside."""
    if known.names is None:
        used = [name for name in columns if name not in aside]
        if len(used) != known.inputs:
            raise InputError(
                f"the model was fitted without column names on {known.inputs} columns; "
                f"the files have {len(used)} that could be inputs"
            )
        return used
    there = set(columns)
    for name in known.names:
        if name not in there:
            raise InputError(
                f"the model needs the column {name!r}{nearest(name, columns)}; the files have "
                f"{', '.join(columns)}"
            )
    return list(known.names)


def batches_of(
    file: Any, rows: int, columns: Sequence[str], **options: Any
) -> Iterator[ArrowTable]:
    """Yield tables of some rows of an open Parquet file, decoded in this thread alone."""
    pyarrow = require("pyarrow", "tasks")
    used = list(dict.fromkeys(columns))
    for batch in file.iter_batches(rows, columns=used, use_threads=False, **options):
        yield pyarrow.Table.from_batches([batch])


def rows_of(table: ArrowTable, names: Sequence[str], known: Known) -> NDArray[Any]:
    """Return rows (rows, inputs): float32 where every number is, else float64; nulls are NaN."""
    pyarrow = require("pyarrow", "tasks")
    categories = {} if known.encoding is None else _categories(known)
    columns = [table.column(name) for name in names]
    single = not categories and all(column.type == pyarrow.float32() for column in columns)
    X = np.empty((table.num_rows, len(names)), np.float32 if single else np.float64)
    for k, column in enumerate(columns):
        try:
            X[:, k] = _codes(column, categories[k]) if k in categories else numbers(column)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
            raise InputError(
                f"column {names[k]!r} holds {column.type}; numbers are needed"
            ) from error
    return X


def _categories(known: Known) -> dict[int, Category]:
    assert known.encoding is not None
    return {category.column: category for category in known.encoding.categories}


def _codes(column: ArrowColumn, category: Category) -> NDArray[Any]:
    """Look up each distinct value once."""
    values, codes = labels(column)
    known = category.encode(values.tolist(), f"column {category.column}")
    return np.append(known, np.nan)[codes]
