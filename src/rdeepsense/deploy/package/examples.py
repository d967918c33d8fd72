"""The examples of a package: a sketch that reads sensors, and one that replays stored rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.c.assemble import Assembly
from rdeepsense.deploy.c.inputs import predicted
from rdeepsense.deploy.c.selftest import rows_in_range, tolerance
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.c.text import remark, table
from rdeepsense.deploy.package.manifests import FILES
from rdeepsense.deploy.package.motion import pace, reading, units
from rdeepsense.windowing.recipe import Recipe

MOST_ROWS, MOST_WINDOWS = 8, 3  # a window takes kilobytes of flash
LONGEST_WORD = 24
MOST_DIGITS = 6


def examples(source: Source, X: NDArray[Any], recipe: Recipe | None) -> dict[str, dict[str, str]]:
    """Give the files of each example by name."""
    model = source.model
    rows = _chosen(source, rows_in_range(source, X))
    told = predicted(source.folded, source.network, rows)
    digits = 3 if model.is_classifier else _digits(told[1])
    switches = dict(source.switches)
    # A stream that runs on is another function than the one whose answers are stored.
    runs_on = switches["STEPWISE"] and not switches["STEPWISE_EXACT"]
    switches["REPLAYED"] = switches["SAMPLED"] and not runs_on
    sections = {
        "named.h": _names(source) + ("" if model.is_classifier else f"#define DIGITS {digits}\n"),
        "typical.h": _table(source, "typical", rows[0], "    static "),
        "units.h": units(model, recipe),
        "reading.h": reading(model, recipe),
        "pace.h": pace(model, recipe),
    }

    def assembled(file: str) -> str:
        text = Assembly(source.name, switches, sections).text(FILES / file)
        return text.replace("model.h", f"{source.name}.h")

    for shared in ("why.h", "saying.h"):
        sections[shared] = assembled(shared)
    first = "predict" if model.window == 1 else "motion"
    return {
        first: {f"{first}.ino": assembled(f"{first}.ino")},
        "replay": {
            "replay.ino": assembled("replay.ino"),
            "replay.c": assembled("replay.c"),
            "replay.h": assembled("replay.h"),
            "stored.h": _stored(source, rows, told, digits),
        },
    }


def _chosen(source: Source, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Take few rows, of classes one of each that is predicted first."""
    most = MOST_ROWS if source.model.window == 1 else MOST_WINDOWS
    if not source.model.is_classifier:
        return rows[:most]
    best = predicted(source.folded, source.network, rows)[0].argmax(1).tolist()
    order = sorted(range(len(rows)), key=lambda k: (best[k] in best[:k], k))
    return rows[order[:most]]


def _stored(
    source: Source, rows: NDArray[np.float32], told: list[NDArray[np.float64]], digits: int
) -> str:
    """stored.h: rows, and what the exported model says of them."""
    name = source.name.upper()
    tables = [table("float", "rows", rows, f"ROWS * {name}_INPUTS")]
    for result, values in list(zip(source.model.results, told, strict=True))[:2]:
        if result != "epistemic":
            tables.append(table("float", f"expected_{result}", values, f"ROWS * {name}_OUTPUTS"))
    lines = [
        f"#define ROWS {len(rows)}",
        f"#define TOLERANCE {tolerance(source)}",
        f"#define DIGITS {digits} /* behind the point */",
        f"#define SCALE {10**digits}u",
        "",
        _names(source),
    ]
    return source.banner() + "\n".join(lines + [f"static {one}" for one in tables])


def _names(source: Source) -> str:
    """The words for what comes out: labels, or names of targets."""
    model, name = source.model, source.name.upper()
    if model.classes is not None:
        words = [remark(str(label))[:LONGEST_WORD] for label in model.classes]
    elif model.targets is not None:
        words = [remark(target)[:LONGEST_WORD] for target in model.targets]
    else:
        words = [f"output {k}" for k in range(model.outputs)]
    quoted = ", ".join(f'"{word}"' for word in words)
    return f"static const char *const names[{name}_OUTPUTS] = {{{quoted}}};\n"


def _table(source: Source, name: str, row: NDArray[np.float32], before: str) -> str:
    return before + table("float", name, row, f"{source.name.upper()}_INPUTS")


def _digits(std: NDArray[np.float64]) -> int:
    """Digits behind the point that show a hundredth of the standard deviation."""
    least = float(np.min(std))
    return min(MOST_DIGITS, max(0, 2 - math.floor(math.log10(least)))) if least > 0 else MOST_DIGITS
