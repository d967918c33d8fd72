"""What the columns of a table are: numbers, dates, times, identifiers, roles."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rdeepsense.cli.reading.text import without_marks
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rdeepsense.data.columns import Moments


# --------------------------------------------------------------------------------------------------
# Numbers in text columns: decimal commas, thousands separators, invalid cells
# --------------------------------------------------------------------------------------------------

MOST_STRAY = 0.05  # of the cells that are not empty
NAMED = 3  # stray cells that are named with row and value
POINT, COMMA, THOUSANDS = "decimal points", "decimal commas", "commas between thousands"
SPACES = "[\u00a0\u202f']"  # between thousands, in France and in Switzerland
WITH_COMMA = r"^[+-]?(\d{1,3}(\.\d{3})+|\d*)(,\d*)?([eE][+-]?\d+)?$"
WITH_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$"


@dataclass(frozen=True)
class Strays:
    """The cells of a column of numbers that are none."""

    cells: int
    filled: int  # cells that are not empty
    first: tuple[tuple[int, str], ...]  # row and value

    def __str__(self) -> str:
        named = ", ".join(f"row {row} {value!r:.40}" for row, value in self.first)
        more = f" and {self.cells - len(self.first):,} more" if self.cells > len(self.first) else ""
        return f"{self.cells:,} of {self.filled:,} cells: {named}{more}"


@dataclass(frozen=True)
class NumbersInText:
    """The columns of text that are numbers, how each was read, its stray cells; the others."""

    columns: dict[str, pl.Series]
    read_as: dict[str, str]
    strays: dict[str, Strays]
    texts: dict[str, str]  # of each other column a cell that is no number
    mixed: dict[str, Strays]  # those of the others that are numbers for the most part


def numbers_in(
    texts: pl.DataFrame, comma_separated: bool, most: float = MOST_STRAY
) -> NumbersInText:
    """Find the columns in which at most a share `most` of the filled cells is no number.

    Each column is read with decimal points, decimal commas (1.234,5) and commas between thousands
    (1,234.5); the reading that leaves the fewest strays counts. Where 1,234 could be both, it is
    1234 in a table whose columns commas separate, and 1.234 in others.
    """
    names, rows = texts.columns, texts.height
    # One long column: a query costs as much as the table has columns.
    clean = _clean(texts)
    filled = clean.is_not_null().to_numpy().reshape(-1, rows)
    best = [_Read(POINT, *_cast(clean, POINT, rows, range(len(names))))] * len(names)
    places = list(range(len(names)))
    for way in (THOUSANDS, COMMA) if comma_separated else (COMMA, THOUSANDS):
        left = [k for k in places if best[k].found(k) < filled[k].sum()]
        if not left:
            break
        other = _Read(way, *_cast(clean, way, rows, left))
        for k in left:
            best[k] = other if other.found(k) > best[k].found(k) else best[k]
    columns, read_as, strays, others, mixed = {}, {}, {}, {}, {}
    for k, (name, read) in enumerate(zip(names, best, strict=True)):
        bad = (filled[k] & ~read.numeric[read.place[k]]).nonzero()[0]
        total = int(filled[k].sum())
        first = tuple((int(row), str(clean[k * rows + int(row)])) for row in bad[:NAMED])
        if len(bad) == total or len(bad) > most * total:
            others[name] = first[0][1] if total else ""
            if 2 * len(bad) < total:
                mixed[name] = Strays(len(bad), total, first)
            continue
        columns[name], read_as[name] = read.column(k, rows).alias(name), read.way
        if len(bad):
            strays[name] = Strays(len(bad), total, first)
    return NumbersInText(columns, read_as, strays, others, mixed)


@dataclass(frozen=True)
class _Read:
    """Some columns, one after the other, read in one way."""

    way: str
    values: pl.Series
    numeric: NDArray[np.bool_]  # (columns, rows)
    place: dict[int, int]  # of a column among them

    def found(self, column: int) -> int:
        return int(self.numeric[self.place[column]].sum())

    def column(self, column: int, rows: int) -> pl.Series:
        return self.values.slice(self.place[column] * rows, rows)


def _clean(texts: pl.DataFrame) -> pl.Series:
    """Return all cells, column after column, with nothing where there is no value."""
    import polars as pl

    cells = pl.concat([series.alias("") for series in texts.iter_columns()], rechunk=True)
    own = pl.col("")
    return (
        without_marks(cells.to_frame())
        .select(own.str.replace("^\u2212", "-").str.replace_all(SPACES, ""))
        .to_series()
    )


def _cast(
    clean: pl.Series, way: str, rows: int, columns: Sequence[int]
) -> tuple[pl.Series, NDArray[np.bool_], dict[int, int]]:
    """Read some columns; a cell that is no number in this way of reading becomes nothing."""
    import polars as pl

    cells = pl.concat([clean.slice(k * rows, rows) for k in columns], rechunk=True)
    own = pl.col("")
    if way == COMMA:
        plain = own.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        reading = pl.when(own.str.contains(WITH_COMMA)).then(plain).otherwise(None)
    elif way == THOUSANDS:
        plain = own.str.replace_all(",", "", literal=True)
        reading = pl.when(own.str.contains(WITH_THOUSANDS)).then(plain).otherwise(own)
    else:
        reading = own
    values = cells.to_frame().select(reading.cast(pl.Float64, strict=False).alias("")).to_series()
    numeric = values.is_not_null().to_numpy().reshape(-1, rows)
    return values, numeric, {k: place for place, k in enumerate(columns)}


def read_with(read_as: Mapping[str, str]) -> list[str]:
    """Say which columns had another sign than a decimal point, where any had."""
    said = []
    for way in dict.fromkeys(read_as.values()):
        if way != POINT:
            names = [name for name, own in read_as.items() if own == way]
            example = "'1,5' is 1.5" if way == COMMA else "'1,234' is 1234"
            some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            said.append(f"{way} ({example}) in {some}")
    return said


# --------------------------------------------------------------------------------------------------
# Dates and times in text columns, and inputs from them
#
# Texts with an offset, such as +02:00, are converted to UTC, as columns with a time zone are.
# --------------------------------------------------------------------------------------------------

LOOKS_LIKE = re.compile(r"\d{1,4}[-/.]\w{1,3}[-/.]\d{2,4}|\d{1,2}:\d{2}")
DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%d-%b-%Y")
HOURS = ("", " %H:%M", " %H:%M:%S%.f")
CLOCKS = ("%H:%M", "%H:%M:%S%.f")
NANOSECONDS = 60_000_000_000  # of a minute
OFFSET = r"(\d:\d{2}.*?)\s*(Z|[+-]\d{2}:?\d{2})$"


def parse_parts(asked: str | None) -> list[str]:
    """Read --datetime hour,weekday."""
    from rdeepsense.data.columns import checked_parts

    return list(checked_parts(asked, "--datetime"))


def source_of(name: str) -> str | None:
    """Return the column of dates that an input of this name is made from; None of another name."""
    from rdeepsense.data import columns as dates

    return dates.source_of(name)


def as_dates(series: pl.Series, text: str | None = None) -> tuple[pl.Series, str] | None:
    """Return the dates or times of a column, and why they are not certain: "" where they are.

    None where it holds something else: text of which more than 5 % is no date. `text` is one of
    its cells, where that is known already. Offsets of texts are applied: the result is in UTC.
    """
    import polars as pl

    if series.dtype.is_temporal():
        return (series, "") if series.dtype != pl.Duration else None
    if series.dtype != pl.String:
        return None
    filled = len(series) - series.null_count()
    shown = text if text is not None or not filled else series.drop_nulls()[0]
    if not shown or not LOOKS_LIKE.match(shown.strip()):
        return None
    texts = series.str.strip_chars()
    offsets = texts.str.extract(OFFSET, 2)
    texts = texts.str.replace(OFFSET, "$1").str.replace(r"^(\S*\d)T(\d)", "$1 $2")
    enough = math.ceil((1 - MOST_STRAY) * filled)
    for form in CLOCKS:
        found = texts.str.to_time(form, strict=False)
        if len(found) - found.null_count() >= enough:
            return _in_utc(found, offsets)
    fitting = {}
    for form in (day + hour for day in DAYS for hour in HOURS):
        found = texts.str.to_datetime(form, strict=False)
        if len(found) - found.null_count() >= enough:
            fitting[form.partition(" ")[0]] = found
    if not fitting:
        return None
    dates = next(iter(fitting.values()))
    either = {"%m/%d/%Y", "%d/%m/%Y"} <= set(fitting)
    if either and not fitting["%m/%d/%Y"].equals(fitting["%d/%m/%Y"]):
        first = dates.drop_nulls()[0]
        return dates, f"{first:%m/%d/%Y} could be day or month first; write dates as 2024-12-31"
    return _in_utc(dates, offsets)


def _in_utc(found: pl.Series, offsets: pl.Series) -> tuple[pl.Series, str]:
    """Apply the offsets that texts had; some with and some without are not certain."""
    import polars as pl

    if offsets.null_count() == len(offsets):
        return found, ""
    if (found.is_not_null() & offsets.is_null()).any():
        from rdeepsense.data.columns import ZONES

        return found, ZONES
    digits = offsets.str.replace("Z", "+00:00", literal=True).str.replace(":", "", literal=True)
    minutes = digits.str.slice(1, 2).cast(pl.Int64) * 60 + digits.str.slice(3, 2).cast(pl.Int64)
    sign = digits.str.starts_with("-").cast(pl.Int64) * 2 - 1
    if found.dtype == pl.Time:
        moved = (found.cast(pl.Int64) + sign * minutes * NANOSECONDS) % (1440 * NANOSECONDS)
        return moved.cast(pl.Time), ""
    return found + (sign * minutes * 60_000_000).cast(pl.Duration("us")), ""


def date_inputs(
    name: str, parsed: tuple[pl.Series, str], parts: Sequence[str], known: bool = False
) -> list[pl.Series]:
    """Return the numbers of a column of dates, called `name (hour sin)` and so on.

    A column of times has hours alone, one without a time of day no hours, unless a model is
    `known` to take them.
    """
    import polars as pl

    moments = certain(name, parsed)
    usable = [part for part in parts if part in moments.parts or (known and moments.has_days)]
    made = moments.inputs(name, usable)
    return [pl.Series(said, values).fill_nan(None) for said, values in made.items()]


def certain(name: str, parsed: tuple[pl.Series, str]) -> Moments:
    """Return dates that are certain; refuse others."""
    series, doubt = parsed
    if doubt:
        raise InputError(f"column {name!r}: {doubt}")
    from rdeepsense.data.columns import moments_of

    return moments_of(series)


def with_dates(frame: pl.DataFrame, names: Sequence[str]) -> tuple[pl.DataFrame, list[str]]:
    """Return the table with those of the named inputs that are parts of its dates, and their dates.

    `time (hour sin)` is made from the column `time`, where the table does not have it itself.
    """
    from rdeepsense.data.columns import part_of

    known, parts = set(frame.columns), dict[str, list[str]]()
    for name in names:
        made = part_of(name)
        if made and name not in known and made[0] in known:
            parts.setdefault(made[0], []).append(made[1])
    columns = []
    for source, asked in parts.items():
        parsed = as_dates(frame[source])
        if parsed is None:
            raise InputError(f"column {source!r} holds no dates; the model needs their {asked[0]}")
        columns += date_inputs(source, parsed, list(dict.fromkeys(asked)), known=True)
    return (frame.with_columns(columns) if columns else frame), list(parts)


# --------------------------------------------------------------------------------------------------
# A time column that orders rows
# --------------------------------------------------------------------------------------------------


def in_order(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the rows in the order of a column of times; rows of one time stay as they were."""
    import polars as pl

    places = pl.DataFrame({"time": times_of(frame, name)}).with_row_index("row")
    return frame[places.sort("time", maintain_order=True)["row"]]


