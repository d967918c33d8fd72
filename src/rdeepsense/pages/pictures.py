"""Pictures: panels of matplotlib figures for pages and files, and the styles of the methods."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from rdeepsense._files import write_whole
from rdeepsense.errors import require
from rdeepsense.pages.html import short
from rdeepsense.plot.figures import BLUE, GREY, INK, LARGE, NORMAL, SMALL, VERMILION, literal

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


# --------------------------------------------------------------------------------------------------
# Figures as files
# --------------------------------------------------------------------------------------------------

DPI = 180


def save(figure: Figure, path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Write PATH.png and PATH.svg, each whole or not at all; return their names.

    Equal figures give equal bytes: no date, and names inside the SVG from a fixed salt.
    """
    matplotlib = require("matplotlib", "report")
    png, svg = (Path(f"{os.fspath(path)}.{suffix}") for suffix in ("png", "svg"))
    with matplotlib.rc_context({"svg.hashsalt": "rdeepsense"}):
        for target, metadata in ((png, {"Software": None}), (svg, {"Date": None})):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=target.suffix[1:], dpi=DPI, metadata=metadata)
            write_whole(target, buffer.getvalue())
    return png, svg


# --------------------------------------------------------------------------------------------------
# Colors, line styles and markers of the methods
#
# Colours are Okabe and Ito's, one for each family. Line style and marker say the same a second
# time, so that the figures can be read in grey as well.
# --------------------------------------------------------------------------------------------------

ORANGE, SKY, GREEN, PURPLE = "#E69F00", "#56B4E9", "#009E73", "#CC79A7"
RECOMMENDED, PAPER = "RDeepSense", "RDeepSense-paper"

Dash = str | tuple[float, tuple[float, ...]]
"""A line style as matplotlib takes it: a word, or an offset and the lengths of dashes."""

_FAMILIES = {
    "RDeepSense": (BLUE, "o"),
    "RDeepSense-MCk": (BLUE, "h"),
    "RDeepSense-paper": (VERMILION, "s"),
    "RDeepSense-paper-MCk": (PURPLE, "D"),
    "MCDrop-k-paper": (ORANGE, "^"),
    "MCDrop-k": (SKY, "P"),
    "SSP-k-paper": (GREEN, "v"),
    "SSP-k": (GREEN, "X"),
    "GP": (INK, "*"),
}
# For each k a dash pattern and a marker; without a k a full line.
_BY_K: dict[int, tuple[Dash, str]] = {
    1: ((0, (1, 2.2)), "x"),
    3: ((0, (1, 1)), "v"),
    5: ("-.", "D"),
    10: ("--", "^"),
    20: ((0, (7, 1.5)), "P"),
}
_K = re.compile(r"(?<=-MC)\d+|(?<=-)\d+")


@dataclass(frozen=True)
class Style:
    """A method's family ("MCDrop-k-paper"), its k, and how it is drawn."""

    family: str
    k: int | None
    colour: str
    marker: str

    @property
    def dash(self) -> Dash:
        """The line style that tells one k of a family from another."""
        if self.family == "GP":
            return "--"
        return "-" if self.k is None else _BY_K.get(self.k, ("-", ""))[0]

    @property
    def k_marker(self) -> str:
        """The marker for a plot in which a family appears with every k."""
        return self.marker if self.k not in _BY_K else _BY_K[self.k][1]


def style(name: str) -> Style:
    """Return the style of the method of that name; grey for a method of no known family."""
    found = _K.search(name)
    family = _K.sub("k", name)
    colour, marker = _FAMILIES.get(family, (GREY, "d"))
    return Style(family, int(found[0]) if found else None, colour, marker)


def representatives(names: Iterable[str]) -> list[str]:
    """Return one method of each family, that of the largest k, in the order of the families."""
    largest: dict[str, str] = {}
    for name in names:
        own = style(name)
        if own.family not in largest or (style(largest[own.family]).k or 0) < (own.k or 0):
            largest[own.family] = name
    return list(largest.values())


# --------------------------------------------------------------------------------------------------
# Panels: one figure in files, separate pictures in pages
#
# In the page every panel is a separate <svg>, so that three of them stand side by side on a desk
# and below each other on a phone, at the same size of letters. Colours become CSS variables there
# and follow the reader's light or dark scheme.
# --------------------------------------------------------------------------------------------------

