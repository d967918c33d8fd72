"""Records in text files: comparing one with the present behavior, and writing it anew."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "records"
LONGEST = 400  # lines of a difference that are shown


def path_of(name: str) -> Path:
    """Return the file of a record."""
    return FOLDER / f"{name}.txt"


def difference(name: str, found: str) -> str:
    """Return the lines that differ from the record as a unified diff, empty where none does."""
    path = path_of(name)
    recorded = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    lines = list(
        difflib.unified_diff(recorded, found.splitlines(), "recorded", "now", n=2, lineterm="")
    )
    for number, line in enumerate(lines):
        if begin := re.match(r"@@ -(\d+)", line):
            lines[number] = f"{line} {_block(recorded[: int(begin[1])])}"
    if len(lines) > LONGEST:
        lines = [*lines[:LONGEST], f"and {len(lines) - LONGEST} more lines"]
    return "\n".join(lines)


def _block(lines: list[str]) -> str:
    """Return the last line that is not indented, which says what the lines after it are of."""
    return next((line for line in reversed(lines) if line[:1].strip()), "")


def write(name: str, text: str) -> str:
    """Write a record anew; return what changed in a few words."""
    path = path_of(name)
    before = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    changes = [line[:1] for line in difflib.unified_diff(before, text.splitlines(), n=0)][2:]
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return f"{changes.count('+')} lines added, {changes.count('-')} removed"
