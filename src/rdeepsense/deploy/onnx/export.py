"""A fitted estimator as one ONNX file, run by ONNX Runtime before it is written.

The graph (see `onnx_graph`, and `onnx_modules` for networks that are not plain dense layers) takes
x (batch, inputs), or windows (batch, time, channels), in raw sensor units, float32, and gives mean
and std, or probs, and with a doubt epistemic, each (batch, outputs). What else a caller needs is in
the file's metadata.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense import __version__
from rdeepsense.deploy.c.export import prepare
from rdeepsense.deploy.fine_tune import check_dtype, improved
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.folded.model import Folded, Intervals
from rdeepsense.deploy.folded.runtime import TEXTS
from rdeepsense.deploy.networks import FloatNetwork
from rdeepsense.deploy.onnx.graph import INPUT, OPSET, model
from rdeepsense.deploy.onnx.modules import fold_last, module_graph, needs_torch
from rdeepsense.deploy.quality import check_change, quality
from rdeepsense.deploy.quantise import Int8Network
from rdeepsense.errors import InputError, require
from rdeepsense.files import write_whole
from rdeepsense.progress import Progress

DTYPES = ("float32", "int8")
AGREEMENT = 1e-5  # of the std, and of a probability
DOUBT_AGREEMENT = 1e-4  # of the epistemic std: its sums may be small differences of large numbers
ROUNDING = 4 * float(np.finfo(np.float32).eps)  # of an output's largest mean
DRAWN_ROWS = 256


@dataclass(frozen=True)
class OnnxModel(Folded):
    """A folded model whose passes are those of ONNX Runtime, on one thread."""

    session: Any = field(default=None, compare=False, repr=False)

    def raw(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """The outputs themselves: `finish` is inside the graph."""
        found = self._run(X)
        return found[0] if self.is_classifier else found[:2]

    def finish(self, raw: NDArray[Any]) -> NDArray[np.float64]:
        return raw

    def epistemic(self, X: NDArray[Any]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self._run(X)[-1]
        return found

    def _run(self, X: NDArray[Any]) -> NDArray[np.float64]:
        found = self.session.run(None, {INPUT: np.asarray(X, dtype=np.float32)})
        return np.asarray(found, dtype=np.float64)


def export_onnx(
    estimator: Any,
    path: str | os.PathLike[str],
    dtype: str = "float32",
    max_nll_change: float = 0.02,
    rows: tuple[NDArray[Any], NDArray[Any]] | None = None,
    epistemic: str | None = None,
    fine_tune: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the ONNX file of a model; returns what was found out about it.

    `rows` (X, y) replace those in the model file. `epistemic` is as for `fold`. With `fine_tune` an
    int8 network whose NLL moves by more than the bound is trained to round better.
    """
    if dtype not in DTYPES:
        raise InputError(f"--dtype {dtype} is not for onnx; accepted: {', '.join(DTYPES)}")
    if fine_tune:
        check_dtype(dtype)
    by_torch = needs_torch(estimator)
    if by_torch and dtype != "float32":
        raise InputError(
            f"--dtype {dtype} is for fully-connected networks; accepted for this one: float32"
        )
    if by_torch and epistemic is not None:
        raise InputError(
            f"--epistemic {epistemic} is for fully-connected networks; export this one without it"
        )
    folded = fold_last(estimator) if by_torch else fold(estimator, epistemic)
    X, y = estimator.fitted_.kept_rows if rows is None else rows
    tuned: dict[str, Any] = {}
    if by_torch:
        proto = module_graph(estimator, folded)
    else:
        # In int8 half of the rows to calibrate on, the other half to judge by.
        network: FloatNetwork | Int8Network
        if fine_tune:
            network, tuned = improved(estimator, folded, (X, y), max_nll_change, progress)
        else:
            network = prepare(folded, dtype, X[::2])
        proto = model(folded, network)
    require("onnx", "export").checker.check_model(proto, full_check=True)
    judged = (X[1::2], y[1::2]) if dtype == "int8" else (X, y)
    running = run(folded, proto.SerializeToString())
    agreement = "runs it; int8 is judged by its figures alone"
    if dtype == "float32":
        X = X if len(X) else drawn_rows(estimator)
        wanted = predicted(estimator, X) if by_torch else folded.forward(X.astype(np.float32))
        agreement = check_agreement(wanted, running, X)
        if folded.doubt is not None:
            check_doubt(folded, running, X)
    found = quality(estimator, running, running, *judged) if len(judged[1]) else None
    if found is not None:
        check_change(found, max_nll_change, dtype, fine_tune)
        found = {"rows_from": "model file" if rows is None else "--data", **found, **tuned}
    _describe(proto, folded, estimator.fitted_.inputs.shape, dtype, found)
    content = proto.SerializeToString()
    write_whole(path, content)
    return {"opset": OPSET, "bytes": len(content), "agreement": agreement, "quality": found}