GRID = "#E6E6E6"
COLUMNS = 3
BADGE = 1.2  # inches
NARROW, WIDE = 42, 58  # letters that fit below axes with and without names on their left
# In the page these follow the reader's scheme; each is a variable of the style of the page.
VARIABLES = {
    INK: "ink", GRID: "grid", GREY: "grey", BLUE: "blue", VERMILION: "vermilion",
    ORANGE: "orange", SKY: "sky", GREEN: "green", PURPLE: "purple", "#FFFFFF": "card",
}  # fmt: skip
# The values of the variables.
SCHEME = """
:root { --card: #ffffff; --grid: #e6e6e6; --grey: #7f7f7f; --blue: #0072b2; --vermilion: #d55e00;
  --orange: #e69f00; --sky: #56b4e9; --green: #009e73; --purple: #cc79a7;
  --yes: #00664a; --no: #a34700; }
@media (prefers-color-scheme: dark) { :root { --card: #1c1f23; --grid: #353a40; --grey: #9a9fa5;
  --blue: #3fa0e0; --vermilion: #ff8536; --orange: #f0b030; --sky: #8fd0f5; --green: #2fc79c;
  --purple: #e39ac5; --yes: #4fd6ae; --no: #ff9a5c; } }
figure { background: var(--card); }
"""
_THEME = dict.fromkeys(
    ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
)
LEGEND: dict[str, Any] = {
    "fontsize": SMALL,
    "frameon": False,
    "handlelength": 2.6,
    "labelspacing": 0.3,
    "columnspacing": 1.2,
    "borderaxespad": 0.2,
}


@dataclass(frozen=True)
class Panel:
    """One pair of axes: `draw` fills it, `size` is its room in inches, labels included.

    The only panel of a picture needs no title.
    """

    title: str
    draw: Callable[[Axes], None]
    size: tuple[float, float] = (4.3, 4.0)


@dataclass(frozen=True)
class Picture:
    """Panels under one title.

    `origin` ("simulated" or "real") is written into the picture, unless it is empty. `says` is what
    a reader who cannot see it should know, beside the title.
    """

    name: str
    title: str
    caption: str
    origin: str
    panels: tuple[Panel, ...]
    columns: int = COLUMNS
    says: str = ""
    same_rows: bool = False  # the panels of a line share the labels of their rows


