"""Ctrl-C in a command that takes long: one line says what is kept, and the exit code is 130."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer

from rdeepsense.cli.stderr import YELLOW, print_line

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
