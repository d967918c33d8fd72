"""A task as one compact Parquet file, read back exactly as it was.

A column for each input (`x:NAME`) and target (`y:NAME`), one for the groups (`group`), and under
the key `rdeepsense.task` of the file's metadata, as JSON, everything else. The true distribution of
simulated targets cannot be stored, so simulated tasks are not: their seed makes them again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rdeepsense._files import replacing
from rdeepsense.errors import InputError, require
from rdeepsense.experiments.tasks.task import Task

KEY = b"rdeepsense.task"
VERSION = 1
TEXTS = ("name", "unit", "source", "simulated", "grouped_by", "split_by")
TUPLES = ("features", "targets", "classes")
ROW_GROUP = 1 << 18


def write(task: Task, path: Path, row_group: int = ROW_GROUP) -> None:
    """Write a task, whole or not at all."""
    parquet, arrow = require("pyarrow.parquet", "tasks"), require("pyarrow", "tasks")
    if task.truth is not None:
        raise InputError(f"{task.name}: a task with its true distribution cannot be stored")
    y = task.y.reshape(len(task.y), -1)
    names = [f"x:{name}" for name in task.features] + [f"y:{name}" for name in task.targets]
    if len(set(names)) < len(names) or y.shape[1] != len(task.targets):
        raise InputError(f"{task.name}: each input and each target needs a name of its own")
    columns: dict[str, Any] = dict(zip(names, (*task.X.T, *y.T), strict=True))
    if task.groups is not None:
        columns["group"] = task.groups
    about: dict[str, Any] = {"version": VERSION, "flat": task.y.ndim == 1}
    about |= {field: getattr(task, field) for field in TEXTS + TUPLES}
    table = arrow.table(columns).replace_schema_metadata({KEY: json.dumps(about).encode()})
    with replacing(path) as file:
        parquet.write_table(table, file, compression="zstd", row_group_size=row_group)


def read(path: Path) -> Task:
    """Return the task in a file that `write` made."""
    parquet, arrow = require("pyarrow.parquet", "tasks"), require("pyarrow", "tasks")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    try:
        with parquet.ParquetFile(path) as file:
            about = json.loads((file.schema_arrow.metadata or {}).get(KEY, b"{}"))
            if about.get("version") != VERSION:
                raise InputError(
                    f"{path}: is no prepared task of this version; write it with "
                    "`rdeepsense data prepare`"
                )
            return _task(file, about)
    except (arrow.ArrowException, OSError, KeyError) as error:
        raise InputError(f"{path}: cannot be read as a prepared task: {error}") from error


def _task(file: Any, about: dict[str, Any]) -> Task:
    """Fill the arrays one row group at a time, so that the table is never there twice."""
    rows, schema = file.metadata.num_rows, file.schema_arrow
    x = [f"x:{name}" for name in about["features"]]
    y = [f"y:{name}" for name in about["targets"]]
    fields: dict[str, Any] = {field: about[field] for field in TEXTS}
    fields |= {field: tuple(about[field]) for field in TUPLES}
    inputs = np.empty((rows, len(x)), dtype=np.float32)
    targets = np.empty((rows, len(y)), dtype=schema.field(y[0]).type.to_pandas_dtype())
    groups = np.empty(rows, dtype=np.int64) if "group" in schema.names else None
    start = 0
    for number in range(file.num_row_groups):
        part = file.read_row_group(number)
        here = slice(start, start + len(part))
        for names, array in ((x, inputs), (y, targets)):
            for column, name in enumerate(names):
                array[here, column] = part[name].to_numpy()
        if groups is not None:
            groups[here] = part["group"].to_numpy()
        start += len(part)
    return Task(
        X=inputs,
        y=targets[:, 0] if about["flat"] else targets,
        groups=groups,
        **fields,
    )
