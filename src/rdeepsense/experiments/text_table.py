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

    def only(self, title: str, caption: str, columns: list[str]) -> TextTable:
        """Return the table with the first column and these alone."""
        kept = [0, *(place for place, name in enumerate(self.header) if name in columns)]
        strong = {(row, kept.index(column)) for row, column in self.strong if column in kept}
        rows = [[row[place] for place in kept] for row in self.rows]
        return TextTable(
            title, "", [self.header[place] for place in kept], rows, strong, self.aside
        )
