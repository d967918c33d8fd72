"""The report of a reproduction as Markdown, with links to the pictures' PNG files."""

from __future__ import annotations

from collections.abc import Sequence

from rdeepsense.experiments.report.blocks import Banner, Card, Claims, Heading, Section, Text
from rdeepsense.experiments.report.pictures import Picture
from rdeepsense.experiments.text_table import TextTable

# Entities where not every reader of Markdown knows the backslash.
_MARKS = str.maketrans(
    {mark: f"\\{mark}" for mark in "\\`*_[]|#"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
)


def markdown(title: str, opening: str, parts: Sequence[Section]) -> str:
    """Return the whole file."""
    lines = [f"# {plain(title)}", "", plain(opening), ""]
    for part in parts:
        badge = f" ({part.origin} data)" if part.origin else ""
        lines += [f"## {plain(part.title)}{badge}", ""]
        for block in part.blocks:
            if isinstance(block, Banner):
                lines += [f"**{plain(block.word)}** {plain(block.text)}", ""]
                lines += [f"- {plain(one)}" for one in block.points]
            elif isinstance(block, Text):
                lines += [plain(block.text), "", *(f"- {plain(one)}" for one in block.points)]
            elif isinstance(block, Heading):
                lines.append(f"### {plain(block.text)}")
            elif isinstance(block, Picture):
                words = f"{plain(block.title)} ({block.origin} data)"
                lines += [f"**{words}**", "", f"![{words}](figures/{block.name}.png)", "",
                          plain(block.caption)]  # fmt: skip
            elif isinstance(block, Card):
                lines += [f"**{plain(block.task)}** ({block.origin} data): "
                          f"{plain(block.table.title)}", "", *_table(block.table)]  # fmt: skip
            else:
                for table in _tables(block):
                    lines += [f"**{plain(table.title)}**{badge}", "", *_table(table), "",
                              plain(table.caption), ""]  # fmt: skip
            lines.append("")
    text = "\n".join(lines)
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text.rstrip() + "\n"


def _tables(block: TextTable | Claims) -> list[TextTable]:
    return [block.verdicts, block.measurements] if isinstance(block, Claims) else [block]


def _table(table: TextTable) -> list[str]:
    lines = [table.header, ["---", *["---:"] * (len(table.header) - 1)]]
    for number, row in enumerate(table.rows):
        cells = [plain(text) for text in row]
        if number in table.aside:
            cells = [f"*{text}*" for text in cells]
        for column in range(len(cells)):
            if (number, column) in table.strong:
                cells[column] = f"**{cells[column]}**"
        lines.append(cells)
    first, *rest = lines
    return ["| " + " | ".join(row) + " |" for row in ([plain(text) for text in first], *rest)]


def plain(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return " ".join(text.split()).translate(_MARKS)
