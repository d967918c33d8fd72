"""What the README says of a stream of samples."""

from __future__ import annotations

from typing import Any

from rdeepsense.deploy.c.assemble import renamed
from rdeepsense.deploy.c.source import Source

EXAMPLE = """    static model_stream stream; /* yours: keep it in RAM */
    model_decision decision;
    model_begin_stream(&stream);
    /* for each sample, with its time in microseconds; NaN where a channel has no value now */
    model_push(&stream, microseconds, sample, scratch);
    while (model_decide(&stream, &decision, scratch)) {
        if (decision.status == MODEL_OK) { /* %s */ }
    }
"""
CLASSES = "decision.label, -1 where none is probable; decision.probability"
NUMBERS = "decision.mean, decision.low, decision.high"


def samples(source: Source, report: dict[str, Any]) -> list[str]:
    """How samples go in, what is decided when, and what that costs."""
    if "samples" not in report:
        return []
    found, name = report["samples"], source.name.upper()
    what = CLASSES if source.model.is_classifier else NUMBERS
    gap, hop = found["gap_in_microseconds"] / 1e6, found["hop"] / found["rate"]
    lines = [
        "## A stream of samples",
        "",
        *renamed(EXAMPLE % what, source.name).splitlines(),
        "",
        f"Samples of any rate become points at {found['rate']:g} a second, each sensor by itself; "
        f"windows of {found['samples']} points",
        f"are decided every {hop:g} s. A sensor without a value for more than {gap:g} s ends the "
        "window, which",
        f"{name}_NOT_ENOUGH_DATA tells once. Samples before the last one are dropped and counted "
        "in `late`.",
        "",
        "| way | multiply-adds a decision | stream (bytes of RAM) |",
        "|---|---|---|",
    ]
    for way, work in found["multiply_adds"].items():
        chosen = " (this one)" if way == found["way"] else ""
        lines.append(f"| {way}{chosen} | {work:,} | {found['ram_stream'][way]:,} |")
    if found["advice"] is not None:
        lines += ["", f"`{found['advice']}`"]
    return [*lines, "", *_smoothing(found), ""]


def _smoothing(found: dict[str, Any]) -> list[str]:
    own = found["smoothing"]
    if own is None:
        return []
    lines = [
        f"A label comes with a probability of {own['at']:g}, and goes where it is wrong with that. "
        f"A window counts as {own['evidence']:.3g}",
        f"of an independent one, and another class may have begun since the window before with "
        f"the probability {own['change']:.3g}.",
    ]
    judged = found["decided"]
    if judged is None:
        return [*lines, "Not judged: there were no labelled streams."]
    alone, both = judged["alone"], judged["together"]
    return [
        *lines,
        f"On {judged['windows']:,} windows that did not choose them: accuracy "
        f"{alone['accuracy']:.4f} alone and {both['accuracy']:.4f} together, NLL",
        f"{alone['nll']:.4f} and {both['nll']:.4f}, ECE {alone['ece']:.4f} and {both['ece']:.4f}. "
        f"{judged['labelled']:.1%} have a label, of which {judged['right']:.1%} are",
        f"right; {judged['stated']:.1%} was stated.",
    ]
