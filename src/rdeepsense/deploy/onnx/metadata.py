"""What an ONNX file says of itself: text as it is, everything else as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from rdeepsense import __version__
from rdeepsense.data.scaling import Scaler
from rdeepsense.deploy.folded.facts import Facts, Intervals
from rdeepsense.deploy.folded.fields import TEXTS
from rdeepsense.deploy.options import Options
from rdeepsense.deploy.quality import Quality
from rdeepsense.encoding import Encoding
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.status import Status


# Any: a ModelProto, as onnx comes without types.
def describe(
    proto: Any, fitted: Fitted, facts: Facts, options: Options, found: Quality | None
) -> None:
    """Add the metadata of a model to its graph."""
    shape, scaler, encoding = fitted.inputs.shape, fitted.inputs.scaler, fitted.inputs.encoding
    proto.producer_name, proto.producer_version = "rdeepsense", __version__
    proto.doc_string = (
        f"x: {' x '.join(map(str, shape))} sensor values in their own units. A row with "
        + ("an infinite" if facts.missing != "refuse" else "a missing or infinite")
        + " value gives NaN."
        + (" A category is the number of its level, see levels." if _levels(facts) else "")
    )
    said: dict[str, object] = {
        "rdeepsense_version": __version__,
        "trained_with_version": facts.version,
        "model_sha256": facts.source,
        "head": facts.head,
        "dtype": options.dtype,
        "calibration": facts.calibration or "none",
        "missing": facts.missing,
        "input_shape": list(shape),
        **_moments(scaler, encoding),
        **_levels(facts),
        **_ranges(fitted, facts),
    }
    for key in TEXTS:
        if (texts := getattr(facts, key)) is not None:
            said[key] = list(texts)
    if facts.classes is not None:
        said["classes"] = facts.classes.tolist()
    if facts.intervals is not None:
        said["intervals"] = _factors(facts.intervals)
    if options.epistemic is not None:
        said["epistemic"] = options.epistemic
    if found is not None:
        said["quality"] = found.to_json()
    for key, value in said.items():
        text = value if isinstance(value, str) else json.dumps(value, allow_nan=False)
        proto.metadata_props.add(key=key, value=text)


def _moments(scaler: Scaler, encoding: Encoding | None) -> dict[str, object]:
    """Say what inputs were like; null for a category."""
    if encoding is None:
        return {"input_mean": scaler.shift.tolist(), "input_std": scaler.scale.tolist()}
    place = {column: k for k, column in enumerate(encoding.numbers)}
    return {
        name: [float(values[place[k]]) if k in place else None for k in range(encoding.inputs)]
        for name, values in (("input_mean", scaler.shift), ("input_std", scaler.scale))
    }


def _levels(facts: Facts) -> dict[str, object]:
    """Say the names of levels, in the order of their codes, by the number of the input."""
    categories = () if facts.encoding is None else facts.encoding.categories
    return {"levels": {str(c.column): list(c.levels) for c in categories}} if categories else {}


def _ranges(fitted: Fitted, facts: Facts) -> dict[str, object]:
    """Say what inputs `status` accepts, and what its numbers mean."""
    if fitted.guard is None:
        return {}
    return {
        "input_low": fitted.guard.low.tolist(),
        "input_high": fitted.guard.high.tolist(),
        "status": {
            flag.name: int(flag)
            for flag, is_told in (
                (Status.MISSING, True),
                (Status.OUT_OF_RANGE, True),
                (Status.UNKNOWN_LEVEL, fitted.guard.levels is not None),
                (Status.UNSURE, facts.refusal is not None),
            )
            if is_told
        },
    }


def _factors(intervals: Intervals) -> dict[str, dict[str, list[float]]]:
    """By coverage, one factor for each output: mean + low std to mean + high std."""
    factors = {}
    for k, coverage in enumerate(intervals.coverages):
        ends = {"low": intervals.low[k].tolist(), "high": intervals.high[k].tolist()}
        if intervals.conformal is not None and np.isfinite(intervals.conformal[k]).all():
            ends["conformal"] = intervals.conformal[k].tolist()
        factors[f"{coverage:g}"] = ends
    return factors
