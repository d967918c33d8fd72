"""Tables and pages as HTML that needs nothing but itself: no scripts, no network."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

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


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    strong: Collection[tuple[int, int]] = (),
    aside: Collection[int] = (),
) -> str:
    """A table; `strong` are (row, column) of cells in bold, `aside` rows that are not ours."""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in header)
    lines = []
    for number, row in enumerate(rows):
        cells = [f'<th scope="row">{escape(row[0])}</th>']
        for column, text in enumerate(row[1:], 1):
            mark = ' class="strong"' if (number, column) in strong else ""
            cells.append(f"<td{mark}>{escape(text)}</td>")
        mark = ' class="aside"' if number in aside else ""
        lines.append(f"<tr{mark}>{''.join(cells)}</tr>")
    body = "\n".join(lines)
    return (
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def fragment(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """A table and its caption for a notebook, which brings a style of its own."""
    return f"{table(header, rows)}\n<p><small>{escape(caption)}</small></p>"


def page(title: str, body: str) -> str:
    """A whole page: light or dark as the reader's system is, and readable on a phone."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )
