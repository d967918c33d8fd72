"""model.h: what a firmware engineer reads first."""

from __future__ import annotations

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.data.dates import CLOCK
from rdeepsense.deploy.c.encoding import about, level_macros
from rdeepsense.deploy.c.inputs import CModel
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.c.text import labelled, number, remark
from rdeepsense.deploy.c.watch import watch_sizes

SCRATCH = """
/* What predict needs for its sums; the caller gives it, aligned for float. */"""
REACH = """
/* An input further than this many standard deviations of the training rows from their mean is moved
   there, and out of range. */"""
INTERVALS = """
/* The interval of a coverage in percent: from mean + LOW std to mean + HIGH std. Where the factors
   of several outputs differ, this is an initialiser with one for each. */"""


def header(source: Source) -> str:
    """model.h."""
    about = f"\n   Weights: {source.values['dtype']}. Layers: {source.values['widths']}."
    banner = source.banner(about + _about(source.model))
    return banner + source.assembled("model.h", {"sizes.h": sizes(source)})


def sizes(source: Source) -> str:
    """The section of model.h that is the model's own: what the caller may need as a number."""
    model, name = source.model, source.name.upper()
    lines = [
        f"#define {name}_INPUTS {model.inputs}",
        f"#define {name}_OUTPUTS {model.outputs}",
        SCRATCH,
        f"#define {name}_SCRATCH_BYTES {source.scratch_bytes()}",
        REACH,
        f"#define {name}_REACH {number(model.network.reach)}",
        *_factors(model, name),
        *level_macros(model),
        *watch_sizes(model, name),
        *([] if model.live is None else model.live.sizes(name)),
        *source.more_sizes(),
    ]
    return "\n".join(lines) + "\n"


def _about(model: CModel) -> str:
    inputs = labelled(model.features, model.feature_units, model.channels)
    for category in () if model.encoding is None else model.encoding.categories:
        said = about(category)
        named = inputs[category.column]
        inputs[category.column] = f"{named}, {said}" if named else said
    what = "x" if model.window == 1 else "channel "
    formulas = model.formulas
    lines = []
    for k, text in enumerate(inputs):
        lines += [f"   {what}[{k}]: {text}"] * bool(text)
        if k in formulas:
            lines.append(f"      = {formulas[k]}")
    if formulas:
        lines.append(f"   {CLOCK}")
    if model.classes is not None:
        lines += [f"   Classes of {remark(name)}:" for name in model.targets or ()]
        lines += [f"   probs[{k}]: {remark(str(label))}" for k, label in enumerate(model.classes)]
    else:
        outputs = labelled(model.targets, model.target_units, model.outputs)
        lines += [f"   mean[{k}], std[{k}]: {text}" for k, text in enumerate(outputs) if text]
    if model.missing == "mean":
        lines.append("   An input that is NaN counts as the mean of the training rows.")
    if model.missing == "indicator":
        lines.append("   An input that is NaN is missing, which the model knows of some inputs.")
    return "".join(f"\n{line}" for line in lines)


def _factors(model: CModel, name: str) -> list[str]:
    intervals = model.intervals
    if intervals is None:
        return []
    lines = [INTERVALS]
    for k, coverage in enumerate(intervals.coverages):
        percent = round(100 * coverage)
        lines.append(f"#define {name}_LOW_{percent} {_factor(intervals.low[k])}")
        lines.append(f"#define {name}_HIGH_{percent} {_factor(intervals.high[k])}")
    if intervals.conformal is not None:
        lines.append("/* The conformal one: mean - CONFORMAL std to mean + CONFORMAL std. */")
        for coverage, reach in zip(intervals.coverages, intervals.conformal, strict=True):
            if np.isfinite(reach).all():
                lines.append(f"#define {name}_CONFORMAL_{round(100 * coverage)} {_factor(reach)}")
    return lines


def _factor(values: Floats) -> str:
    """One number where all outputs share it, else a C initialiser."""
    if np.all(values == values[0]):
        return f"({number(values[0])})"
    return "{" + ", ".join(number(v) for v in values) + "}"
