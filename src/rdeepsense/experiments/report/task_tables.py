"""The paper's tables 3 to 6, ours beside the paper's figures, and figures it does not give."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rdeepsense.experiments.paper import published
from rdeepsense.experiments.paper.task_results import Figures, TaskResults
from rdeepsense.experiments.paper.trainings import EnergySource
from rdeepsense.experiments.report.cell_text import NONE, area, count, number, percent
from rdeepsense.experiments.report.method_styles import PAPER, RECOMMENDED
from rdeepsense.experiments.text_table import TextTable

CONSTANT = 0.5 * math.log(2 * math.pi)  # what the paper's Gaussian NLL leaves out, per value
NUMBERS = {"BPEst": 3, "NYCommute": 4, "GasSen": 5, "HHAR": 6}  # of the paper's tables
# MEFP is never in bold: it rewards uniform guesses.
_BETTER = {"mae": min, "nll": min, "as_paper": min, "accuracy": max, "f1": max}


def paper_table(name: str, task: TaskResults) -> TextTable:
    """Return MAE and NLL, or accuracy, F1, NLL and MEFP: ours with errors, then the paper's."""
    classes = task.is_classification
    columns = {"accuracy": "Accuracy (%)", "f1": "F1", "nll": "NLL (nats)", "mefp": "MEFP (nats)"}
    if not classes:
        unit = f" ({task.unit})" if task.unit else ""
        columns = {"mae": f"MAE{unit}", "nll": "NLL, full (nats)",
                   "as_paper": "NLL, paper's convention"}  # fmt: skip
    # The full NLL of a regression stands alone: the paper's figures are in its own convention.
    alone = {"nll"} if not classes else set()
    header = ["Method", "Passes"]
    for key, label in columns.items():
        header += [label] if key in alone else [label, "in the paper"]
    rows, strong = [], _recommended(task.methods)
    for method, cell in task.methods.items():
        row = [method, count(cell.passes)]
        for key in columns:
            row.append(number(*ours(cell.figures, key)))
            row += [] if key in alone else [_theirs(name, method, key)]
        rows.append(row)
    for key, best in _BETTER.items():
        values = [ours(cell.figures, key)[0] for cell in task.methods.values()]
        known = [value for value in values if value is not None]
        if key in columns and known:
            strong.add((values.index(best(known)), header.index(columns[key])))
    title = f"{name}: {'accuracy, F1, NLL and MEFP' if classes else 'MAE and NLL'}"
    if name in NUMBERS:
        title += f" (the paper's table {NUMBERS[name]})"
    return TextTable(title, _caption(task), header, rows, strong)


def ours(figures: Figures, key: str) -> tuple[float | None, float | None]:
    """Return a figure and its error; accuracy in per cent, NLL also in the paper's convention."""
    source = "nll" if key == "as_paper" else key
    value, error = figures.get(source), figures.get(f"{source}_se")
    if value is None:
        return None, None
    if key == "accuracy":
        return 100 * value, None if error is None else 100 * error
    return value - (CONSTANT if key == "as_paper" else 0.0), error


def _theirs(task: str, method: str, key: str) -> str:
    value = published.figure(task, method, "nll" if key == "as_paper" else key)
    if value is None:
        return NONE
    if key == "accuracy":
        return f"{100 * value:.2f}"
    return f"{value:,.2f}" if key in ("mae", "as_paper") else f"{value:.3f}"


def _caption(task: TaskResults) -> str:
    by = task.grouped_by
    seeds = max((cell.seeds for cell in task.methods.values()), default=1)
    words = (
        f"± standard error over test {by + 's' if by else 'rows'}"
        + (f" and {seeds} trainings, of which these are the means" if seeds > 1 else "")
        + "; bold: the best of ours, and the name of the recommended model. "
    )
    if task.is_classification:
        words += "MEFP, the entropy of wrong predictions, rewards uniform guesses: none is bold. "
    else:
        words += (
            f"The paper leaves ½ log 2π = {CONSTANT:.4f} per value out of its NLL: its figures "
            "compare with the column “paper's convention”, our full NLL minus that constant. "
        )
    return words + (
        f"{RECOMMENDED} is the recommended automatic model, {PAPER} the paper's own method. A "
        "method without figures “in the paper” has no counterpart there."
    )


def beyond(name: str, task: TaskResults) -> TextTable:
    """Return the figures that the paper does not report, for every method."""
    unit = f" ({task.unit})" if task.unit else ""
    labels = {
        "deviation_area": "Deviation area",
        "deviation_area_signed": "Signed",
        "coverage_90": "In the 90\u00a0% interval (%)",
        "sharpness": f"Sharpness{unit}",
        "rmse": f"RMSE{unit}",
        "crps": f"CRPS{unit}",
        "ece": "ECE",
        "brier": "Brier score",
        "kl": "KL to the truth (nats)",
    }
    cells = task.methods
    keys = [k for k in labels if any(c.figures.get(k) is not None for c in cells.values())]
    rows = [
        [method, *(_extra(cell.figures, key) for key in keys), number(cell.fit_seconds)]
        for method, cell in cells.items()
    ]  # fmt: skip
    header = ["Method", *(labels[key] for key in keys), "Training (s)"]
    words = []
    if task.floor is not None:
        words.append(
            f"Floor of the deviation area at this number of test values: {task.floor:.4f}, "
            "which a perfect model has on average. Signed: + intervals too wide, − too narrow."
        )
    if "kl" in keys:
        words.append(
            "KL is the distance from the true distribution, which the simulator knows; 0 is "
            "perfect."
        )
    words.append("Methods of one family share their training.")
    title = f"{name}: what the paper does not report"
    return TextTable(title, " ".join(words), header, rows, _recommended(task.methods))


def _recommended(methods: Iterable[str]) -> set[tuple[int, int]]:
    """Return the cell with the name of the recommended model, for bold."""
    return {(place, 0) for place, method in enumerate(methods) if method == RECOMMENDED}


def _extra(figures: Figures, key: str) -> str:
    if key.startswith("deviation_area"):
        return area(figures, key)
    if key == "coverage_90":
        return percent(figures.get(key))
    return number(figures.get(key), figures.get(f"{key}_se"))


def costs(name: str, task: TaskResults, device: EnergySource | None) -> TextTable | None:
    """Return passes, arithmetic, memory, time and energy of one prediction; None without any."""
    rows = [
        [method, count(cell.passes), number(own.microseconds), count(own.multiply_adds),
         count(own.bytes), number(own.millijoules), own.energy or NONE]
        for method, cell in task.methods.items()
        if (own := cell.cost) is not None
    ]  # fmt: skip
    if not rows:
        return None
    header = ["Method", "Passes", "Time (µs)", "Multiply-adds", "Bytes", "Energy (mJ)", "Energy is"]
    energy = f"{device.profile}; {device.how}" if device else "this machine; "
    caption = (
        "Time: one row at a time on one thread of the machine of this run, passes one after the "
        f"other. Energy: {energy}"
    )
    title = f"{name}: cost of one prediction"
    return TextTable(title, caption, header, rows, _recommended(row[0] for row in rows))
