"""What a report is made of: sections of text, tables and pictures, in the order of reading."""

from __future__ import annotations

from dataclasses import dataclass

from rdeepsense.experiments.report.pictures import Picture
from rdeepsense.experiments.text_table import TextTable


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