def times_of(frame: pl.DataFrame, name: str) -> pl.Series:
    """Return a column of numbers, dates or times of day as what can be put in order.

    A cell without a time is refused: its row has no place.
    """
    import polars as pl

    series = frame[name]
    if series.dtype.is_float():
        series = series.fill_nan(None)
    if not series.dtype.is_numeric() and series.null_count() < len(series):
        parsed = as_dates(series)
        if parsed is None and series.dtype != pl.Duration:
            shown = series.drop_nulls()[0]
            raise InputError(f"--time {name!r} holds {shown!r:.60}: neither a number nor a time")
        if parsed is not None and parsed[1]:
            from rdeepsense.data.columns import ZONES

            if parsed[1] == ZONES:
                raise InputError(f"--time {name!r}: {ZONES}")
            raise InputError(
                f"--time {name!r}: in {frame[name].drop_nulls()[0]!r} day or month could be first; "
                "write dates as 2024-12-31"
            )
        series = series if parsed is None else parsed[0]
    if holes := series.null_count():
        row = series.is_null().arg_max() or 0
        raise InputError(
            f"--time {name!r} has no time in {holes:,} of {len(series):,} rows, first in row {row} "
            f"(the first row is 0), which holds {frame[name][row]!r:.60}"
        )
    return series