def run(folded: Folded, content: bytes) -> OnnxModel:
    """The model that ONNX Runtime makes of a file's content."""
    runtime = require("onnxruntime", "export")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return OnnxModel(**vars(folded), session=session)


def drawn_rows(estimator: Any) -> NDArray[Any]:
    """Inputs about as large as those of the training, where a model file has no rows."""
    drawn = np.random.default_rng(0).normal(size=(DRAWN_ROWS, *estimator.fitted_.inputs.shape))
    rows: NDArray[Any] = (
        estimator.fitted_.inputs.scaler.shift + estimator.fitted_.inputs.scaler.scale * drawn
    )
    return rows


def predicted(estimator: Any, X: NDArray[Any]) -> NDArray[np.float64]:
    """The estimator's own (2, rows, outputs) with mean and std, or (rows, classes)."""
    with warnings.catch_warnings():
        # Kept rows are in the order of the names, but carry none.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        dist = estimator.predict_dist(X.astype(np.float32))
    if dist.is_categorical:
        return np.asarray(dist.mean)
    return np.stack([dist.mean, dist.std]).reshape(2, len(X), -1)


def check_agreement(wanted: NDArray[np.float64], running: OnnxModel, X: NDArray[Any]) -> str:
    """Refuse a graph that does not compute what the model does in float64.

    Returns how far apart they are: means and stds in units of the std, or probabilities.
    """
    found = running.forward(X)
    difference, allowed = np.abs(found - wanted), np.full(wanted.shape, AGREEMENT)
    if not running.is_classifier:
        difference /= wanted[1]
        # Sums are as large as the largest mean; their rounding may be far above a tiny std.
        allowed[0] += ROUNDING * np.abs(wanted[0]).max(0) / wanted[1]
    unit = "in probability" if running.is_classifier else "of the std"
    apart = f"differs from the model by {difference.max():.1e} {unit} at most ({len(X)} rows)"
    if not (difference <= allowed).all():
        raise InputError(
            f"ONNX Runtime {apart}, which float32 does not explain; nothing was written"
        )
    return apart


def check_doubt(folded: Folded, running: OnnxModel, X: NDArray[Any]) -> None:
    """Refuse a graph whose epistemic std is not that of the model in float64."""
    apart = float(np.abs(running.epistemic(X) / folded.epistemic(X.astype(np.float32)) - 1).max())
    if not apart <= DOUBT_AGREEMENT:
        raise InputError(
            f"ONNX Runtime's epistemic std differs from the model's by {apart:.1e} of itself, "
            "which float32 does not explain; nothing was written"
        )


def _describe(
    proto: Any, folded: Folded, shape: tuple[int, ...], dtype: str, found: dict[str, Any] | None
) -> None:
    """Metadata: text as it is, everything else as JSON."""
    proto.producer_name, proto.producer_version = "rdeepsense", __version__
    proto.doc_string = (
        f"x: {' x '.join(map(str, shape))} sensor values in their own units. A row with "
        + ("an infinite" if folded.missing == "mean" else "a missing or infinite")
        + " value gives NaN."
    )
    facts = {
        "rdeepsense_version": __version__,
        "trained_with_version": folded.version,
        "model_sha256": folded.source,
        "head": folded.head,
        "dtype": dtype,
        "calibration": folded.calibration or "none",
        "missing": folded.missing,
        "input_shape": list(shape),
        "input_mean": folded.centre.tolist(),
        "input_std": folded.scale.tolist(),
    }
    for key in TEXTS:
        if (texts := getattr(folded, key)) is not None:
            facts[key] = list(texts)
    if folded.classes is not None:
        facts["classes"] = folded.classes.tolist()
    if folded.intervals is not None:
        facts["intervals"] = _factors(folded.intervals)
    if folded.doubt is not None:
        facts["epistemic"] = "laplace"
    if found is not None:
        facts["quality"] = found
    for key, value in facts.items():
        text = value if isinstance(value, str) else json.dumps(value, allow_nan=False)
        proto.metadata_props.add(key=key, value=text)


def _factors(intervals: Intervals) -> dict[str, Any]:
    """By coverage, one factor for each output: mean + low std to mean + high std."""
    factors: dict[str, Any] = {}
    for k, coverage in enumerate(intervals.coverages):
        ends = {"low": intervals.low[k].tolist(), "high": intervals.high[k].tolist()}
        if intervals.conformal is not None and np.isfinite(intervals.conformal[k]).all():
            ends["conformal"] = intervals.conformal[k].tolist()
        factors[f"{coverage:g}"] = ends
    return factors
