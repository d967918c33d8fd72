"""model.h: what a firmware engineer reads first."""

from __future__ import annotations

import numpy as np

from rdeepsense.deploy.c.epistemic import of_doubt
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.c.text import FOLDER, labelled, number, remark
from rdeepsense.deploy.folded.model import Floats, Folded

REGRESSION = """/* x: sensor values in their own units. mean and std, in the target's units, get
   @NAME@_OUTPUTS numbers each. Any number of threads may call it, each with its own scratch. */
int @name@_predict(const float *x, float *mean, float *std, @epistemic@void *scratch);
"""
CLASSES = """/* x: sensor values in their own units. probs gets @NAME@_OUTPUTS probabilities. Any
   number of threads may call it, each with its own scratch. */
int @name@_predict(const float *x, float *probs, @epistemic@void *scratch);
"""
SURE = """
/* Whether a prediction is among the surer ones: the threshold was chosen at export. */
int @name@_is_sure(const float *@given@);
"""
EPISTEMIC = """/* epistemic gets @NAME@_OUTPUTS numbers: @what@ that is doubt about what was
   learnt, not noise of the data. Larger ones are of inputs less like the training rows.
   Laplace approximation of the last layer; @where@ it already. */
#define @NAME@_EPISTEMIC 1

"""
INTERVALS = """
/* The interval of a coverage in percent: from mean + LOW std to mean + HIGH std. Where the factors
   of several outputs differ, this is an initialiser with one for each. */
"""


def header(source: Source) -> str:
    """model.h."""
    folded, sure = source.folded, source.sure
    declarations = CLASSES if folded.is_classifier else REGRESSION
    if folded.doubt is not None:
        what, where = ("the part of std", "std holds")
        if folded.is_classifier:
            what, where = ("the standard deviation of each logit", "probs hold")
        declarations = EPISTEMIC.replace("@what@", what).replace("@where@", where) + declarations
    if sure is not None:
        if folded.is_classifier:
            declarations = f"#define @NAME@_SURE_PROB {number(sure[0])}\n\n" + declarations
        declarations += SURE.replace("@given@", "probs" if folded.is_classifier else "std")
    more = {
        "about": _about(folded),
        "factors": source.fill(_factors(folded)),
        "declarations": source.fill(declarations, of_doubt(source)),
    }
    return source.fill((FOLDER / "model.h").read_text(), more)


def _about(folded: Folded) -> str:
    inputs = labelled(folded.features, folded.feature_units, folded.inputs)
    lines = [f"   x[{k}]: {text}" for k, text in enumerate(inputs) if text]
    if folded.classes is not None:
        lines += [f"   Classes of {remark(name)}:" for name in folded.targets or ()]
        lines += [f"   probs[{k}]: {remark(str(label))}" for k, label in enumerate(folded.classes)]
    else:
        outputs = labelled(folded.targets, folded.target_units, folded.outputs)
        lines += [f"   mean[{k}], std[{k}]: {text}" for k, text in enumerate(outputs) if text]
    if folded.missing == "mean":
        lines.append("   An input that is NaN counts as the mean of the training rows.")
    return "".join(f"\n{line}" for line in lines)


def _factors(folded: Folded) -> str:
    intervals = folded.intervals
    if intervals is None:
        return ""
    lines = []
    for k, coverage in enumerate(intervals.coverages):
        percent = round(100 * coverage)
        lines.append(f"#define @NAME@_LOW_{percent} {_factor(intervals.low[k])}")
        lines.append(f"#define @NAME@_HIGH_{percent} {_factor(intervals.high[k])}")
    if intervals.conformal is not None:
        lines.append("/* The conformal one: mean - CONFORMAL std to mean + CONFORMAL std. */")
        for coverage, reach in zip(intervals.coverages, intervals.conformal, strict=True):
            if np.isfinite(reach).all():
                lines.append(f"#define @NAME@_CONFORMAL_{round(100 * coverage)} {_factor(reach)}")
    return INTERVALS + "\n".join(lines) + "\n"


def _factor(values: Floats) -> str:
    """One number where all outputs share it, else a C initialiser."""
    if np.all(values == values[0]):
        return f"({number(values[0])})"
    return "{" + ", ".join(number(v) for v in values) + "}"
