"""A picture is a few panels: one figure in the files, panels that reflow in the page.

In the page every panel is a separate <svg>, so that three of them stand side by side on a desk
and below each other on a phone, at the same size of letters. Colours become CSS variables there
and follow the reader's light or dark scheme.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING, Any

from rdeepsense.errors import require
from rdeepsense.experiments.report.method_styles import GREEN, ORANGE, PURPLE, RECOMMENDED, SKY
from rdeepsense.experiments.report.saving import DPI
from rdeepsense.plot.figures import BLUE, GREY, INK, LARGE, NORMAL, SMALL, VERMILION, literal

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

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
