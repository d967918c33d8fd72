"""The methods of a page, each with one line on what it is."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rdeepsense.experiments.methods import Method


def method_list(methods: Sequence[Method]) -> str:
    """Return names, lines and forward passes as a list of definitions."""
    items = "\n".join(
        f"<dt>{escape(method.name)}</dt><dd>{escape(method.about)}{_passes(method.passes)}</dd>"
        for method in methods
    )
    return f"<dl>{items}</dl>"


def _passes(passes: int | None) -> str:
    if passes is None:
        return ""
    return f"; {passes} forward pass{'es' if passes > 1 else ''} per prediction"
