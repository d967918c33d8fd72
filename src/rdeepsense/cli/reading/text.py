"""Delimited text: encoding, separator, header, marks of missing values."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rdeepsense.errors import InputError, require

if TYPE_CHECKING:
    import polars as pl


# --------------------------------------------------------------------------------------------------
# Conversion of text from any encoding to UTF-8
# --------------------------------------------------------------------------------------------------

PROBE = 65_536  # bytes that tell text from other things
CHUNK = 1 << 20
MARKED = {  # by the mark at the beginning; that of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF8: "UTF-8",
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
HALF = 0.4  # of the bytes of ASCII in UTF-16 without a mark, about half are 0, all odd or all even


def as_utf8(name: str, data: bytes) -> tuple[bytes, str | None]:
    """Return the text in UTF-8 without a mark, and what was assumed of its encoding."""
    for mark, encoding in MARKED.items():
        if data.startswith(mark):
            if encoding == "UTF-8":
                return data[len(mark) :], None
            return _decoded(name, data, encoding), encoding
    start = data[:PROBE]
    if (unmarked := _unmarked_utf16(start)) is not None:
        return _decoded(name, data, unmarked), unmarked
    if NO_TEXT.search(start):
        raise InputError(
            f"{name}: is not a table: neither text nor Parquet, Arrow, Excel or JSON lines"
        )
    place = _first_not_utf8(data)
    if place is None:
        return data, None
    encoding = "Windows-1252" if re.search(rb"[\x80-\x9f]", data) else "Latin-1"
    text = _decoded(name, data, encoding)
    around = data[max(0, place - 40) : place + 40].decode(encoding, errors="replace")
    word = next((w for w in re.findall(r"\w+", around) if not w.isascii()), "")
    example = f", so that a word is {word!r}" if word else ""
    return text, f"{encoding}, as it is not UTF-8{example}"


def _decoded(name: str, data: bytes, encoding: str) -> bytes:
    try:
        return data.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeError as error:
        raise InputError(f"{name}: is not text in {encoding}: {error}") from error


def _first_not_utf8(data: bytes) -> int | None:
    """Return where the first byte is that UTF-8 does not have; in pieces, without a copy."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for begin in range(0, len(data), CHUNK):
        try:
            decoder.decode(data[begin : begin + CHUNK], begin + CHUNK >= len(data))
        except UnicodeDecodeError as error:
            return begin + error.start
    return None


def _unmarked_utf16(start: bytes) -> str | None:
    even, odd = start[::2].count(0), start[1::2].count(0)
    most = HALF * len(start)
    if odd > most and not even:
        return "UTF-16-LE"
    return "UTF-16-BE" if even > most and not odd else None


# --------------------------------------------------------------------------------------------------
# Cells that mark missing values
# --------------------------------------------------------------------------------------------------

