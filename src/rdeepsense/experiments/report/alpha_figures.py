"""The alpha study (the paper's figure 9): NLL and deviation area, or negative MEFP, over alpha."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from rdeepsense.experiments.paper.task_results import AlphaPoint, TaskResults
from rdeepsense.experiments.report.method_styles import PAPER
from rdeepsense.experiments.report.pictures import Panel, Picture, finish, legend_below
from rdeepsense.plot.figures import BLUE, GREY, INK, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def alpha_study(name: str, task: TaskResults, origin: str) -> Picture | None:
    """Draw two panels, one above the other; None where no study was made."""
    study = sorted(task.alpha_study, key=lambda point: point.alpha)
    shown = [("nll", 1.0, "NLL", "NLL, full (nats)", BLUE, "o")]
    if task.is_classification:
        shown.append(("mefp", -1.0, "Negative MEFP", "negative MEFP (nats)", VERMILION, "s"))
    else:
        shown.append(("deviation_area", 1.0, "Deviation area", "deviation area", VERMILION, "s"))
    panels, chosen = [], _chosen(task)
    for key, sign, title, label, colour, marker in shown:
        if any(point.figures.get(key) is not None for point in study):
            draw = partial(_draw, study=study, key=key, sign=sign, label=label, colour=colour,
                           marker=marker, chosen=chosen,
                           floor=task.floor if key == "deviation_area" else None)  # fmt: skip
            panels.append(Panel(f"{title} over alpha", draw, (4.8, 3.0)))
    if not panels:
        return None
    return Picture(
        f"{name}-alpha",
        f"{name}: the choice of alpha",
        "alpha = 0 trains by the likelihood alone; towards 1 the error term takes over. Bars are "
        "± 2 standard errors, over test rows and trainings; the small dots are single trainings. "
        "All have the same test rows, so that differences between alphas are surer than the bars. "
        "Lower is better in both.",
        origin,
        tuple(panels),
        columns=1,
    )


def _chosen(task: TaskResults) -> list[float]:
    """Return the values of alpha that the trainings of the paper's method chose."""
    paper = task.methods.get(PAPER)
    chosen = None if paper is None or paper.chosen is None else paper.chosen.get("alpha")
    values = chosen if isinstance(chosen, list) else [chosen]
    return sorted({value for value in values if isinstance(value, float | int)})


def _draw(
    axes: Axes,
    study: Sequence[AlphaPoint],
    key: str,
    sign: float,
    label: str,
    colour: str,
    marker: str,
    chosen: Sequence[float],
    floor: float | None,
) -> None:
    found = [(p, value) for p in study if (value := p.figures.get(key)) is not None]
    errors = [2 * (point.figures.get(f"{key}_se") or 0.0) for point, _ in found]
    axes.errorbar([point.alpha for point, _ in found], [sign * value for _, value in found],
                  yerr=errors if any(errors) else None, color=colour, marker=marker, markersize=6,
                  capsize=3, linewidth=1.8)  # fmt: skip
    for point, _ in found:
        single = [sign * value for value in point.by_seed.get(key, ()) if value is not None]
        axes.plot([point.alpha] * len(single), single, ".", color=INK, markersize=5, zorder=3)
    if floor is not None:
        axes.axhline(floor, color=GREY, linestyle="--", linewidth=1.2, label=f"floor {floor:.3f}")
        axes.set_ylim(bottom=0)
    words = f"chosen on validation rows: {', '.join(f'{alpha:g}' for alpha in chosen)}"
    for place, alpha in enumerate(chosen):
        axes.axvline(alpha, color=GREY, linestyle=":", linewidth=1.6,
                     label="_" if place else words)  # fmt: skip
    finish(axes, "alpha", label)
    if floor is not None or chosen:
        legend_below(axes)
