"""The terminal: lines, tables, errors, Ctrl-C, pipes, and files of predictions."""

from __future__ import annotations

import functools
import glob
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from rdeepsense._files import write_whole
from rdeepsense.errors import InputError, RDeepSenseError

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from rdeepsense.pages.html import TextTable


# --------------------------------------------------------------------------------------------------
# Text without control characters
#
# Names of columns and classes come from files of anybody. An escape sequence among them could clear
# the screen, set its title, or write to the clipboard; controls of direction could hide text.
# --------------------------------------------------------------------------------------------------

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Return text with control characters written out, such as \\x1b; lines and tabs stay."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


# --------------------------------------------------------------------------------------------------
# Lines on stderr: errors, warnings, and results of a stopped command
# --------------------------------------------------------------------------------------------------

RED, YELLOW, PLAIN = "\033[31m", "\033[33m", "\033[0m"


def print_line(word: str, colour: str, text: str) -> None:
    """Print one line on stderr; by hand, because rich may be what is missing."""
    text = printable(text)
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        word, text = f"{colour}{word}", f"{text}{PLAIN}"
    print(f"{word}: {text}", file=sys.stderr)


# --------------------------------------------------------------------------------------------------
# Errors of the library in terms of the command line
# --------------------------------------------------------------------------------------------------

# What stands after `dtype=` in a message: a quoted text, a pair, a number or nothing.
_VALUE = r"""('[^']*'|"[^"]*"|\([^)]*\)|[\w.+-]*)"""


@contextmanager
def in_options(options: Mapping[str, str]) -> Iterator[None]:
    """Translate arguments in errors raised inside: `dtype='int8'` becomes `--dtype int8`.

    `options` gives the option of each argument, such as {"dtype": "--dtype"}.
    """
    try:
        yield
    except RDeepSenseError as error:
        raise type(error)(translated(str(error), options)) from error


def translated(message: str, options: Mapping[str, str]) -> str:
    """Say each argument in a message as its option."""

    def option(found: re.Match[str]) -> str:
        name, value = options[found[1]], found[2]
        if value in ("", "True") or value.startswith("("):
            return name
        plain = value[1:-1] if value[0] in "'\"" else value
        return f"{name} {plain if plain and ' ' not in plain else value}"

    names = "|".join(map(re.escape, options))
    return re.sub(rf"\b({names}) ?= ?{_VALUE}", option, message)


# --------------------------------------------------------------------------------------------------
# A stdout whose reader may close it, as in `rdeepsense ... | head`
# --------------------------------------------------------------------------------------------------

BROKEN_PIPE = 141  # 128 and the number of SIGPIPE, as shells have it


class BrokenPipeSafeOutput:
    """A stream that forgets what nobody reads any more, so that the work goes on to its end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.broken = False

    def write(self, text: str) -> int:
        """Write, or forget."""
        try:
            return len(text) if self.broken else self._stream.write(text)
        except BrokenPipeError:
            self.broken = True
            return len(text)

    def flush(self) -> None:
        """Flush, or forget."""
        try:
            if not self.broken:
                self._stream.flush()
        except BrokenPipeError:
            self.broken = True

    def __getattr__(self, name: str) -> Any:  # Any: whatever a stream has
        return getattr(self._stream, name)


def silence_stdout() -> None:
    """Send what Python has still in its buffers to nowhere, where it cannot fail."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):  # a stream without a file, as tests have it
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


# --------------------------------------------------------------------------------------------------
# Ctrl-C in a long command: one line, and exit code 130
# --------------------------------------------------------------------------------------------------

INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


@contextmanager
def stoppable(kept: Callable[[], str]) -> Iterator[None]:
    """Exit, where Ctrl-C ends the block, with what `kept` says is there then."""
    try:
        yield
    except KeyboardInterrupt:
        stop(kept())


