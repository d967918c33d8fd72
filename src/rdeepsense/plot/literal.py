"""Texts of a figure as they are: a name with dollar signs in it is no formula."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rdeepsense.errors import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def literal(figure: Figure) -> Figure:
    """Show every text of a finished figure letter by letter; returns the figure.

    Names come from files and tables, and matplotlib reads what stands between two dollar signs as
    mathematics, which most names are not. The labels of ticks that matplotlib places itself are its
    own, powers of ten among them.
    """
    fixed = require("matplotlib.ticker", "report").FixedLocator
    own = {
        id(label)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        if not isinstance(axis.get_major_locator(), fixed)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        for label in (tick.label1, tick.label2)
    }
    for text in figure.findobj(require("matplotlib.text", "report").Text):
        if id(text) not in own:
            text.set_parse_math(False)
    return figure
