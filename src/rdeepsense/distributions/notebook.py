"""Distributions in a notebook: a few of them in figures, and as small bars with a dot."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from rdeepsense.arrays import Floats

LINES, BARS = 5, 60
WIDTH, HEIGHT = 360, 90  # pixels


def shown_in_notebooks(dist: Any) -> str:  # Any: whichever of the distributions
    """Return the first entries of a distribution as HTML."""
    entries = int(np.prod(dist.shape))
    few = dist[:BARS] if dist.shape else dist  # some distributions take their time
    shown = _classes(few, entries) if dist.is_categorical else _numbers(few, entries)
    return f"<div><b>{escape(repr(dist))}</b>{shown}</div>"


def _numbers(dist: Any, entries: int) -> str:
    """Show mean, std and 90 % interval of some entries, and the intervals of more of them."""
    flat = [np.reshape(np.asarray(one), -1) for one in (dist.mean, dist.std, *dist.interval(0.9))]
    mean, std, low, high = flat
    rows = [
        [str(k), f"{mean[k]:.4g}", f"{std[k]:.4g}", f"{low[k]:.4g} to {high[k]:.4g}"]
        for k in range(min(LINES, len(mean)))
    ]
    drawn = _bars(mean[:BARS], low[:BARS], high[:BARS]) if entries else ""
    return drawn + _table(["", "mean", "std", "90 % interval"], rows, entries)


def _classes(dist: Any, entries: int) -> str:
    """Show the most probable classes of some entries."""
    probs = np.reshape(dist.mean, (-1, dist.mean.shape[-1]))
    first = getattr(dist, "components", (dist,))[0]  # of a mixture
    labels = [str(c) for c in (range(probs.shape[1]) if first.classes is None else first.classes)]
    rows = []
    for k in range(min(LINES, len(probs))):
        best = np.argsort(-probs[k], kind="stable")[:3]
        rows.append([str(k), ", ".join(f"{labels[c]} {100 * probs[k, c]:.0f} %" for c in best)])
    return _table(["", "most probable"], rows, entries)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], entries: int) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    more = f"<small>and {entries - len(rows):,} more</small>" if entries > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _bars(mean: Floats, low: Floats, high: Floats) -> str:
    """Draw a line from low to high and a dot for each entry, in the reader's own colour."""
    ends = np.concatenate([low, high])
    ends = ends[np.isfinite(ends)]
    if not len(ends):
        return ""
    least, span = float(ends.min()), float(np.ptp(ends)) or 1.0

    def across(values: Floats) -> Floats:
        return np.asarray(HEIGHT - 5 - (np.clip(values, least, ends.max()) - least) / span
                          * (HEIGHT - 10))  # fmt: skip

    places = 4 + (WIDTH - 8) * (np.arange(len(mean)) + 0.5) / len(mean)
    marks = "".join(
        f'<path d="M{x:.1f} {a:.1f}V{b:.1f}" stroke="currentColor" stroke-opacity=".4" '
        f'stroke-width="3"/><circle cx="{x:.1f}" cy="{m:.1f}" r="2" fill="currentColor"/>'
        for x, a, b, m in zip(places, across(low), across(high), across(mean), strict=True)
    )
    return (
        f'<svg role="img" aria-label="90 % intervals of the first {len(mean)} entries, from '
        f'{least:.4g} to {least + span:.4g}" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" style="display:block">{marks}</svg>'
    )
