"""The record of help texts: `--help` of the command line and of every command."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from typing import Any
from unittest import mock

import typer

from rdeepsense.cli import main
from rdeepsense.cli.app import app


def recorded() -> str:
    """Return the help texts one after the other, 80 columns wide."""
    return "\n".join(
        f"$ {' '.join(['rdeepsense', *command, '--help'])}\n{_help(command)}"
        for command in _commands(typer.main.get_command(app), [])
    )


def _commands(command: Any, path: list[str]) -> Iterator[list[str]]:
    """Return the words of each command, groups before their own."""
    yield path
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        loaded = command.load(name) if hasattr(command, "load") else inner
        yield from _commands(loaded, [*path, name])


def _help(command: list[str]) -> str:
    printed = io.StringIO()
    plain = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    with (
        mock.patch.dict(os.environ, plain),
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),
    ):
        main([*command, "--help"])
    return "".join(f"    {line}".rstrip() + "\n" for line in printed.getvalue().splitlines())
