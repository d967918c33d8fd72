"""What C needs to say UNSURE and UNLIKE; the code is `runtime/refuse.h` and `runtime/novelty.h`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.compact_novelty import FARTHEST, FURTHEST, SCORE_STEP
from rdeepsense.deploy.c.inputs import CModel
from rdeepsense.deploy.c.text import number
from rdeepsense.status import Status

UNLIKE = """
/* A row whose surprise is above this is MODEL_UNLIKE; one healthy row in a hundred is. */"""
SUMMARY = 7  # numbers that are kept of an interval, of each channel


def watch_arrays(model: CModel) -> dict[str, NDArray[Any]]:
    """Return the tables by name; of factors the upper triangle, column by column."""
    found: dict[str, NDArray[Any]] = {}
    if model.refusal is not None and not model.is_classifier:
        found["refuse"] = 1 / (model.refusal.spread * model.outputs)
    if (own := model.novelty) is None:
        return found
    columns, rows = np.tril_indices(own.components)
    return found | {
        "novelty_lines": own.lines,
        "novelty_knots": own.knots,
        "novelty_scores": own.scores.astype(np.int8),
        "novelty_axes": own.axes.astype(np.int8),
        "novelty_steps": own.axis_steps,
        "novelty_bytes": own.factors[:, rows, columns].astype(np.int8),
        "novelty_sizes": own.factor_steps,
        "novelty_means": own.means,
        "novelty_levels": own.constants,
        **({} if model.missing == "refuse" else {"novelty_centre": own.centre}),
    }


def watch_sizes(model: CModel, name: str) -> list[str]:
    """Return the macros of model.h."""
    if model.novelty is None:
        return []
    lines = [UNLIKE.replace("MODEL", name)]
    lines.append(f"#define {name}_UNLIKE_ABOVE {number(model.novelty.threshold[0])}")
    if model.window > 1:
        lines.append(f"#define {name}_SUMMARY {SUMMARY} /* numbers of a channel of an interval */")
    return lines


def watch_config(model: CModel) -> list[str]:
    """Return the macros of model.c."""
    lines = []
    if model.refusal is not None:
        lines.append(f"#define REFUSED_ABOVE {number(model.refusal.threshold[0])}")
        flags = 0 if model.missing == "mean" else int(Status.MISSING)
        lines.append(f"#define REFUSED_STATUS {flags} /* flags of rows that are always unsure */")
    if (own := model.novelty) is not None:
        sizes = {
            "NOVELTY_INPUTS": _inputs(model),
            "KNOTS": own.knots.shape[1],
            "COMPONENTS": own.components,
            "GAUSSIANS": own.gaussians,
        }
        lines += [f"#define {name} {size}u" for name, size in sizes.items()]
        if model.guard is not None:
            lines.append(f"#define PER_WIDTH {number(1 / own.width[0])} /* of doubt */")
        lines.append(f"#define SCORE_STEP {number(SCORE_STEP)}")
        lines.append(f"#define MOST_SCORE {number(FARTHEST)}")
        lines.append(f"#define MOST_INPUT {number(FURTHEST)}")
    return lines


def _inputs(model: CModel) -> int:
    """Return how many inputs a novelty reads: all but categories."""
    if model.encoding is None:
        return model.channels
    return len(model.encoding.numbers)
