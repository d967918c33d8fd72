"""The alpha study (the paper's figure 9): NLL and deviation area, or negative MEFP, over alpha."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rdeepsense.experiments.report.method_styles import PAPER
from rdeepsense.experiments.report.pictures import Panel, Picture, finish, legend_below
from rdeepsense.plot.figures import BLUE, GREY, INK, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows = Sequence[Mapping[str, Any]]


def alpha_study(name: str, task: Mapping[str, Any], origin: str) -> Picture | None:
    """Two panels, one above the other; None where no study was made."""
    study = sorted(task.get("alpha_study") or [], key=lambda row: row["alpha"])
    classes = task["kind"] == "classification"
    chosen = (task["methods"].get(PAPER, {}).get("chosen") or {}).get("alpha")
    chosen = sorted(
        {a for a in (chosen if isinstance(chosen, list) else [chosen]) if a is not None}
    )
    shown = [("nll", 1.0, "NLL", "NLL, full (nats)", BLUE, "o")]
    if classes:
        shown.append(("mefp", -1.0, "Negative MEFP", "negative MEFP (nats)", VERMILION, "s"))
    else:
        shown.append(("deviation_area", 1.0, "Deviation area", "deviation area", VERMILION, "s"))
    floor = task.get("floor")
    panels = []
    for key, sign, title, label, colour, marker in shown:
        if any(row.get(key) is not None for row in study):
            draw = partial(_draw, study=study, key=key, sign=sign, label=label, colour=colour,
                           marker=marker, chosen=chosen,
                           floor=floor if key == "deviation_area" else None)  # fmt: skip
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


def _draw(
    axes: Axes,
    study: Rows,
    key: str,
    sign: float,
    label: str,
    colour: str,
    marker: str,
    chosen: Sequence[float],
    floor: float | None,
) -> None:
    found = [row for row in study if row.get(key) is not None]
    errors = [2 * (row.get(f"{key}_se") or 0.0) for row in found]
    axes.errorbar([row["alpha"] for row in found], [sign * row[key] for row in found],
                  yerr=errors if any(errors) else None, color=colour, marker=marker, markersize=6,
                  capsize=3, linewidth=1.8)  # fmt: skip
    for row in found:
        single = [sign * value for value in row.get("by_seed", {}).get(key, ())]
        axes.plot([row["alpha"]] * len(single), single, ".", color=INK, markersize=5, zorder=3)
    if floor is not None:
        axes.axhline(floor, color=GREY, linestyle="--", linewidth=1.2, label=f"floor {floor:.3f}")
        axes.set_ylim(bottom=0)
    words = f"chosen on validation rows: {', '.join(f'{alpha:g}' for alpha in chosen)}"
    for number, alpha in enumerate(chosen):
        axes.axvline(alpha, color=GREY, linestyle=":", linewidth=1.6,
                     label="_" if number else words)  # fmt: skip
    finish(axes, "alpha", label)
    if floor is not None or chosen:
        legend_below(axes)
