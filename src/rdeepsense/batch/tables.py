"""Answers as a table of Arrow, with the columns that identify each row before them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rdeepsense.batch.answers import Answer, Coded
from rdeepsense.data.parquet import ArrowTable
from rdeepsense.errors import InputError, require


def as_table(answer: Answer, ids: dict[str, Any]) -> ArrowTable:
    """Return ids and answers; numbers are null where a row has no answer."""
    pyarrow = require("pyarrow", "tasks")
    for name in ids:
        if name in answer.columns:
            raise InputError(f"id = {name!r} is also the name of a column of answers")
    columns = dict(ids)
    mask = answer.unanswered if answer.unanswered.any() else None
    for name, values in answer.columns.items():
        if isinstance(values, Coded):
            own = mask if values.masked else None
            codes = pyarrow.array(values.codes.astype(np.int32), mask=own)
            texts = pyarrow.array(values.values.tolist())
            columns[name] = pyarrow.DictionaryArray.from_arrays(codes, texts).dictionary_decode()
        else:
            columns[name] = pyarrow.array(np.ascontiguousarray(values), mask=mask)
    return pyarrow.table(columns)