def stop(kept: str) -> NoReturn:
    """Exit as one whom Ctrl-C stopped."""
    import typer  # late: a core install has no typer, and must be able to say so

    print_line("interrupted", YELLOW, kept)
    raise typer.Exit(INTERRUPTED) from None


def finished_cells(out: Path) -> str:
    """Say what a run of cells leaves behind."""
    count = sum(1 for _ in (out / "cells").glob("*.json"))
    if not count:
        return "no cell was finished; the same command begins again"
    cells = "1 finished cell is" if count == 1 else f"{count:,} finished cells are"
    return f"{cells} kept in {out / 'cells'}; the same command goes on from there"


def kept_state(checkpoint: Path | None) -> str:
    """Say from where a fit would go on."""
    if checkpoint is None:
        return "the same command begins again; with --checkpoint FILE it would go on"
    if not any(checkpoint.parent.glob(f"{glob.escape(checkpoint.name)}*")):
        return "the same command begins again"
    return f"the same command goes on from {checkpoint}"


# --------------------------------------------------------------------------------------------------
# A local web server for a folder, until Ctrl-C
# --------------------------------------------------------------------------------------------------

HOST = "127.0.0.1"  # browsers give sensors to pages of this machine as to https ones


class _Quiet(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript",
        ".wasm": "application/wasm",
        ".webmanifest": "application/manifest+json",
    }

    def log_message(self, *_: object) -> None:
        pass


def server_of(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of static files; port 0 takes any that is free."""
    handler = functools.partial(_Quiet, directory=str(folder))
    try:
        return ThreadingHTTPServer((HOST, port), handler)
    except OSError as error:
        raise InputError(
            f"--port {port}: cannot be served at ({error.strerror}); give another, or 0 for any"
        ) from error


# --------------------------------------------------------------------------------------------------
# Output on the terminal, and checks of output paths
# --------------------------------------------------------------------------------------------------

STDOUT = Path("-")


class Terminal:
    """Lines and tables on stdout, or on stderr where stdout is for data; silent when asked."""

    def __init__(self, quiet: bool = False, *outputs: Path | None) -> None:
        from rich.console import Console

        # No markup: a column named "temp [C]" must come out as it is.
        self._console = Console(
            markup=False, highlight=False, quiet=quiet, stderr=STDOUT in outputs
        )

    def line(self, text: str = "") -> None:
        """Print one line; never wrapped, so that a path can be copied from it."""
        self._console.print(printable(text), soft_wrap=True)

    def table(self, table: Table) -> None:
        """Print a table, no wider than the terminal; without blanks at the ends where piped."""
        if self._console.is_terminal:
            self._console.print(table)
            return
        with self._console.capture() as captured:
            self._console.print(table)
        lines = [line.rstrip() for line in captured.get().splitlines()]
        self._console.print("\n".join(lines), soft_wrap=True)


def new_table(title: str, columns: list[str], caption: str | None = None) -> Table:
    """Return a rich table in the style of this command line: names left, numbers right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    class PrintableTable(Table):
        def add_row(self, *cells: Any, **how: Any) -> None:  # Any: what rich takes
            shown = [
                Text(printable(one.plain), one.style)
                if isinstance(one, Text)
                else printable(str(one))
                for one in cells
            ]
            super().add_row(*shown, **how)

    table = PrintableTable(
        title=printable(title),
        caption=None if caption is None else printable(caption),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
        title_style="bold",
        caption_style="dim",
    )
    for number, column in enumerate(columns):
        table.add_column(printable(column), justify="right" if number else "left", overflow="fold")
    return table


def rich_table(table: TextTable) -> Table:
    """Return a table of text: bold cells stand out, rows aside are dim."""
    from rich.text import Text

    shown = new_table(table.title, table.header, table.caption)
    for number, row in enumerate(table.rows):
        style = "dim italic" if number in table.aside else ""
        cells = [
            Text(text, style="bold" if (number, column) in table.strong else style)
            for column, text in enumerate(row)
        ]
        shown.add_row(*cells)
    return shown


def check_outputs(
    outputs: dict[str, Path | None],
    inputs: tuple[Path, ...] = (),
    overwrite: bool = True,
    stream: str = "--json",
) -> None:
    """Refuse, before any work is done, files that could not be written or would destroy input.

    Without `overwrite` so are those that are there; devices and pipes may be. Only the option named
    by `stream` may be stdout ("-").
    """
    for option, path in outputs.items():
        if path == STDOUT and option != stream:
            raise InputError(f"{option} -: cannot be stdout; give the name of a file")
        if path is None or path == STDOUT:
            continue
        real = Path(os.path.realpath(path))
        if path.is_dir():
            raise InputError(f"{option} {path}: is a folder; give the name of a file")
        if real.is_symlink():
            raise InputError(f"{option} {path}: is a link that leads to itself")
        if path.exists() and not path.is_file():  # a device or a pipe, which has no folder
            continue
        folder = real.parent if path.is_symlink() else path.parent
        if not folder.is_dir():
            raise InputError(f"{option} {path}: there is no folder {folder}; create it first")
        if not os.access(folder, os.W_OK):
            raise InputError(f"{option} {path}: the folder {folder} cannot be written to")
        if any(real == Path(os.path.realpath(other)) for other in inputs):
            raise InputError(f"{option} {path}: would overwrite the input; give another name")
        if path.exists() and not overwrite:
            raise InputError(f"{option} {path}: is there already; --overwrite replaces it")
    given = {
        o: os.path.realpath(path)
        for o, path in outputs.items()
        if path is not None and path != STDOUT
    }
    if len(set(given.values())) < len(given):
        raise InputError(f"{' and '.join(given)} must be different files")


def pictures(plot: Path | None) -> dict[str, Path | None]:
    """Return the files of --plot, for `check_outputs`."""
    if plot is None:
        return {}
    return {f"--plot ({end})": Path(f"{plot}.{end}") for end in ("png", "svg")}


def make_folder(out: Path) -> None:
    """Make the folder of --out, or say why it cannot be written to."""
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out}: is a file; give a folder")
    out.mkdir(parents=True, exist_ok=True)
    if not os.access(out, os.W_OK):
        raise InputError(f"--out {out}: the folder cannot be written to")


