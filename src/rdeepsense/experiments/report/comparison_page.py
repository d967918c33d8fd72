"""The page of a comparison: its tables, its picture and what each method is, in one file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rdeepsense.experiments.methods import Method
from rdeepsense.experiments.report.comparison import comparison_panels
from rdeepsense.experiments.report.html import SORTING, page, table
from rdeepsense.experiments.report.method_list import method_list
from rdeepsense.experiments.report.pictures import inline_svg
from rdeepsense.experiments.text_table import TextTable
from rdeepsense.experiments.uci.statistics import Summary

# On a phone a row of a table becomes a card, each cell with the name of its column.
STYLE = """
body { overflow-wrap: break-word; } thead th { vertical-align: bottom; }
th button { all: unset; cursor: pointer; } th button:hover { text-decoration: underline; }
th button:focus-visible, .wide:focus-visible { outline: 2px solid var(--accent);
  outline-offset: 2px; }
th[aria-sort=ascending] button::after { content: "\\a0\\2191"; color: var(--accent); }
th[aria-sort=descending] button::after { content: "\\a0\\2193"; color: var(--accent); }
figure { display: grid; gap: .75rem; align-items: start; justify-items: center;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
figure svg { min-width: 0; width: 100%; max-width: 36rem; }
@media (max-width: 45rem) {
  table.cards { width: 100%; } table.cards thead { display: none; }
  table.cards tr, table.cards td, table.cards tbody th { display: block; position: static; }
  table.cards tr { border: 1px solid var(--line); border-radius: .6rem; margin: 0 0 .75rem;
    padding: .4rem .25rem; }
  table.cards td, table.cards tbody th { border: 0; background: none !important;
    padding: .1rem .6rem; text-align: right; }
  table.cards tbody th { text-align: left; font-weight: 600; }
  table.cards td:empty { display: none; }
  table.cards td::before { content: attr(data-label); float: left; color: var(--soft);
    font-weight: 400; } }
"""


def comparison_page(
    title: str,
    about: str,
    methods: Sequence[Method],
    tables: Sequence[TextTable],
    rows: Sequence[Summary],
    notes: Sequence[str],
) -> str:
    """Return the whole page as text; `notes` are warnings of the fits."""
    labels = ("NLL of each method", "deviation area of each method")
    pictures = [
        inline_svg(one, label) for one, label in zip(comparison_panels(rows), labels, strict=False)
    ]
    parts = [f"<p>{escape(about)}</p>"] if about else []
    parts += [_table(tables[0]), f"<figure>{''.join(pictures)}</figure>"]
    parts += [_table(one) for one in tables[1:]]
    parts.append(f"<h2>The methods</h2>\n{method_list(methods)}")
    if notes:
        points = "".join(f"<li>{escape(note)}</li>" for note in notes)
        parts.append(f"<h2>Warnings</h2>\n<ul>{points}</ul>")
    return page(title, "\n".join(parts), STYLE, SORTING)


def _table(one: TextTable) -> str:
    caption = f'\n<p class="soft"><small>{escape(one.caption)}</small></p>' if one.caption else ""
    shown = table(one.header, one.rows, one.strong, one.aside, "cards")
    return f"<h2>{escape(one.title)}</h2>\n{shown}{caption}"
