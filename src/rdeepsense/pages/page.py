"""Pages from sections of text, tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from rdeepsense.pages.html import BANNER, SORTING, Markup, TextTable, banner, page, table
from rdeepsense.pages.pictures import SCHEME, Picture, svgs

# --------------------------------------------------------------------------------------------------
# Sections of a report: text, tables and pictures
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """A paragraph; a list of points where `points` has some."""

    text: str
    points: tuple[str, ...] = ()


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str


@dataclass(frozen=True)
class Card:
    """A task at a glance."""

    task: str
    origin: str
    table: TextTable


@dataclass(frozen=True)
class Claims:
    """The verdicts, which the page colours, and behind them what was measured."""

    verdicts: TextTable
    measurements: TextTable


@dataclass(frozen=True)
class Banner:
    """A verdict that stands out: a word, its `tone` ("good", "bad" or "open"), and why."""

    word: str
    tone: str
    text: str
    points: tuple[str, ...] = ()


Block = Text | Banner | Heading | Card | Claims | TextTable | Picture


@dataclass(frozen=True)
class Section:
    """A part of the report; `origin` marks every table in it as simulated or real."""

    name: str
    title: str
    origin: str | None
    blocks: tuple[Block, ...]


# --------------------------------------------------------------------------------------------------
# The report of a reproduction as a self-contained HTML page
# --------------------------------------------------------------------------------------------------

STYLE = (
    SCHEME
    + BANNER
    + """
html { scroll-behavior: smooth; } body { overflow-wrap: break-word; }
h2 { font-size: 1.4rem; margin: 3rem 0 .5rem; padding-top: .75rem;
  border-top: 2px solid var(--line); }
h3 { font-size: 1.1rem; margin: 2rem 0 .35rem; }
h3.part { font-size: 1.25rem; margin: 2.5rem 0 -.75rem; }
a { color: var(--accent); }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .35rem .5rem; padding: 0;
  margin: 1rem 0 0; }
nav a { display: block; padding: .3rem .75rem; border: 1px solid var(--line); border-radius: 2rem;
  text-decoration: none; }
nav a:hover { border-color: var(--accent); }
.badge { font-size: .75rem; font-weight: 600; border: 1px solid; border-radius: 1rem;
  padding: .1rem .55rem; white-space: nowrap; vertical-align: middle; }
.simulated, .verdict-no { color: var(--no); } .real, .verdict-yes { color: var(--yes); }
.verdict-open { color: var(--soft); }
.cards { display: grid; gap: 1rem; margin: 1rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
.card, figure { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
.card { padding: .9rem 1rem; min-width: 0; } .card h3 { margin: 0; }
.card table { width: 100%; } .card td, .card th { background: none !important;
  padding: .3rem; min-width: 0; } .card th { white-space: normal; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1rem 0; }
figure { margin: 0; padding: .75rem; flex: 1 1 100%; min-width: 0; overflow: visible; }
figure.one { flex: 1 1 min(100%, 28rem); }
figcaption { font-weight: 600; margin-bottom: .5rem; }
figure p { font-size: .9rem; color: var(--soft); margin: .5rem 0 0; max-width: 60rem; }
.panels { display: grid; gap: .75rem; align-items: start; justify-items: center;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, var(--panel)), 1fr)); }
figure svg { width: 100%; min-width: 0; max-width: 40rem; fill: var(--ink); }
th button { all: unset; cursor: pointer; } th button:hover { text-decoration: underline; }
th button:focus-visible, .wide:focus-visible, a:focus-visible { outline: 2px solid var(--accent);
  outline-offset: 2px; }
th[aria-sort] button::after { content: "\\a0\\2195"; color: var(--soft); font-weight: 400; }
th[aria-sort=ascending] button::after { content: "\\a0\\2191"; color: var(--accent); }
th[aria-sort=descending] button::after { content: "\\a0\\2193"; color: var(--accent); }
thead th { vertical-align: bottom; } tbody th.strong { font-weight: 700; }
details { margin: 1rem 0; } summary { cursor: pointer; font-weight: 600; padding: .4rem 0; }
table.prose { width: 100%; } table.prose td, table.prose th { text-align: left;
  white-space: normal; vertical-align: top; }
@media (max-width: 45rem) {
  table.prose thead { display: none; }
  table.prose tr, table.prose td, table.prose tbody th { display: block; position: static; }
  table.prose tr { border: 1px solid var(--line); border-radius: .6rem; margin: 0 0 .75rem;
    padding: .5rem .25rem; }
  table.prose td, table.prose th { border: 0; background: none !important; padding: .15rem .6rem; }
  table.prose tbody th { font-weight: 600; } table.prose td:empty { display: none; }
  table.prose td::before { content: attr(data-label) ": "; color: var(--soft); } }
