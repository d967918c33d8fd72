"""Tables and pages as HTML, and numbers as the text of a cell."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

# --------------------------------------------------------------------------------------------------
# Tables of text, for terminal, HTML and Markdown
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Numbers as the text of table cells
# --------------------------------------------------------------------------------------------------

NONE = "–"


def number(value: float | None, error: float | None = None, digits: int = 3) -> str:
    """Return `digits` significant digits, or the decimals that two digits of the error need."""
    if value is None or not math.isfinite(value):
        return NONE
    if error is not None and math.isfinite(error) and error > 0:
        decimals = min(4, max(0, 1 - math.floor(math.log10(error))))
        return f"{value:,.{decimals}f} ± {error:,.{decimals}f}"
    size = math.floor(math.log10(abs(value))) if value else 0
    return f"{value:,.{min(4, max(0, digits - 1 - size))}f}"


def count(value: float | None) -> str:
    """Return a whole number with its thousands apart."""
    return NONE if value is None else f"{value:,.0f}"


def percent(value: float | None) -> str:
    """Return a share as per cent with one decimal, without the sign."""
    return NONE if value is None else f"{100 * value:.1f}"


def area(figures: Mapping[str, float | None], key: str = "deviation_area") -> str:
    """Return a deviation area to four decimals, with its sign where it is the signed one."""
    value, error = figures.get(key), figures.get(f"{key}_se")
    if value is None:
        return NONE
    text = f"{value:{'+' if key.endswith('signed') else ''}.4f}"
    return f"{text} ± {error:.4f}" if error else text


def span(low: float | None, high: float | None) -> str:
    """Return a range of values."""
    if low is None or high is None:
        return NONE
    return f"{plain_number(low)} to {plain_number(high)}"


def plain_number(value: float | None) -> str:
    """Return five significant digits, without zeros at the end."""
    return NONE if value is None else f"{value:,.5g}"


def choices(chosen: Mapping[str, object] | None) -> str:
    """Return a method's choices in one line; a list where its trainings chose differently."""
    parts = [
        f"{key} " + " / ".join(map(_choice, value if isinstance(value, list) else [value]))
        for key, value in (chosen or {}).items()
    ]
    return ", ".join(parts) or NONE


