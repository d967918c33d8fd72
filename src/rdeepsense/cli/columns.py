"""The columns of a table: inputs, targets, the task, and checks of their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from rdeepsense.cli.reading.columns import Strays, assign, read_with
from rdeepsense.errors import InputError, nearest

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rdeepsense.cli.terminal import Terminal


# --------------------------------------------------------------------------------------------------
# The target column, and whether it contains classes
# --------------------------------------------------------------------------------------------------


class TaskKind(StrEnum):
    """Ways to take the targets."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


def check_roles(
    targets: list[str], groups: str | None, ignore: list[str], forced: Sequence[str] = ()
) -> None:
    """Refuse a column that is to be two things."""
    left, own = set(ignore), set(targets)
    for name in targets:
        if name == groups:
            raise InputError(f"column {name!r} cannot be both --target and --groups")
        if name in left:
            raise InputError(f"column {name!r} cannot be both --target and --ignore")
    for name in forced:
        for option, taken in (("--target", own), ("--groups", {groups}), ("--ignore", left)):
            if name in taken:
                raise InputError(f"column {name!r} cannot be both {option} and --input")


def decide(task: TaskKind, kinds: dict[str, str]) -> tuple[bool, str]:
    """Decide whether the targets are classes, and say why."""
    if task is TaskKind.classification and len(kinds) > 1:
        raise InputError(f"classification has one target; --target names {len(kinds)}")
    if task is not TaskKind.auto:
        return task is TaskKind.classification, f"--task {task.value}"
    for name, kind in kinds.items():
        if kind == "numbers":
            continue
        if len(kinds) > 1:
            raise InputError(f"with several targets all must be numbers; {name!r} is not")
        what = kind if kind == "yes/no" else "not numeric"
        return True, f"{name} is {what}, so its values are classes"
    are = f"{next(iter(kinds))} is" if len(kinds) == 1 else "the targets are"
    hint = "; --task classification takes its values as classes" if len(kinds) == 1 else ""
    return False, f"{are} numeric{hint}"


# --------------------------------------------------------------------------------------------------
# Input and target columns, with checks of their values
# --------------------------------------------------------------------------------------------------

LISTED = 20  # columns named one by one before "and N more"


@dataclass(frozen=True)
class InspectedColumns:
    """The columns of a table by what they are good for, and the table with inputs as numbers."""

    rows: int
    inputs: list[str]
    left_out: dict[str, str]  # and why
    constant: list[str]
    missing: dict[str, int]  # inputs with missing values
    strays: Mapping[str, Strays]  # cells of inputs that are no numbers
    said: Sequence[str]
    frame: pl.DataFrame
    categories: list[str] = field(default_factory=list)  # inputs that are texts
    left_out_late: Mapping[str, str] = field(default_factory=dict)  # by the check of the data

    def without(self, why: Mapping[str, str]) -> InspectedColumns:
        """Return the columns with some of the inputs left out, and why."""
        return replace(
            self,
            inputs=[name for name in self.inputs if name not in why],
            left_out={**self.left_out, **why},
            constant=[name for name in self.constant if name not in why],
            missing={name: count for name, count in self.missing.items() if name not in why},
            strays={name: one for name, one in self.strays.items() if name not in why},
            categories=[name for name in self.categories if name not in why],
            left_out_late=dict(why),
        )

    def report(self, terminal: Terminal, targets: Sequence[str], holes: str = "") -> None:
        """Print what was found; `holes` is what becomes of missing inputs."""
        report_assumed(terminal, self.said)
        terminal.line(f"rows      {self.rows:,}")
        terminal.line(f"inputs    {len(self.inputs)}: {some(self.inputs)}")
        if self.categories:
            terminal.line(f"category  {len(self.categories)}: {some(self.categories)}")
        terminal.line(f"target    {some(targets)}")
        report_left_out(terminal, self.left_out)
        report_strays(terminal, self.strays)
        if self.constant:
            terminal.line(
                f"constant  {len(self.constant)}: {some(self.constant)} (kept; they change nothing)"
            )
        if self.missing:
            counts = some([f"{name} {count:,}" for name, count in self.missing.items()])
            terminal.line(f"missing   {counts}{holes and f', {holes}'}")
        else:
            terminal.line("missing   none")


def report_assumed(terminal: Terminal, said: Sequence[str]) -> None:
    """Print in one line what had to be assumed to read the table."""
    if said:
        terminal.line(f"assumed   {'; '.join(said)}")


def report_left_out(terminal: Terminal, left_out: Mapping[str, str]) -> None:
    """Name the columns that are no inputs though nobody said so, each with the reason."""
    shown = list(left_out.items())[:LISTED]
    for place, (name, why) in enumerate(shown):
        terminal.line(f"{'left out' if place == 0 else '':10}{name}: {why}")
    if more := list(left_out)[LISTED:]:
        terminal.line(f"{'':10}and {len(more):,} more: {some(more)}")


