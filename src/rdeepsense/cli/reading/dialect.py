"""How a text file is divided: what comes before its header, the separator, the columns' names."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass

from rdeepsense.errors import InputError

SEPARATORS = ("\t", ";", "|", ",")  # where two divide the lines as well, the first
NAMES = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas"}
PROBED_LINES = 30
PROBE = 1 << 20


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
    if b"\n" not in data[:PROBE] and b"\r" in data[:PROBE]:
        data = data.replace(b"\r", b"\n")
    data, skipped, separator, said = _without_preamble(data)
    if not data or data.isspace():
        raise InputError(f"{name}: is empty")
    start = data[:PROBE].decode(errors="replace")
    lines = start.splitlines()[:PROBED_LINES]
    if separator is None:
        separator = _separator(lines)
        if separator is None:
            separator, spaced = ",", _from_spaces(data, lines)
            if spaced is not None:
                data, separator = spaced, ";"
                start = data[:PROBE].decode(errors="replace")
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
            following = data[end + 1 : end + PROBE].partition(b"\n")[0].strip()
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