def _choice(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def short(value: float) -> str:
    """Return three digits, and no exponent for anything that a bar can show."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# --------------------------------------------------------------------------------------------------
# Tables and pages as self-contained HTML
# --------------------------------------------------------------------------------------------------

STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #ffffff; --soft: #5a5a5a;
  --line: #d9d9d9; --band: #f4f6f8; --accent: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181b; --soft: #a8adb3;
  --line: #3a3f45; --band: #1f2327; --accent: #56b4e9; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem 1rem 3rem; max-width: 75rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.5rem; margin: .5rem 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .25rem; }
p { margin: .25rem 0 .75rem; max-width: 48rem; } .soft, small { color: var(--soft); }
.wide { overflow-x: auto; -webkit-overflow-scrolling: touch; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0;
  background: var(--paper); }
thead th { border-bottom: 2px solid var(--ink); font-weight: 600; white-space: normal; }
tbody tr:nth-child(even) td, tbody tr:nth-child(even) th { background: var(--band); }
tbody th { font-weight: 500; } td.strong { font-weight: 700; }
tr.aside td, tr.aside th { color: var(--soft); font-style: italic; }
figure { margin: 1rem 0; overflow-x: auto; background: #ffffff; border: 1px solid var(--line);
  border-radius: .4rem; padding: .5rem; }
figure svg { display: block; height: auto; max-width: 100%; min-width: 34rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; font-size: .95rem; }
dt { font-weight: 600; } dd { margin: 0; }
@media (max-width: 40rem) { dl { display: block; } dd { margin: 0 0 .5rem; } }
"""

# Headings become buttons: up, down, and as it was. Numbers are compared by the first number of
# their cell ("1,234.5 ± 0.1"), other text by its letters; cells without a value stay last.
SORTING = r"""
for (const table of document.querySelectorAll(".wide table")) {
  const body = table.tBodies[0], original = [...body.rows];
  if (original.length < 3 || table.closest(".card")) continue;
  const heads = [...table.tHead.rows[0].cells];
  const text = (row, column) => row.cells[column].textContent.trim();
  const value = t => /^[+\u2212-]?[\d.]/.test(t)
    ? parseFloat(t.replace(/,/g, "").replace("\u2212", "-")) : NaN;
  const empty = t => t === "" || t === "-" || t === "\u2013";
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    if (!button.textContent.trim()) return;
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" };
      const order = next[head.getAttribute("aria-sort")];
      for (const other of heads)
        if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", order);
      const sign = order === "descending" ? -1 : 1;
      const sorted = [...original];
      if (order !== "none") sorted.sort((a, b) => {
        const [s, t] = [text(a, column), text(b, column)];
        if (empty(s) || empty(t)) return empty(s) - empty(t);
        const [x, y] = [value(s), value(t)];
        if (!isNaN(x) && !isNaN(y)) return sign * (x - y);
        return sign * s.localeCompare(t, "en", { numeric: true });
      });
      body.append(...sorted);
    });
  });
}
for (const box of document.querySelectorAll(".wide"))
  if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
"""


class Markup(str):
    """A cell that is HTML already."""

    __slots__ = ()


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    strong: Collection[tuple[int, int]] = (),
    aside: Collection[int] = (),
    kind: str = "",
) -> str:
    """Return a table; `strong` are (row, column) of bold cells, `aside` rows that are not ours.

    With a `kind`, which becomes the table's class, each cell carries its heading as `data-label`,
    so that a style can show the rows as cards.
    """
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in header)
    lines = []
    for number, row in enumerate(rows):
        mark = ' class="strong"' if (number, 0) in strong else ""
        cells = [f'<th scope="row"{mark}>{_cell(row[0])}</th>']
        for column, text in enumerate(row[1:], 1):
            mark = ' class="strong"' if (number, column) in strong else ""
            if kind:
                mark += f' data-label="{escape(header[column], quote=True)}"'
            cells.append(f"<td{mark}>{_cell(text)}</td>")
        mark = ' class="aside"' if number in aside else ""
        lines.append(f"<tr{mark}>{''.join(cells)}</tr>")
    body = "\n".join(lines)
    mark = f' class="{kind}"' if kind else ""
    return (
        f'<div class="wide"><table{mark}>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _cell(text: str) -> str:
    return text if isinstance(text, Markup) else escape(text)


def fragment(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """Return a table and its caption for a notebook, which brings its style."""
    return f"{table(header, rows)}\n<p><small>{escape(caption)}</small></p>"


BANNER = """
.banner { background: var(--card); border: 1px solid var(--line); border-left: .4rem solid;
  border-radius: .6rem; padding: .75rem 1rem; margin: 1rem 0; }
.banner p { max-width: 60rem; margin: 0; color: var(--ink); } .banner strong { font-size: 1.35rem;
  display: block; } .banner ul { color: var(--ink); margin: .5rem 0 0; }
.good, .good strong { color: var(--yes); } .bad, .bad strong { color: var(--no); }
.open, .open strong { color: var(--soft); }
"""


def banner(tone: str, word: str, text: str, points: Sequence[str]) -> str:
    """Return a verdict in a box; a page with one needs the style `BANNER`, and `SCHEME`."""
    listed = "".join(f"<li>{escape(one)}</li>" for one in points)
    return (
        f'<div class="banner {escape(tone, quote=True)}" role="note">'
        f"<p><strong>{escape(word)}</strong> {escape(text)}</p>"
        + (f"<ul>{listed}</ul></div>" if listed else "</div>")
    )


def page(title: str, body: str, style: str = "", script: str = "") -> str:
    """Return a whole page: light or dark as the reader's system is, and readable on a phone.

    `style` comes after the style of all pages; `script` runs when the page is there.
    """
    last = f"<script>{script}</script>\n" if script else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n"
        f"<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>\n{last}</body>\n</html>\n"
    )