def write_json(path: Path, content: dict[str, object]) -> None:
    """Write readable JSON, whole or not at all; to stdout for "-"."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if path == STDOUT:
        sys.stdout.write(text)
    else:
        write_whole(path, text)


# --------------------------------------------------------------------------------------------------
# Output tables: CSV, TSV or Parquet by file name, or CSV on stdout
# --------------------------------------------------------------------------------------------------

PIECE = 65_536
WRITABLE = (".csv", ".tsv", ".parquet")


def write_table(path: Path, frame: pl.DataFrame, header: bool = True) -> None:
    """Write CSV, TSV or Parquet, by the name's ending, whole or not at all; CSV to "-".

    Without `header` a CSV has no line of names.
    """
    buffer = io.BytesIO()
    if path.suffix.lower() == ".parquet":
        frame.write_parquet(buffer)
    else:
        separator = "\t" if path.suffix.lower() == ".tsv" else ","
        frame.write_csv(buffer, separator=separator, include_header=header)
    if path == STDOUT:
        # In pieces: not every system tells of a reader that goes away during one long write.
        text = buffer.getvalue().decode()
        for begin in range(0, len(text), PIECE):
            sys.stdout.write(text[begin : begin + PIECE])
    else:
        write_whole(path, buffer.getvalue())


def check_suffix(path: Path) -> None:
    """Refuse names from whose ending the format is not clear."""
    if path != STDOUT and path.suffix.lower() not in WRITABLE:
        raise InputError(
            f"{path}: the name must end in one of {', '.join(WRITABLE)}, or be - for CSV on stdout"
        )