def report_strays(terminal: Terminal, strays: Mapping[str, Strays]) -> None:
    """Name the cells of numeric columns that are taken as missing."""
    for name, one in list(strays.items())[:LISTED]:
        terminal.line(f"no number {name}: {one} (the first row is 0); treated as missing")
    if len(strays) > LISTED:
        terminal.line(f"no number in {len(strays) - LISTED} more columns; --json lists them")


def some(names: Sequence[str]) -> str:
    """Return the names, or the first ones and how many more there are."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def plural(count: int, noun: str) -> str:
    """Return "1 column" or "3 columns"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def report_extra(terminal: Terminal, extra: Sequence[str]) -> None:
    """Name the columns that the model does not read, if any."""
    if extra:
        terminal.line(f"{plural(len(extra), 'column')} not used: {some(extra)}")


def check_known(frame: pl.DataFrame, names: Sequence[str], option: str) -> None:
    """Refuse a column that the table does not have, or that is named twice."""
    columns = frame.columns  # once: each access makes a new list
    known, seen = set(columns), set[str]()
    for name in names:
        if name not in known:
            raise InputError(
                f"{option} {name!r}: there is no such column{nearest(name, columns)}; "
                f"the table has {some(columns)}"
            )
        if name in seen:
            raise InputError(f"{option} {name!r}: is named twice")
        seen.add(name)


def is_numeric(series: pl.Series) -> bool:
    """Tell whether a column holds numbers, or yes/no, which is taken as 1/0."""
    import polars as pl

    return series.dtype.is_numeric() or series.dtype == pl.Boolean


def kind_of(series: pl.Series) -> str:
    """Return what a target holds: numbers, yes/no, or what is not numeric."""
    import polars as pl

    if series.dtype == pl.Boolean:
        return "yes/no"
    return "numbers" if is_numeric(series) else "not numeric"


def inspect(
    frame: pl.DataFrame,
    not_inputs: Sequence[str],
    forced: Sequence[str] = (),
    parts: Sequence[str] = (),
    comma_separated: bool = True,
    said: Sequence[str] = (),
    read_as: Mapping[str, str] | None = None,
) -> InspectedColumns:
    """Take every other column as an input whose role is that of one.

    `said` is what was assumed before, of the file, and `read_as` how targets were read.
    """
    import polars as pl

    roles = assign(frame, not_inputs, forced, parts, comma_separated)
    inputs = roles.inputs
    if not inputs:
        reasons = [f"{name} ({why})" for name, why in roles.left_out.items()]
        raise InputError(
            "no column is left as an input; "
            f"left out: {some(reasons) or 'none'}; set aside: {some(not_inputs) or 'none'}"
        )
    # All columns in one query: a query costs as much as the table has columns.
    numbers = inputs_of(roles.frame, inputs, "mean", roles.categories, finite=False)
    distinct = numbers.select(pl.all().drop_nulls().n_unique()).row(0)
    gaps = numbers.null_count().row(0)
    constant = [name for name, values in zip(inputs, distinct, strict=True) if values == 1]
    missing = {name: count for name, count in zip(inputs, gaps, strict=True) if count}
    return InspectedColumns(
        frame.height,
        inputs,
        roles.left_out,
        constant,
        missing,
        roles.strays,
        [*said, *read_with({**(read_as or {}), **roles.read_as})],
        roles.frame,
        roles.categories,
    )


def as_numbers(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return columns as floats (float32 stays so), NaN as missing; refuse what is not numeric."""
    import polars as pl

    for name in names:
        if frame[name].null_count() < frame.height and not is_numeric(frame[name]):
            raise InputError(f"column {name!r} holds {_kind(frame[name])}; numbers are needed")
    kinds = {frame[name].dtype for name in names}
    kind = pl.Float32 if kinds == {pl.Float32()} else pl.Float64
    return frame.select(pl.col(names).cast(kind).fill_nan(None))


def inputs_of(
    frame: pl.DataFrame,
    names: Sequence[str],
    missing: str,
    categories: Sequence[str] = (),
    finite: bool = True,
) -> pl.DataFrame:
    """Return the inputs as floats, checked here, where rows still have their place.

    Those named in `categories` stay texts.
    """
    import polars as pl

    texts = set(categories)
    numbers = as_numbers(frame, [name for name in names if name not in texts])
    if finite:
        _refuse(numbers, pl.all().is_infinite().fill_null(False), "infinity", "")
    if missing == "refuse":
        hint = "; --missing auto, at fit, learns from them"
        _refuse(numbers, pl.all().is_null(), "missing values", hint)
    if not texts:
        return numbers
    words = frame.select(pl.col(list(categories)).cast(pl.String))
    return pl.concat([numbers, words] if numbers.width else [words], how="horizontal").select(names)


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

    from rdeepsense.data.columns import GROUPS, LABELS, as_numpy

    series = frame[name]
    if series.dtype.is_float():
        series = series.fill_nan(None)
    _refuse(series.to_frame(), pl.all().is_null(), "missing values", "; remove these rows")
    values = as_numpy(option, series, GROUPS if option == "--groups" else LABELS)
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
