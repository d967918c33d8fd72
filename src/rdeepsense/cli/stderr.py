"""Lines on stderr: errors, warnings, and what is left of a command that was stopped."""

from __future__ import annotations

import os
import sys

from rdeepsense.cli.printable import printable

RED, YELLOW, PLAIN = "\033[31m", "\033[33m", "\033[0m"


def print_line(word: str, colour: str, text: str) -> None:
    """Print one line on stderr; by hand, because rich may be what is missing."""
    text = printable(text)
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        word, text = f"{colour}{word}", f"{text}{PLAIN}"
    print(f"{word}: {text}", file=sys.stderr)
