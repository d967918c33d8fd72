"""What a page knows of its model beside the code: names, units, ranges, factors, curves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.data.dates import formula
from rdeepsense.deploy.c.report import C99Report
from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.web.curve import REACH, standard_curve
from rdeepsense.deploy.web.sensors import phone_channels
from rdeepsense.fitting.fitted import Fitted

MANY = 16  # outputs from which on they are a wave and no table
DIGITS, SHOWN = 6, 4


def face_of(fitted: Fitted, senses: bool) -> str:
    """Return what a page shows: "windows" of a stream of samples, a "table" or a "wave"."""
    if senses:
        return "windows"
    many = not fitted.target.is_classes and fitted.target.outputs >= MANY
    return "wave" if len(fitted.inputs.shape) > 1 or many else "table"


def about(
    fitted: Fitted, report: C99Report, rows: LabelledRows, epistemic: str | None, senses: bool
) -> dict[str, Any]:
    """Return plain values for JSON; `senses` says whether the C takes samples."""
    facts = report.facts
    ranges = _ranges(facts, rows.X)
    found: dict[str, Any] = {
        "face": face_of(fitted, senses),
        "dtype": report.dtype,
        "version": facts.version,
        "source": facts.source[:16],
        "head": facts.head,
        "window": list(facts.window),
        "inputs": [_input(facts, k, ranges) for k in range(facts.inputs)],
        "outputs": facts.outputs,
        "targets": list(facts.targets or (fitted.recipe.label if fitted.recipe else ())),
        "units": list(facts.target_units or ()),
        "classes": None if facts.classes is None else [str(c) for c in facts.classes],
        "missing": facts.missing,
        "epistemic": report.epistemic is not None,
        "live": None if report.live is None else report.live.coverage,
        "quality": None if report.quality is None else _figures(report.quality.after),
    }
    if len(rows.y) and facts.intervals is not None:
        y = np.asarray(rows.y, dtype=np.float64).reshape(len(rows.y), -1)
        found["range"] = [_rounded(ends) for ends in zip(y.min(0), y.max(0), strict=True)]
    if len(rows.X) and found["face"] == "wave":
        first = np.asarray(rows.X[0], dtype=np.float64).ravel()
        found["example"] = [None if np.isnan(v) else v for v in _rounded(first, 5)]
    if facts.intervals is not None:
        found["coverages"] = [float(c) for c in facts.intervals.coverages]
        # As many digits as there are: the page's ends are those of `predict_interval`.
        found["low"] = facts.intervals.low.tolist()
        found["high"] = facts.intervals.high.tolist()
    curve = standard_curve(fitted, epistemic)
    if curve is not None:
        shared = curve[:1] if np.allclose(curve, curve[:1]) else curve
        found["curve"] = {"reach": REACH, "density": [_rounded(own, 4) for own in shared]}
    if senses and fitted.recipe is not None:
        recipe = fitted.recipe
        typical = _typical(rows.X)
        found["recipe"] = {
            **recipe.to_json(),
            "length": recipe.length,
            "step": recipe.step,
            "phone": [vars(one) for one in phone_channels(recipe, facts.feature_units, typical)],
        }
    return found


def _input(facts: Facts, k: int, ranges: dict[str, Floats]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": facts.features[k] if facts.features else f"x{k}",
        "unit": (facts.feature_units[k] if facts.feature_units else "") or _computed(facts, k),
    }
    for category in () if facts.encoding is None else facts.encoding.categories:
        if category.column == k:
            return found | {"levels": list(category.levels), "typical": 0}
    if facts.missing == "mean" or (
        facts.missing == "indicator" and facts.guard is not None and facts.guard.missing[k] > 0
    ):
        found["missing"] = True
    # A page begins at the typical values, and computes with those that it shows.
    digits = {"typical": SHOWN}
    return found | {
        name: _rounded(values[k : k + 1], digits.get(name, DIGITS))[0]
        for name, values in ranges.items()
    }


def _computed(facts: Facts, k: int) -> str:
    """Say how an input is computed of a date; nothing of another."""
    said = formula(facts.features[k], facts.dated) if facts.features else None
    return f"= {said}" if said else ""


def _ranges(facts: Facts, X: NDArray[Any]) -> dict[str, Floats]:
    """Return of each input what it reached in the rows at hand, its median, and its guard."""
    found: dict[str, Floats] = {}
    rows = np.asarray(X, dtype=np.float64).reshape(-1, facts.inputs)
    if len(rows):
        kept = np.where(np.isnan(rows).all(0), 0.0, rows)
        found["least"], found["most"] = np.nanmin(kept, 0), np.nanmax(kept, 0)
        found["typical"] = np.nanmedian(kept, 0)
    if facts.guard is not None:
        found["low"], found["high"] = facts.guard.low, facts.guard.high
    return found


def _typical(X: NDArray[Any]) -> Floats | None:
    """Return how large the values of each channel are, the median of their sizes."""
    if not len(X):
        return None
    flat = np.abs(np.asarray(X, dtype=np.float64)).reshape(-1, X.shape[-1])
    return np.asarray(np.nanmedian(flat, axis=0))


def _rounded(values: Any, digits: int = DIGITS) -> list[float]:
    return [float(f"{v:.{digits}g}") for v in values]


def _figures(after: dict[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.4g}") for name, value in after.items() if np.isfinite(value)}
