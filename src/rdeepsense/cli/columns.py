"""The columns of a table: inputs and targets, and checks of their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rdeepsense.cli.terminal import Terminal

LISTED = 20  # columns named one by one before "and N more"


@dataclass(frozen=True)
class InspectedColumns:
    """The columns of a table by what they are good for."""

    rows: int
    inputs: list[str]
    dropped: dict[str, str]  # not numeric, and why
    constant: list[str]
    missing: dict[str, int]  # inputs with missing values

    def report(self, terminal: Terminal, targets: Sequence[str], filled: bool) -> None:
        """Print what was found."""
        terminal.line(f"rows      {self.rows:,}")
        terminal.line(f"inputs    {len(self.inputs)}: {some(self.inputs)}")
        terminal.line(f"target    {some(targets)}")
        if self.dropped:
            why = some([f"{name} ({reason})" for name, reason in self.dropped.items()])
            terminal.line(f"dropped   {len(self.dropped)} not numeric: {why}")
        if self.constant:
            terminal.line(
                f"constant  {len(self.constant)}: {some(self.constant)} (kept; they change nothing)"
            )
        if self.missing:
            counts = some([f"{name} {count:,}" for name, count in self.missing.items()])
            how = ", filled with the column's mean" if filled else ""
            terminal.line(f"missing   {counts}{how}")
        else:
            terminal.line("missing   none")


def some(names: Sequence[str]) -> str:
    """Return the names, or the first ones and how many more there are."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def check_known(frame: pl.DataFrame, names: Sequence[str], option: str) -> None:
    """Refuse a column that the table does not have, or that is named twice."""
    columns = frame.columns  # once: each access makes a new list
    known, seen = set(columns), set[str]()
    for name in names:
        if name not in known:
            raise InputError(
                f"{option} {name!r}: there is no such column; the table has {some(columns)}"
            )
        if name in seen:
            raise InputError(f"{option} {name!r}: is named twice")
        seen.add(name)


def is_numeric(series: pl.Series) -> bool:
    """Tell whether a column holds numbers, or yes/no, which is taken as 1/0."""
    import polars as pl

    return series.dtype.is_numeric() or series.dtype == pl.Boolean


def inspect(frame: pl.DataFrame, not_inputs: Sequence[str]) -> InspectedColumns:
    """Take every other column as an input, if it is numeric."""
    import polars as pl

    inputs, dropped, left = [], {}, set(not_inputs)
    for series in frame.iter_columns():
        name = series.name
        if name in left:
            continue
        if series.null_count() == len(series):
            dropped[name] = "no values"
        elif not is_numeric(series):
            dropped[name] = _kind(series)
        else:
            inputs.append(name)
    if not inputs:
        raise InputError(
            "no numeric column is left as an input; "
            f"not numeric: {some(list(dropped)) or 'none'}; set aside: {some(not_inputs) or 'none'}"
        )
    # All columns in one query: a query costs as much as the table has columns.
    numbers = as_numbers(frame, inputs)
    distinct = numbers.select(pl.all().drop_nulls().n_unique()).row(0)
    gaps = numbers.null_count().row(0)
    constant = [name for name, values in zip(inputs, distinct, strict=True) if values == 1]
    missing = {name: count for name, count in zip(inputs, gaps, strict=True) if count}
    return InspectedColumns(frame.height, inputs, dropped, constant, missing)


def as_numbers(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return columns as floats (float32 stays so), NaN as missing; refuse what is not numeric."""
    import polars as pl

    for name in names:
        if frame[name].null_count() < frame.height and not is_numeric(frame[name]):
            raise InputError(f"column {name!r} holds {_kind(frame[name])}; numbers are needed")
    kinds = {frame[name].dtype for name in names}
    kind = pl.Float32 if kinds == {pl.Float32()} else pl.Float64
    return frame.select(pl.col(names).cast(kind).fill_nan(None))


def inputs_of(frame: pl.DataFrame, names: Sequence[str], missing: str) -> pl.DataFrame:
    """Return the inputs as floats, checked here, where rows still have their place."""
    import polars as pl

    numbers = as_numbers(frame, names)
    _refuse(numbers, pl.all().is_infinite().fill_null(False), "infinity", "")
    if missing == "refuse":
        hint = "; --missing mean, at fit, fills them with the column's mean"
        _refuse(numbers, pl.all().is_null(), "missing values", hint)
    return numbers


def numeric_targets(frame: pl.DataFrame, names: Sequence[str]) -> NDArray[np.float64]:
    """Return the targets of a regression: (rows,) for one, (rows, targets) for several."""
    import polars as pl

    numbers = as_numbers(frame, names).select(pl.all().cast(pl.Float64))
    _refuse(numbers, pl.all().is_infinite().fill_null(False), "infinity", "")
    _refuse(numbers, pl.all().is_null(), "missing values", "; remove these rows")
    return numbers[names[0]].to_numpy() if len(names) == 1 else numbers.to_numpy()


def labels(frame: pl.DataFrame, name: str, option: str = "--target") -> NDArray[np.generic]:
    """Return the classes (or, with --groups, groups) of a column: text, yes/no, whole numbers."""
    import numpy as np
    import polars as pl

    from rdeepsense.data.kinds import GROUPS, LABELS, plain

    series = frame[name]
    if series.dtype.is_float():
        series = series.fill_nan(None)
    _refuse(series.to_frame(), pl.all().is_null(), "missing values", "; remove these rows")
    values = plain(option, series, GROUPS if option == "--groups" else LABELS)
    if values.dtype.kind == "f":
        broken = values[(values != values.round()) | (abs(values) >= 2.0**63)]
        if len(broken):
            raise InputError(
                f"column {name!r} holds {broken[0]:g}; whole numbers, yes/no or text are needed"
            )
        return values.astype("int64")
    if values.dtype.kind == "O":  # not by astype, which would decode bytes
        return np.array([str(value) for value in values.tolist()])
    return values if values.dtype.kind in "biu" else values.astype(str)


def _refuse(frame: pl.DataFrame, bad: pl.Expr, what: str, hint: str) -> None:
    """Raise an error that names the bad columns, counts the bad rows and points at the first."""
    import polars as pl

    flags = frame.select(bad)
    rows = flags.select(pl.any_horizontal(pl.all())).to_series()
    if not rows.any():
        return
    counts = {name: int(flags[name].sum()) for name in flags.columns}
    where = some([f"{name!r} ({count:,})" for name, count in counts.items() if count])
    raise InputError(
        f"{what} in {int(rows.sum()):,} of {frame.height:,} rows, first in row "
        f"{rows.arg_max() or 0} (the first row is 0), in {where}{hint}"
    )


def _kind(series: pl.Series) -> str:
    """Return "text, such as 'north'": an example shows whether it was meant to be a number."""
    import polars as pl

    values = series.drop_nulls()
    if series.dtype == pl.String:
        stray = values.filter(values.cast(pl.Float64, strict=False).is_null())
        return f"text, such as {stray[0] if len(stray) else values[0]!r}"
    return str(series.dtype).lower()