@media (max-width: 30rem) { body { padding: .6rem .6rem 2rem; } figure { padding: .5rem .3rem; }
  figcaption, figure p { padding: 0 .4rem; } table { font-size: .8rem; }
  th, td { padding: .25rem .4rem; } .card { padding: .7rem; } .card td, .card th {
  padding: .25rem .15rem; } }
@media print { nav { display: none; } body { max-width: none; }
  figure, .card, tr { break-inside: avoid; } h2, h3 { break-after: avoid; }
  .wide { overflow: visible; } table { font-size: .7rem; } }
"""
)
_VERDICTS = {"yes": ("✓", "yes", "yes"), "no": ("✗", "no", "no"),
             "not decidable": ("?", "open", "not decidable")}  # fmt: skip


def report_page(title: str, opening: str, parts: Sequence[Section]) -> str:
    """Return the whole page."""
    names = {part.name: part.title.partition(":")[0] for part in parts}
    links = "".join(
        f'<li><a href="#{escape(name, quote=True)}">{escape(text)}</a></li>'
        for name, text in names.items()
    )
    body = [f"<p>{escape(opening)}</p>", f'<nav aria-label="Contents"><ul>{links}</ul></nav>']
    for part in parts:
        body.append(
            f'<section aria-labelledby="{escape(part.name, quote=True)}">'
            f'<h2 id="{escape(part.name, quote=True)}">{escape(part.title)}'
            f"{badge(part.origin)}</h2>"
        )
        for kind, blocks in groupby(part.blocks, key=type):
            body.append(_together(kind, list(blocks), part.origin))
        body.append("</section>")
    return page(title, "\n".join(body), STYLE, SORTING)


def badge(origin: str | None) -> str:
    """Return the mark of simulated or real data."""
    return f' <span class="badge {origin}">{origin} data</span>' if origin else ""


def _together(kind: type, blocks: list[Block], origin: str | None) -> str:
    """Join blocks of one kind that follow each other: cards and figures stand side by side."""
    text = "\n".join(_block(block, origin) for block in blocks)
    around = {Card: "cards", Picture: "figures"}.get(kind)
    return f'<div class="{around}">{text}</div>' if around else text


def _block(block: Block, origin: str | None) -> str:
    match block:
        case Text():
            points = "".join(f"<li>{escape(one)}</li>" for one in block.points)
            return f"<p>{escape(block.text)}</p>" + (f"<ul>{points}</ul>" if points else "")
        case Banner():
            return banner(block.tone, block.word, block.text, block.points)
        case Heading():
            return f'<h3 class="part">{escape(block.text)}</h3>'
        case Card():
            one = block.table
            return (
                f'<article class="card"><h3>{escape(block.task)}{badge(block.origin)}</h3>'
                f'<p class="soft">{escape(one.title)}</p>{table(one.header, one.rows)}</article>'
            )
        case Claims():
            return _claims(block)
        case TextTable():
            caption = f'<p class="soft"><small>{escape(block.caption)}</small></p>'
            return (
                f"<h3>{escape(block.title)}{badge(origin)}</h3>"
                + table(block.header, block.rows, block.strong, block.aside)
                + caption
            )
        case Picture():
            return _figure(block)


def _claims(claims: Claims) -> str:
    short, long = (
        table(one.header, [[_verdict(text) for text in row] for row in one.rows], kind="prose")
        for one in (claims.verdicts, claims.measurements)
    )
    return (
        f"<p>{escape(claims.verdicts.caption)}</p>{short}"
        f"<details><summary>{escape(claims.measurements.title)}</summary>{long}</details>"
    )


def _verdict(text: str) -> str:
    if text not in _VERDICTS:
        return text
    sign, name, words = _VERDICTS[text]
    return Markup(f'<span class="badge verdict-{name}">{sign} {words}</span>')


def _figure(picture: Picture) -> str:
    drawn = "\n".join(svgs(picture))
    narrow = "one" if picture.columns == 1 or len(picture.panels) == 1 else "several"
    # The least width at which a panel is easily read; a narrower page has fewer side by side.
    width = {1: 40.0, 2: 26.0}.get(picture.columns, 4.4 * picture.panels[0].size[0])
    return (
        f'<figure id="{escape(picture.name, quote=True)}" class="{narrow}">'
        f"<figcaption>{escape(picture.title)}{badge(picture.origin)}</figcaption>"
        f'<div class="panels" style="--panel: {width:.1f}rem">{drawn}</div>'
        f"<p>{escape(picture.caption)}</p></figure>"
    )
