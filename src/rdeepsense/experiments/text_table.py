"""A table of text, which the terminal, the page and the Markdown file each show in their way."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class TextTable:
    """A table with its caption; `strong` are the cells that stand out, `aside` published rows."""

    title: str
    caption: str
    header: list[str]
    rows: list[list[str]]
    strong: set[tuple[int, int]] = field(default_factory=set)
    aside: set[int] = field(default_factory=set)
