"""Tables in Excel's files: the first sheet, its first row with a value in it as the names."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING

from rdeepsense.cli.reading.content import check_unpacked
from rdeepsense.cli.reading.dialect import header_names
from rdeepsense.cli.reading.json_rows import column
from rdeepsense.cli.reading.marks import MARKS
from rdeepsense.errors import InputError, require

if TYPE_CHECKING:
    import polars as pl


def read_excel(name: str, data: bytes) -> tuple[pl.DataFrame, list[str]]:
    """Return the table, and which sheet of how many it is; formulas count as their last value."""
    polars = require("polars", "cli")
    openpyxl = require("openpyxl", "tables")
    check_unpacked(name, data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and other things that are no values
            book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
            title, count = book.sheetnames[0], len(book.sheetnames)
            rows = [list(row) for row in book[title].iter_rows(values_only=True)]
    except Exception as error:  # of zip, XML or numbers, whatever is damaged
        raise InputError(f"{name}: cannot be read as Excel: {error}") from error
    filled = [row for row in rows if any(cell is not None for cell in row)]
    if not filled:
        raise InputError(f"{name}: the sheet {title!r} is empty")
    width = max(max(k for k, cell in enumerate(row) if cell is not None) + 1 for row in filled)
    header = ["" if cell is None else str(cell) for cell in filled[0][:width]]
    names = header_names(name, header + [""] * (width - len(header)))
    columns = []
    for place, own in enumerate(names):
        cells = [row[place] if place < len(row) else None for row in filled[1:]]
        columns.append(column(own, [None if cell in MARKS else cell for cell in cells]))
    frame: pl.DataFrame = polars.DataFrame(columns)
    return frame, [f"sheet {title!r}, the first of {count}"] if count > 1 else []
