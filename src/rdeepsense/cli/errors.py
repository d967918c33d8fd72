"""Errors of the library in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rdeepsense.errors import RDeepSenseError

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
