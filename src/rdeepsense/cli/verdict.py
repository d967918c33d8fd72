"""The verdict on a model at the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.reporting.verdict import Verdict


def report(terminal: Terminal, verdicts: dict[str, Verdict]) -> None:
    """Print the words."""
    for name, verdict in verdicts.items():
        own = f"{name}: " if len(verdicts) > 1 else ""
        for place, words in enumerate(verdict.words):
            terminal.line(f"{'verdict' if place == 0 else '':10}{own}{words}")