def whole(picture: Picture) -> Figure:
    """Draw all panels in one figure, for the files."""
    columns = min(picture.columns, len(picture.panels))
    lines = -(-len(picture.panels) // columns)
    width = sum(panel.size[0] for panel in picture.panels[:columns])
    height = sum(panel.size[1] for panel in picture.panels[::columns])
    with _figure(width, height + 0.35, picture.title, LARGE, picture.origin) as figure:
        grid = figure.subplots(lines, columns, squeeze=False)
        for axes, panel in zip(grid.flat, picture.panels, strict=False):
            panel.draw(axes)
            axes.set_title(panel.title, fontsize=NORMAL, loc="left")
        for axes in grid.flat[len(picture.panels) :]:
            axes.set_visible(False)
        if picture.same_rows:
            for axes in grid[:, 1:].flat:
                axes.set_yticklabels([])
    return figure


def svgs(picture: Picture) -> list[str]:
    """Draw each panel as an <svg> for the page: no background, colours that follow the scheme."""
    texts = []
    for number, panel in enumerate(picture.panels, 1):
        with _figure(*panel.size, panel.title, NORMAL, picture.origin) as figure:
            axes = figure.subplots()
            panel.draw(axes)
            figure.patch.set_facecolor("none")
            axes.patch.set_facecolor("none")
        kind = f"({picture.origin} data)" if picture.origin else ""
        words = filter(None, (picture.title, panel.title, kind, picture.says))
        svg = inline_svg(figure, escape(" ".join(words), quote=True))
        texts.append(_adapted(svg, f"{picture.name}-{number}"))
    return texts


def finish(axes: Axes, x: str, y: str = "", grid: str = "both") -> None:
    """Set the labels and the light frame that all panels have."""
    axes.set_xlabel(fill(x, WIDE if y else NARROW), fontsize=NORMAL)
    axes.set_ylabel(y, fontsize=NORMAL)
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(axis=grid, color=GRID, linewidth=0.6)  # type: ignore[arg-type]


def legend_below(
    axes: Axes,
    handles: Sequence[Artist] | None = None,
    labels: Sequence[str] | None = None,
    ncols: int = 2,
    **options: float,
) -> None:
    """Put a legend under the label of the axis, where it hides nothing."""
    lines = 1 + axes.get_xlabel().count("\n")
    drop = require("matplotlib.transforms", "report").ScaledTranslation(
        0, -(25 + 13 * lines) / 72, axes.figure.dpi_scale_trans
    )
    given = {} if handles is None else {"handles": handles, "labels": labels}
    axes.legend(
        **given, loc="upper center", bbox_to_anchor=(0.46, 0), ncols=ncols,
        bbox_transform=axes.transAxes + drop, **{**LEGEND, **options},
    )  # fmt: skip


def rows(axes: Axes, names: list[str]) -> None:
    """Label one line for each name from top to bottom; the recommended model stands out."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    for label in axes.get_yticklabels():
        label.set_fontweight("bold" if label.get_text() == RECOMMENDED else "normal")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def row_height(count: int) -> float:
    """Return the inches that `count` lines take with a title above and an axis below."""
    return 1.15 + 0.225 * count


def plain_log(axis: Axis) -> None:
    """Label 1, 2 and 5 times powers of ten in plain numbers; powers alone over a long range."""
    ticker = require("matplotlib.ticker", "report")
    low, high = sorted(axis.get_view_interval())
    few = high > 200 * low
    axis.set_major_locator(ticker.LogLocator(subs=(1,) if few else (1, 2, 5)))
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


@contextmanager
def _figure(width: float, height: float, title: str, size: float, origin: str) -> Iterator[Figure]:
    """Yield a figure with title and badge, to be filled; lay it out once, for all its files."""
    with require("matplotlib", "report").rc_context(_THEME):
        figure: Figure = require("matplotlib.figure", "report").Figure(
            figsize=(width, height), dpi=DPI, layout="constrained"
        )
        engine: Any = figure.get_layout_engine()
        engine.set(w_pad=0.08, h_pad=0.06)
        letters = int(105 / size * (width - BADGE))  # bold ones that fit beside the badge
        if title or origin:
            figure.suptitle(fill(title, letters) or " ", x=0.1 / width, ha="left", fontsize=size,
                            fontweight="bold")  # fmt: skip
        if origin:
            _badge(figure, origin)
        yield figure
        engine.execute(literal(figure))
        figure.set_layout_engine(None)  # or every file that is saved draws everything twice


def _badge(figure: Figure, origin: str) -> None:
    """Write the word that nobody may miss into the upper right corner."""
    width, height = figure.get_size_inches()
    figure.text(1 - 0.1 / width, 1 - 0.08 / height, f"{origin} data", ha="right", va="top",
                fontsize=SMALL, color=VERMILION if origin == "simulated" else GREEN,
                bbox={"boxstyle": "round,pad=0.25", "facecolor": "none",
                      "edgecolor": VERMILION if origin == "simulated" else GREEN,
                      "linewidth": 0.8})  # fmt: skip


def _adapted(svg: str, prefix: str) -> str:
    """Make names unique in the page, put variables in place of colours, drop the fixed size."""
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}-', svg)
    svg = svg.replace("url(#", f"url(#{prefix}-")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    for colour, name in VARIABLES.items():
        svg = svg.replace(f": {colour.lower()}", f": var(--{name})")
    return svg


def inline_svg(figure: Figure, label: str) -> str:
    """Return the figure as an <svg> element for a page; equal figures give equal text."""
    matplotlib = require("matplotlib", "report")
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with matplotlib.rc_context({"svg.hashsalt": "rdeepsense"}):
        figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue()
    svg = text[text.index("<svg") :].strip()
    return svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


# --------------------------------------------------------------------------------------------------
# The forms of a model: time, size and energy of one prediction
# --------------------------------------------------------------------------------------------------


def plot_profile(found: Mapping[str, Any]) -> Figure:  # Any: as its JSON, of all kinds of values
    """Draw bars of what `rdeepsense profile` found; forms that could not run are left out."""
    forms = [form for form in found["forms"] if form["available"]]
    figure: Figure = require("matplotlib.figure", "report").Figure(
        figsize=(11.5, 1.9 + 0.3 * len(forms)), layout="constrained"
    )
    figure.suptitle(f"One prediction, {found['machine']}", fontsize=LARGE, color=INK)
    left, middle, right = figure.subplots(1, 3, sharey=True)
    _bars(left, forms, "microseconds", 1.0, "median time (µs, log scale); tick: 99th percentile")
    for place, form in enumerate(forms):
        left.plot(form["p99_microseconds"], place, marker="|", color=INK, markersize=9)
    _bars(middle, forms, "weight_bytes", 1e-3, "weights (kB, log scale)")
    _bars(right, forms, "millijoules", 1.0, f"energy (mJ, log scale), {found['energy']}")
    left.set_yticks(range(len(forms)), [form["name"] for form in forms], fontsize=SMALL)
    left.set_ylim(len(forms) - 0.4, -0.6)
    return literal(figure)


def _bars(axes: Axes, forms: list[Any], key: str, factor: float, label: str) -> None:
    values = [factor * form[key] for form in forms]
    low = 0.4 * min(values)
    axes.set_xscale("log")
    axes.set_xlim(low, 4 * max(values))
    for place, (form, value) in enumerate(zip(forms, values, strict=True)):
        own = form["name"].startswith(("c-", "ctypes"))
        axes.barh(place, value - low, left=low, height=0.66, color=BLUE if own else GREY)
        end = max(value, form["p99_microseconds"] if key == "microseconds" else 0.0)
        axes.annotate(short(value), (end, place), xytext=(6, 0), va="center", fontsize=SMALL,
                      color=INK, textcoords="offset points")  # fmt: skip
    plain_log(axes.xaxis)
    axes.set_xlabel(fill(label, 42), fontsize=NORMAL)
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
