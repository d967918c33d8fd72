"""Colours, line styles and markers of the methods, the same in every figure.

Colours are Okabe and Ito's, one for each family. Line style and marker say the same a second time,
so that the figures can be read in grey as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rdeepsense.plot.figures import BLUE, GREY, INK, VERMILION

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