def moments_of(frame: pl.DataFrame, name: str) -> pl.Series:
    """Return a column of times, called as it is, as numbers or dates; durations are in seconds."""
    import polars as pl

    series = times_of(frame, name)
    if series.dtype == pl.Duration:
        series = series.dt.total_microseconds() / 1e6
    elif series.dtype == pl.Time:
        series = series.cast(pl.Int64) / 1e9
    elif series.dtype == pl.Date:
        series = series.cast(pl.Datetime)
    return series.alias(name)


# --------------------------------------------------------------------------------------------------
# Identifier columns: they carry no information about new rows
# --------------------------------------------------------------------------------------------------

FEWEST_ROWS = 10  # of fewer, any column may be in order by chance
NAMED_AS_ID = re.compile(
    r"(.*[\W_])?(id|idx|index|uuid|guid|row|nr)[\W_]*|unnamed.*|__index_level_\d+__", re.IGNORECASE
)
RECORDINGS = re.compile(
    r"(.*[\W_])?(recordings?|sessions?|segments?|experiments?|trials?|episodes?|sequences?)[\W_]*",
    re.IGNORECASE,
)
CASED = re.compile(r".*[a-z](Id|ID)")  # userId, but not "humid"


def is_named_id(name: str) -> bool:
    """Tell whether a name, such as "id", "row", "user_id" or "Unnamed: 0", is that of an id."""
    return bool(NAMED_AS_ID.fullmatch(name.strip()) or CASED.fullmatch(name.strip()))


