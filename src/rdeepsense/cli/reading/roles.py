"""What each column of a table is for: the one place where it is decided.

| role | which columns | used as |
|---|---|---|
| target, group, ignored | those named by options | as their option says |
| number | numbers, yes/no, text that is numbers but for 5 % of its cells | input |
| category | other text | input, as a category |
| id | numbers of rows or recordings, ids, text with fewer than 2.5 rows for each value | left out |
| date | dates and times | left out; inputs of its parts with --datetime |
| empty | no value at all | left out |
| other | lists, structs, durations, bytes; text of which most is numbers | left out |

`--input NAME` makes an input of an id, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rdeepsense.cli.reading.dates import as_dates, date_inputs
from rdeepsense.cli.reading.ids import FEWEST_ROWS, ids_among
from rdeepsense.cli.reading.numbers import Strays, numbers_in

if TYPE_CHECKING:
    import polars as pl


class Role(StrEnum):
    """What a column is for."""

    number = "number"
    category = "category"
    id = "id"
    date = "date"
    empty = "empty"
    other = "other"
    named = "named"  # by --target, --groups or --ignore


# The roles whose columns are given to the model; texts come along as they are.
INPUTS = (Role.number, Role.category)


@dataclass(frozen=True)
class Assigned:
    """The role of a column, and why: said where it is left out."""

    role: Role
    why: str = ""


@dataclass(frozen=True)
class Roles:
    """The columns' roles, and the table with texts that are numbers as numbers."""

    frame: pl.DataFrame
    columns: Mapping[str, Assigned]
    strays: Mapping[str, Strays]
    read_as: Mapping[str, str]  # the texts that are numbers

    @property
    def inputs(self) -> list[str]:
        """The columns that are inputs, in the order of the table."""
        return [name for name, one in self.columns.items() if one.role in INPUTS]

    @property
    def categories(self) -> list[str]:
        """Those of the inputs that are texts."""
        return [name for name, one in self.columns.items() if one.role is Role.category]

    @property
    def left_out(self) -> dict[str, str]:
        """The other columns that no option named, and why."""
        return {
            name: one.why
            for name, one in self.columns.items()
            if one.role not in INPUTS and one.role is not Role.named
        }


def assign(
    frame: pl.DataFrame,
    named: Sequence[str],
    forced: Sequence[str] = (),
    parts: Sequence[str] = (),
    comma_separated: bool = True,
) -> Roles:
    """Give every column its role.

    `named` are columns that options gave one; `forced` those of --input; `parts` of --datetime.
    """
    import polars as pl

    aside, wanted = set(named), set(forced)
    texts = [s.name for s in frame.iter_columns() if s.dtype == pl.String and s.name not in aside]
    found = numbers_in(frame.select(texts), comma_separated) if texts else None
    columns: dict[str, Assigned] = {}
    series = list[pl.Series]()
    for own in frame.iter_columns():
        if own.name in aside:
            columns[own.name] = Assigned(Role.named)
            series.append(own)
        elif found is not None and own.name in found.columns:
            columns[own.name] = Assigned(Role.number)
            series.append(found.columns[own.name])
        else:
            one, more = _of_column(own, parts, found.texts.get(own.name) if found else None)
            if one.role is Role.category and found is not None and own.name in found.mixed:
                one = Assigned(Role.other, f"numbers, but text in {found.mixed[own.name]}")
            elif one.role is Role.category and (names := _names_of_rows(own)):
                one = Assigned(Role.id, names)
            columns[own.name] = one
            columns.update({made.name: Assigned(Role.number) for made in more})
            series += [own, *more]
    table = pl.DataFrame(series)
    _set_ids_aside(table, columns, wanted)
    for name in wanted:
        is_text = table[name].dtype in (pl.String, pl.Categorical, pl.Enum)
        columns[name] = Assigned(Role.category if is_text else Role.number)
    strays = {} if found is None else dict(found.strays)
    return Roles(table, columns, strays, found.read_as if found else {})


def _of_column(
    series: pl.Series, parts: Sequence[str], text: str | None
) -> tuple[Assigned, list[pl.Series]]:
    """Return the role of one column by its values, and the inputs made of its dates.

    `text` is a cell that shows that a column of text was not meant to be one of numbers.
    """
    import polars as pl

    gaps = series.null_count()
    if gaps == len(series) or text == "":
        return Assigned(Role.empty, "no values"), []
    if series.dtype.is_numeric() or series.dtype == pl.Boolean:
        return Assigned(Role.number), []
    example = f"{text if text is not None else str(series.drop_nulls()[0])!r:.60}"
    parsed = as_dates(series, text)
    if parsed is not None:
        made = date_inputs(series.name, parsed, parts) if parts else []
        from rdeepsense.data.dates import moments_of

        moments = moments_of(parsed[0])
        if series.dtype != pl.String:
            example = repr(moments.example())
        why = f"{'dates' if moments.has_days else 'times'}, such as {example}"
        hint = ",".join(moments.varying())
        how = "its parts are inputs" if made else f"--datetime {hint} makes inputs of them"
        return Assigned(Role.date, f"{why}; {how}"), made
    if text is not None or series.dtype in (pl.Categorical, pl.Enum):
        filled, levels = len(series) - gaps, series.n_unique() - bool(gaps)
        if filled >= FEWEST_ROWS and levels == filled:
            return Assigned(Role.id, f"each row its own text, such as {example}"), []
        return Assigned(Role.category, f"text, such as {example}"), []
    return Assigned(Role.other, str(series.dtype).lower()), []


def _names_of_rows(series: pl.Series) -> str | None:
    """Tell whether the texts of a column hardly recur, and so say nothing about new rows."""
    from rdeepsense.data.check_table import ROWS_A_LEVEL

    texts = series.drop_nulls()
    levels = texts.n_unique()
    if len(texts) < FEWEST_ROWS or len(texts) >= ROWS_A_LEVEL * levels:
        return None
    return (
        f"names of rows: {levels:,} texts in {len(texts):,} rows, such as "
        f"{str(texts[0])!r:.60}; --input {series.name} takes them"
    )


def _set_ids_aside(table: pl.DataFrame, columns: dict[str, Assigned], wanted: set[str]) -> None:
    """Take numbers of rows from the inputs, unless they are all that there is."""
    whole = [
        s.name
        for s in table.iter_columns()
        if s.dtype.is_integer() and columns[s.name].role is Role.number and s.name not in wanted
    ]
    ids = ids_among(table, whole)
    others = [n for n, one in columns.items() if one.role is not Role.named and n not in ids]
    if others:
        for name, why in ids.items():
            columns[name] = Assigned(Role.id, f"{why}; --input {name} takes it")
