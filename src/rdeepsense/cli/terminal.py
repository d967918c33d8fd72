"""Printing on the terminal, and checks of where a command may write."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdeepsense._files import write_whole
from rdeepsense.cli.printable import printable
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from rdeepsense.pages.html import TextTable


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