def ids_among(frame: pl.DataFrame, names: Sequence[str]) -> dict[str, str]:
    """Return which of these columns number the rows, and why one thinks so.

    Whole numbers without gaps in the column, each there once: in order, or called id or index. Or
    each in one run of rows, and called recording, session or the like.
    """
    found = dict[str, str]()
    if frame.height < FEWEST_ROWS:
        return found
    for name in names:
        if frame[name].null_count():
            continue
        values = frame[name].to_numpy()
        if (values[1:] > values[:-1]).all() or (values[1:] < values[:-1]).all():
            found[name] = "whole numbers in order, each once: numbers of rows, or times"
        elif is_named_id(name) and frame[name].n_unique() == frame.height:
            found[name] = "whole numbers, each once: an id"
        elif RECORDINGS.fullmatch(name.strip()):
            runs, distinct = 1 + int((values[1:] != values[:-1]).sum()), frame[name].n_unique()
            if runs == distinct > 1:
                found[name] = "whole numbers in runs: numbers of recordings"
    return found


# --------------------------------------------------------------------------------------------------
# Roles of columns, decided here only
#
# | role | which columns | used as | |---|---|---| | target, group, ignored | those named by options
# | as their option says | | number | numbers, yes/no, text that is numbers but for 5 % of its cells
# | input | | category | other text | input, as a category | | id | numbers of rows or recordings,
# ids, text with fewer than 2.5 rows for each value | left out | | date | dates and times | left
# out; inputs of its parts with --datetime | | empty | no value at all | left out | | other | lists,
# structs, durations, bytes; text of which most is numbers | left out |
#
# `--input NAME` makes an input of an id, too.
# --------------------------------------------------------------------------------------------------


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
        from rdeepsense.data.columns import moments_of

        moments = moments_of(parsed[0])
        if series.dtype != pl.String:
            example = repr(moments.example())
        why = f"{'dates' if moments.has_days else 'times'}, such as {example}"
        hint = ",".join(moments.varying())
        how = "its parts are inputs" if made else f"add --datetime {hint} to use them"
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
