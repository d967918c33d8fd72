"""The words that stand for values in --help, in place of the names of Python's types."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer.models import ArgumentInfo, OptionInfo

WORDS: dict[object, str] = {bool: "", Path: "FILE", int: "NUMBER", float: "NUMBER", str: "TEXT"}
COLUMNS = ("target", "groups", "ignore", "inputs", "time")


def say_types(command: Callable[..., Any] | None) -> None:
    """Give every argument and option of a command a word, where it has none."""
    assert command is not None
    # Evaluated once and kept: evaluated again, each would be new and without its word.
    hints = get_type_hints(command, include_extras=True)
    for name, hint in hints.items():
        kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        for info in notes:
            if isinstance(info, ArgumentInfo) and info.metavar is None:
                info.metavar = name.upper()
            elif isinstance(info, OptionInfo) and info.metavar is None:
                info.metavar = "COLUMN" if name in COLUMNS else _word(kind)
    command.__annotations__ = hints


def _word(kind: object) -> str:
    """Return the word of a type, of a list of it, or of it or None."""
    if kind in WORDS:
        return WORDS[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(member.value) for member in kind)
    return next((_word(own) for own in get_args(kind) if own is not type(None)), "TEXT")
