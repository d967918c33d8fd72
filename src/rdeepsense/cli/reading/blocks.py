"""CSV that is larger than memory, read in blocks of whole lines.

The beginning of the file decides how it is divided, as it does for a table in memory, and every
block is read by those rules. What only the whole file could decide, such as another encoding or
decimal commas, is not guessed at: `NotInBlocksError` says so, and the table has to be read whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdeepsense.cli.reading.columns import POINT, Strays, numbers_in
from rdeepsense.cli.reading.content import PACKED, kind_of
from rdeepsense.cli.reading.text import DIALECT_PROBE as PROBE
from rdeepsense.cli.reading.text import MARKS, as_utf8, assumed, dialect_of, without_sentinels
from rdeepsense.errors import InputError, RDeepSenseError, require

if TYPE_CHECKING:
    import polars as pl

END, QUOTE = b"\n", b'"'
NO_CSV = "it is packed, or no CSV"
UNLIKE = "a line is not like the header"


class NotInBlocksError(RDeepSenseError):
    """A table that has to be read whole, and why."""


def look_at(path: Path) -> tuple[bool, int]:
    """Tell whether a file is Parquet, else CSV, and about how many rows it has.

    It takes no library to see this; rows of Parquet are guessed to have 50 bytes.
    """
    with path.open("rb") as file:
        head = file.read(PROBE)
    if head.startswith(b"PAR1"):
        return True, path.stat().st_size // 50
    if any(head.startswith(magic) for magic in PACKED) or kind_of(str(path), head) != "CSV":
        raise NotInBlocksError(NO_CSV)
    return False, path.stat().st_size * head.count(END) // len(head)


@dataclass(frozen=True)
class Block:
    """The columns of some rows: inputs as floats, other texts as they are.

    `strays` says of every column of numbers how many cells are filled, and which are no numbers;
    `marked` is how many cells held a further mark of missing values.
    """

    frame: pl.DataFrame
    strays: dict[str, Strays]
    marked: int


@dataclass(frozen=True)
class BlockedCsv:
    """A CSV file and how it is divided."""

    path: Path
    start: int  # the byte at which rows begin
    separator: str
    names: list[str]
    kinds: dict[str, Any]  # of each column, by the first rows
    said: list[str]
    row_bytes: float  # of the first rows, on average

    @classmethod
    def open(cls, path: Path) -> BlockedCsv:
        """Look at the beginning of a file; anything unusual about it is `NotInBlocksError`."""
        with path.open("rb") as file:
            head = file.read(PROBE)
        try:
            return cls._of_head(path, head)
        except InputError as error:  # which may be for want of the rest
            raise NotInBlocksError(str(error)) from error

    @classmethod
    def _of_head(cls, path: Path, head: bytes) -> BlockedCsv:
        whole = head[: head.rfind(END) + 1]
        text, encoding = as_utf8(str(path), whole)
        if encoding is not None or END not in text:
            raise NotInBlocksError("it is not UTF-8 with lines")
        found = dialect_of(str(path), text)
        header, _, rows = found.data.partition(END)
        if not text.endswith(found.data) or header.count(QUOTE) % 2 or len(found.names) < 2:
            raise NotInBlocksError("its header is unusual")
        polars = require("polars", "cli")
        try:
            frame = polars.read_csv(
                found.data,
                separator=found.separator,
                null_values=list(MARKS),
                infer_schema_length=None,
            )
        except polars.exceptions.PolarsError as error:
            raise NotInBlocksError(UNLIKE) from error
        if frame.width != len(found.names) or not frame.height:
            raise NotInBlocksError("its header is unusual")
        kinds = dict(zip(found.names, frame.dtypes, strict=True))
        start = len(whole) - len(rows)
        row = len(rows) / frame.height
        return cls(path, start, found.separator, found.names, kinds, assumed(found, None), row)

    @property
    def rows(self) -> int:
        """How many rows there are, about."""
        return int((self.path.stat().st_size - self.start) / self.row_bytes)

    def blocks(self, size: int) -> Iterator[bytes]:
        """Yield whole lines, about so many bytes at a time; no empty ones at the end."""
        with self.path.open("rb") as file:
            file.seek(self.start)
            rest, held = b"", b""
            while piece := file.read(size):
                piece = rest + piece
                cut = _last_end(piece)
                rest = piece[cut:]
                if cut:
                    if held:
                        yield held
                    held = piece[:cut]
            held += rest
            if held.strip():
                yield held.rstrip(b"\r\n") + END

    def read(
        self, block: bytes, numbers: Sequence[str], texts: Sequence[str], sentinels: Sequence[str]
    ) -> Block:
        """Read some columns of a block: numbers as floats, texts without space around."""
        _check_utf8(block)
        used = [*numbers, *texts]
        # A short row is known by a last column that lacks its value.
        last = self.names[-1] if self.names[-1] not in used else None
        strays: dict[str, Strays] = {}
        polars = require("polars", "cli")
        try:
            frame = self._parsed(block, numbers, [*used, *([last] if last else [])])
        except polars.exceptions.PolarsError as error:
            if "could not parse" not in str(error):
                raise NotInBlocksError(UNLIKE) from error
            frame = self._parsed(block, (), [*used, *([last] if last else [])])
            frame, strays = self._with_numbers(frame, numbers)
        if frame[self.names[-1]].null_count() and not self._is_even(block, frame.height):
            raise NotInBlocksError(UNLIKE)
        frame = frame.select(used).with_columns(polars.selectors.string().str.strip_chars())
        gaps = dict(zip(used, frame.null_count().row(0), strict=True))
        for name in numbers:
            if name not in strays:
                strays[name] = Strays(0, frame.height - gaps[name], ())
        frame, marked = without_sentinels(frame, sentinels)
        return Block(frame, strays, marked)

    def _is_even(self, block: bytes, rows: int) -> bool:
        """Tell whether every line has as many separators as the header, where none is quoted."""
        wanted = rows * (len(self.names) - 1)
        return QUOTE not in block and block.count(self.separator.encode()) == wanted

    def _parsed(self, block: bytes, numbers: Sequence[str], used: Sequence[str]) -> pl.DataFrame:
        polars = require("polars", "cli")
        floats = set(numbers)
        schema = {
            f"column_{k + 1}": polars.Float64 if name in floats else polars.String
            for k, name in enumerate(self.names)
        }
        place = {name: f"column_{k + 1}" for k, name in enumerate(self.names)}
        frame: pl.DataFrame = polars.read_csv(
            block,
            has_header=False,
            schema=schema,
            columns=[place[name] for name in used],
            separator=self.separator,
            null_values=list(MARKS),
        )
        return frame.select(polars.col(place[name]).alias(name) for name in used)

    def _with_numbers(
        self, frame: pl.DataFrame, numbers: Sequence[str]
    ) -> tuple[pl.DataFrame, dict[str, Strays]]:
        """Read texts as numbers with decimal points; cells that are none are missing."""
        polars = require("polars", "cli")
        found = numbers_in(frame.select(numbers), self.separator == ",", most=1.0)
        empty = [name for name, text in found.texts.items() if text == ""]
        read = {*found.columns, *empty}
        if any(way != POINT for way in found.read_as.values()) or read != set(numbers):
            raise NotInBlocksError("its numbers are not written with decimal points")
        gaps = [polars.lit(None).cast(polars.Float64).alias(name) for name in empty]
        return frame.with_columns(*found.columns.values(), *gaps), found.strays


def _last_end(piece: bytes) -> int:
    """Return the place after the last line that ends outside of quotes; 0 where none does."""
    cut = piece.rfind(END) + 1
    quotes = piece.count(QUOTE, 0, cut)
    while cut and quotes % 2:
        before = piece.rfind(END, 0, cut - 1) + 1
        quotes -= piece.count(QUOTE, before, cut)
        cut = before
    return cut


def _check_utf8(block: bytes) -> None:
    if block.isascii():
        return
    try:
        block.decode()
    except UnicodeDecodeError as error:
        raise NotInBlocksError("it is not UTF-8") from error