MARKS = (
    *("", "NA", "N/A", "n/a", "na", "NaN", "nan", "NAN", "null", "NULL", "Null", "None", "<NA>"),
    *("NaT", "?", "-", "--", "#N/A", "#NA", "#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "1.#QNAN"),
)


def without_marks(texts: pl.DataFrame) -> pl.DataFrame:
    """Return columns of text, without space around, with nothing where a mark was."""
    import polars as pl

    stripped = texts.select(pl.all().str.strip_chars())
    every = pl.all()
    return stripped.select(pl.when(every.is_in(MARKS)).then(None).otherwise(every).name.keep())


def without_sentinels(frame: pl.DataFrame, sentinels: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """Return a table with nothing where a value of --missing-mark was, and how many there were.

    A number, such as -999, is found as a number: -999.0 is one too.
    """
    import polars as pl
    from polars import selectors

    if not sentinels:
        return frame, 0
    for mark in sentinels:
        if not mark.strip():
            raise InputError("--missing-mark '': an empty cell is missing already")
    before = sum(frame.null_count().row(0))
    numbers = [float(mark) for mark in sentinels if _is_number(mark)]
    numeric, text = selectors.numeric(), selectors.string()
    found = frame.with_columns(
        pl.when(numeric.cast(pl.Float64).is_in(numbers)).then(None).otherwise(numeric).name.keep(),
        pl.when(text.is_in(list(sentinels))).then(None).otherwise(text).name.keep(),
    )
    return found, sum(found.null_count().row(0)) - before


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# --------------------------------------------------------------------------------------------------
# Header, separator and column names of a text file
# --------------------------------------------------------------------------------------------------

SEPARATORS = ("\t", ";", "|", ",")  # where two divide the lines as well, the first
NAMES = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas"}
PROBED_LINES = 30
DIALECT_PROBE = 1 << 20


@dataclass(frozen=True)
class Dialect:
    """A text from its header on, its separator, its columns' names, and what was assumed."""

    data: bytes
    separator: str
    names: list[str]
    skipped: int  # lines before the header
    said: tuple[str, ...] = ()


def dialect_of(name: str, data: bytes) -> Dialect:
    """Find out how a text in UTF-8 is divided."""
    if b"\n" not in data[:DIALECT_PROBE] and b"\r" in data[:DIALECT_PROBE]:
        data = data.replace(b"\r", b"\n")
    data, skipped, separator, said = _without_preamble(data)
    if not data or data.isspace():
        raise InputError(f"{name}: is empty")
    start = data[:DIALECT_PROBE].decode(errors="replace")
    lines = start.splitlines()[:PROBED_LINES]
    if separator is None:
        separator = _separator(lines)
        if separator is None:
            separator, spaced = ",", _from_spaces(data, lines)
            if spaced is not None:
                data, separator = spaced, ";"
                start = data[:DIALECT_PROBE].decode(errors="replace")
                said.append("columns separated by spaces")
    try:  # of the text, not of its first line: names in quotes may have more than one
        header = next(csv.reader(io.StringIO(start, newline=""), delimiter=separator), [])
    except csv.Error as error:
        raise InputError(f"{name}: the header cannot be read as CSV: {error}") from error
    return Dialect(data, separator, header_names(name, header), skipped, tuple(said))


def _without_preamble(data: bytes) -> tuple[bytes, int, str | None, list[str]]:
    """Take off empty lines, a line `sep=;` and comments; a # before the names themselves stays."""
    begin, skipped, comments, separator = 0, 0, 0, None
    while begin < len(data):
        end = data.find(b"\n", begin)
        end = len(data) if end < 0 else end
        line = data[begin:end].strip()
        if match := re.fullmatch(rb'"?sep=(.)"?', line, re.IGNORECASE):
            separator = match[1].decode(errors="replace")
        elif line.startswith(b"#"):
            following = data[end + 1 : end + DIALECT_PROBE].partition(b"\n")[0].strip()
            names = line.lstrip(b"# ")
            if _is_header(names.decode(errors="replace"), following.decode(errors="replace")):
                return names + data[end:], skipped, separator, _said(comments)
            comments += 1
        elif line:
            break
        begin, skipped = end + 1, skipped + 1
    # Not copied where there is nothing to take off: the table may be large.
    return (data[begin:] if begin else data), skipped, separator, _said(comments)


def _said(comments: int) -> list[str]:
    if not comments:
        return []
    return [
        f"{comments} lines of comments skipped" if comments > 1 else "a line of comments skipped"
    ]


def _is_header(names: str, row: str) -> bool:
    """Tell whether a comment names the columns of the line of numbers that follows it."""
    for separator in (*SEPARATORS, None):
        cells = row.split(separator)
        if len(cells) > 1:
            return len(names.split(separator)) == len(cells) and all(map(is_number, cells))
    return False


def _separator(lines: list[str]) -> str | None:
    """Return what divides most lines into as many fields as the first one has."""
    best, found = (0.0, 0), None
    for separator in SEPARATORS:
        try:
            rows = [row for row in csv.reader(lines, delimiter=separator) if row]
        except csv.Error:
            continue
        width = len(rows[0])
        if width < 2:
            continue
        alike = sum(len(row) == width for row in rows) / len(rows)
        if (alike, width) > best:
            best, found = (alike, width), separator
    return found


def _from_spaces(data: bytes, lines: list[str]) -> bytes | None:
    """Return lines of numbers divided by spaces with semicolons in place of them."""
    rows = [line.split() for line in lines if line.strip()]
    widths = Counter(map(len, rows))
    if len(widths) != 1 or len(rows[0]) < 2 or '"' in "".join(lines):
        return None
    cells = [cell for row in rows[1:] for cell in row]
    if sum(map(is_number, cells)) < len(cells) / 2 or b";" in data:
        return None
    return b"\n".join(re.sub(rb"[ \t]+", b";", line.strip()) for line in data.split(b"\n"))


def header_names(name: str, header: list[str]) -> list[str]:
    """Return the columns' names: on one line, and numbered where there is none."""
    from rdeepsense.data.parquet import first_repeated

    names = [" ".join(text.split()) for text in header]
    if names and all(is_number(text) for text in names):
        raise InputError(f"{name}: the first row holds numbers; it must hold the columns' names")
    for place, text in enumerate(names):
        if not text:
            names[place] = f"unnamed_{place + 1}"
    if (twice := first_repeated(names)) is not None:
        places = [str(k + 1) for k, text in enumerate(names) if text == twice]
        raise InputError(
            f"{name}: has two columns named {twice!r} ({' and '.join(places)}); name them apart"
        )
    return names


def is_number(text: str) -> bool:
    """Tell whether a text is a number, with a decimal point or comma."""
    try:
        float(text.replace(",", ".", 1))
    except ValueError:
        return False
    return True


# --------------------------------------------------------------------------------------------------
# Reading of delimited text
# --------------------------------------------------------------------------------------------------


def read_delimited(
    name: str, data: bytes, texts: Sequence[str] = ()
) -> tuple[pl.DataFrame, list[str], str]:
    """Return the table, what was assumed, and the separator.

    Columns named in `texts` stay as they are written: 007 is no number then.
    """
    polars = require("polars", "cli")
    text, encoding = as_utf8(name, data)
    found = dialect_of(name, text)
    try:
        frame: pl.DataFrame = polars.read_csv(
            found.data,
            separator=found.separator,
            null_values=list(MARKS),
            infer_schema_length=None,  # a column's type must not depend on its first rows alone
        )
    except (polars.exceptions.PolarsError, csv.Error) as error:
        if "fields" in str(error):
            _check_widths(name, found)  # names the line, which polars does not
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"{name}: cannot be read as CSV: {reason}") from error
    if frame.width == len(found.names):
        frame.columns = found.names
    for column in [k for k, own in enumerate(found.names) if own in texts]:
        own = polars.read_csv(
            found.data,
            separator=found.separator,
            null_values=list(MARKS),
            infer_schema_length=0,
            columns=[column],
        )
        frame = frame.with_columns(own.to_series().alias(found.names[column]))
    # A short row leaves its last column empty, so only then is it worth looking line by line.
    if frame.height and frame[:, -1].null_count():
        _check_widths(name, found)
        empty = frame.select(polars.all_horizontal(polars.all().is_null())).to_series()
        while frame.height and empty[frame.height - 1]:  # blank lines at the end
            frame = frame.head(frame.height - 1)
    frame = frame.with_columns(polars.selectors.string().str.strip_chars())
    return frame, assumed(found, encoding), found.separator


def assumed(found: Dialect, encoding: str | None) -> list[str]:
    """Say what was assumed of a text: its encoding, its separator, and what was skipped."""
    said = [encoding] if encoding else []
    if found.separator not in (",", "\t") and "columns separated by spaces" not in found.said:
        said.append(f"columns separated by {NAMES.get(found.separator, repr(found.separator))}")
    return [*said, *found.said]


def _check_widths(name: str, found: Dialect) -> None:
    """Refuse rows of another length than the header: polars fills up those that are too short."""
    wanted = len(found.names)
    lines = io.StringIO(found.data.decode(errors="replace"), newline="")
    rows = csv.reader(lines, delimiter=found.separator)
    try:
        for row in rows:
            if row and len(row) != wanted:
                line, hint = rows.line_num + found.skipped, ""
                if found.separator == "," and len(row) == 2 * wanted:
                    hint = "; numbers with decimal commas need another separator, such as ;"
                elif wanted == 1:
                    hint = "; the header must be the first line, but for comments that begin with #"
                raise InputError(
                    f"{name}: line {line} has {len(row)} fields, the header has {wanted}{hint}"
                )
    except csv.Error as error:
        line = rows.line_num + found.skipped
        raise InputError(f"{name}: line {line}: {error}") from error
