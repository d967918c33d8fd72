"""Names that are no names: dollar signs in pictures, HTML and links in reports."""

from __future__ import annotations

import io
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import markdown as python_markdown
import pytest
from markdown_it import MarkdownIt
from matplotlib.figure import Figure
from matplotlib.text import Text

from rdeepsense.comparison.page import comparison_figure
from rdeepsense.comparison.statistics import Estimate, PooledArea, Summary
from rdeepsense.datasets import simulate
from rdeepsense.pages.page import report_page
from rdeepsense.pages.pictures import Picture, inline_svg, plot_profile, whole
from rdeepsense.paper.report import markdown, sections
from rdeepsense.paper.run import StudyResults
from rdeepsense.plot.figures import Slice, known_truth, literal
from rdeepsense.plot.selection import plot_selection

# Both are formulas to matplotlib, and it cannot read either.
DOLLARS = [r"cost_$5_$6", r"$\frac{$ & \$"]
MARKUP = ["<script>alert(1)</script>", "[click](javascript:alert(1))", "<img src=x onerror=evil>",
          "![x](javascript:evil)", "<a href='javascript:evil'>x</a>", "a | b", "&lt;script&gt;",
          "</td><b>`*_x_*`", "[x]: javascript:evil", "<javascript:alert(1)>"]  # fmt: skip
READERS = {
    "commonmark": MarkdownIt("gfm-like", {"linkify": False}).render,
    "python": lambda text: python_markdown.markdown(text, extensions=["tables"]),
}
WORDS = ("about", "source", "unit", "split", "grouped_by", "x_label", "y_label", "title", "profile",
         "how", "measured", "why", "claim", "command")  # fmt: skip


class Tags(HTMLParser):
    """The tags of some HTML, where its links go, and the names of all attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        self.attributes |= {name for name, _ in attrs}


def spoilt(value: Any, evil: str, key: str = "") -> Any:
    """Return results whose words all hold a hostile text."""
    if isinstance(value, dict):
        return {name: spoilt(one, evil, name) for name, one in value.items()}
    if isinstance(value, list):
        return [spoilt(one, evil, key) for one in value]
    hostile = key in WORDS or key in ("classes", "warnings")
    return f"{value} {evil}" if isinstance(value, str) and hostile else value


def hostile_study(results: dict[str, Any], evil: str) -> StudyResults:
    made = spoilt(results, evil)
    for task in made["tasks"].values():
        chosen = ("RDeepSense", "RDeepSense-paper", "GP")
        task["methods"] = {name: task["methods"][name] for name in chosen}
        task["methods"]["GP"]["warnings"] = [evil]
        task["methods"][f"own {evil}"] = task["methods"]["GP"]
    made["tasks"][f"own {evil}"] = made["tasks"].pop("BPEst")
    return StudyResults.from_json(made)


def shown(figure: Figure) -> list[str]:
    """Return the texts that are drawn letter by letter."""
    return [t.get_text() for t in figure.findobj(Text) if not t.get_parse_math()]


@pytest.mark.slow
def test_every_picture_of_a_reproduction(results: dict[str, Any]) -> None:
    evil, seen = DOLLARS[0], 0
    for part in sections(hostile_study(results, evil)):
        for block in part.blocks:
            if isinstance(block, Picture):
                figure = whole(block)
                inline_svg(figure, "x")
                seen += any(evil in " ".join(text.split()) for text in shown(figure))
    assert seen > 8


@pytest.mark.everyday(1, "slow")
@pytest.mark.parametrize("evil", DOLLARS)
def test_every_other_picture(evil: str) -> None:
    trials = [
        {"likelihood": evil, "alpha": alpha, "drop_prob": drop, "nll": 1.0, "deviation_area": 0.1}
        for alpha in (0.0, 0.5)
        for drop in (0.0, 0.1)
    ]
    grid = {"by": "nll", "how": evil, "chosen": 1, "trials": trials}
    forms = [{"name": f"{evil} {k}", "available": True, "microseconds": 3.0 + k, "weight_bytes": 9,
              "p99_microseconds": 9.0, "millijoules": 1.0} for k in range(3)]  # fmt: skip
    task = simulate(200, 0)
    compared = [
        Summary(method, 1, 2, {"nll": Estimate(k, 0.1)}, {"nll": Estimate(k, 0.1)},
                PooledArea(0.1, 0.1, 0.01, 90), 1.0, 1.0)
        for k, method in enumerate((evil, f"{evil} 2"))
    ]  # fmt: skip
    along = Slice(task.X[:, 0], task.truth, task.truth, task.y, evil)
    figures = {
        "selection": plot_selection(SimpleNamespace(selection_=grid)),
        "profile": plot_profile({"forms": forms, "machine": evil, "energy": evil}),
        "comparison": comparison_figure({evil: compared, f"{evil} 2": compared}, evil),
        "known truth": known_truth(along, task.truth, task.truth, task.y),
    }
    for name, figure in figures.items():
        figure.savefig(io.BytesIO(), format="png", dpi=40)
        assert any(evil in text for text in shown(figure)), name


def test_powers_of_ten_remain_formulas() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.plot([1e-9, 1e9], [0, 1])
    axes.set_title("$x^2$")
    literal(figure).canvas.draw()
    assert any(label.get_parse_math() for label in axes.get_xticklabels())
    assert not axes.title.get_parse_math()


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize("evil", MARKUP)
def test_markdown_and_page_show_names_as_text(
    results: dict[str, Any], evil: str, reader: Any
) -> None:
    parts = sections(hostile_study(results, evil))
    parts = [
        type(part)(part.name, part.title, part.origin,
                   tuple(b for b in part.blocks if not isinstance(b, Picture)))
        for part in parts
    ]  # fmt: skip
    for text, scripts in (
        (reader(markdown(evil, evil, parts)), 0),
        (report_page(evil, evil, parts), 1),
    ):
        tags = Tags(text)
        assert not {"img", "b", "iframe"} & set(tags.names)
        assert tags.names.count("script") == scripts  # that of the page itself
        assert all(link.startswith("#") for link in tags.links)
        assert not {"onerror", "onclick"} & tags.attributes
