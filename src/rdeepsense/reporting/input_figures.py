"""The pictures of what a model goes by: importance of inputs, and predictions along them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rdeepsense.experiments.report.method_styles import GREEN, ORANGE, PURPLE
from rdeepsense.experiments.report.pictures import Panel, Picture, finish, rows
from rdeepsense.plot.figures import BLUE, GREY, SMALL, VERMILION
from rdeepsense.reporting.dependence import Dependence
from rdeepsense.reporting.importance import SHUFFLES, Importance
from rdeepsense.reporting.inputs import InputNames
from rdeepsense.reporting.subject import Subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 15
COLOURS = ((BLUE, "-"), (VERMILION, "--"), (GREEN, "-."), (PURPLE, ":"), (ORANGE, (0, (5, 1))))


def importance(
    subject: Subject, found: Sequence[Importance], names: InputNames, prefix: str
) -> Picture:
    """Draw how much the NLL rises where an input is shuffled, with two standard errors."""
    shown = found[:SHOWN]
    more = f" The first {len(shown)} of {len(found)}." if len(found) > len(shown) else ""
    first = names.names[shown[0].column]
    draw = partial(_importance, found=shown, names=names)
    return Picture(
        f"{prefix}-importance",
        f"{subject.name}: which inputs matter",
        f"Increase in NLL when one input is shuffled (mean of {SHUFFLES} shuffles); bars are two "
        f"standard errors over rows. Near 0 the input is unused or redundant.{more}",
        "",
        (Panel("", draw, (4.8, 1.3 + 0.27 * len(shown))),),
        says=f"The most important input is {first}, {shown[0].increase:.3g} nats.",
    )


def along(
    subject: Subject, found: Sequence[Dependence], names: InputNames, target: int, prefix: str
) -> Picture:
    """Draw the averaged predictions along each of some inputs, with their band."""
    panels = tuple(
        Panel(
            names.named(one.column) if one.part is None else one.part.named,
            partial(_along, subject=subject, found=one, names=names, target=target),
            (4.3, 3.4),
        )
        for one in found
    )
    caption = (
        "Probabilities of the most frequent classes, averaged over rows"
        if subject.is_classes
        else "Predicted mean, and between the ends of the 90 % intervals, averaged over rows"
    )
    return Picture(
        f"{prefix}-along",
        f"{subject.name}: predictions along the most important inputs",
        f"{caption}, with one input set to each value and all others as they are. Along inputs "
        "that go together, some of these rows could not be.",
        "",
        panels,
        columns=2,
        says=_span(found[0], names, target) if not subject.is_classes else "",
    )


def _span(found: Dependence, names: InputNames, target: int) -> str:
    own = found.mean[:, target]
    name = names.names[found.column] if found.part is None else found.part.named
    return f"Along {name} the mean lies between {own.min():.3g} and {own.max():.3g}."


def _importance(axes: Axes, found: Sequence[Importance], names: InputNames) -> None:
    axes.axvline(0, color=GREY, linewidth=1)
    for place, one in enumerate(found):
        axes.errorbar(one.increase, place, xerr=2 * one.error, fmt="o", color=BLUE, markersize=5.5,
                      capsize=3)  # fmt: skip
    finish(axes, "rise of the NLL (nats)", grid="x")
    rows(axes, [_cut(names.names[one.column]) for one in found])


def _along(axes: Axes, subject: Subject, found: Dependence, names: InputNames, target: int) -> None:
    part = found.part
    levels = found.column in names.levels if part is None else part.is_level
    values = found.values if part is None else np.array([part.shown(v) for v in found.values])
    x = np.arange(len(found.values)) if levels else values
    if found.low is None or found.high is None:
        _probabilities(axes, subject, found, x, levels)
    else:
        low, mean, high = (own[:, target] for own in (found.low, found.mean, found.high))
        if levels:
            axes.errorbar(x, mean, yerr=np.stack([mean - low, high - mean]), fmt="o", color=BLUE,
                          capsize=4)  # fmt: skip
        else:
            axes.fill_between(x, low, high, color=BLUE, alpha=0.25, linewidth=0)
            axes.plot(x, mean, color=BLUE, linewidth=1.8)
    finish(axes, "", subject.named if found.low is not None else "probability (%)")
    if levels:
        word = partial(names.words, found.column) if part is None else part.words
        words = [_cut(word(value), 14) for value in found.values]
        axes.set_xticks(x, words, rotation=35, ha="right", rotation_mode="anchor")


def _probabilities(axes: Axes, subject: Subject, found: Dependence, x: Any, levels: bool) -> None:
    classes: Any = getattr(subject.dist, "classes", None)
    counts = np.bincount(np.asarray(subject.truth, np.int64), minlength=found.mean.shape[1])
    common = np.sort(np.argsort(-counts, kind="stable")[: len(COLOURS)])
    for (colour, dash), k in zip(COLOURS, common, strict=False):
        label = _cut(str(k) if classes is None else str(classes[k]), 18)
        style = {"marker": "o", "linestyle": "none"} if levels else {"linestyle": dash}
        axes.plot(x, 100 * found.mean[:, k], color=colour, linewidth=1.8, label=label, **style)
    axes.set_ylim(0, 101)
    axes.legend(fontsize=SMALL, frameon=False, loc="best")


def _cut(text: str, most: int = 28) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
