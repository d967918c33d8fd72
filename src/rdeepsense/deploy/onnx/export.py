"""A fitted model as one ONNX file, run by ONNX Runtime before it is written.

The graph (see `graph`, and `modules` for networks that are not plain dense layers) takes x
(batch, inputs), or windows (batch, time, channels), in raw sensor units, float32, and gives mean
and std, or probs, and with a laplace epistemic, each (batch, outputs). What else a caller needs is
in the file's metadata.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rdeepsense._files import write_whole
from rdeepsense._progress import Progress
from rdeepsense.deploy.dense_layers import is_dense
from rdeepsense.deploy.fold import check_one_pass, fold_fitted, fold_last
from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.judge import judge, stored_network
from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.onnx.agreement import check_agreement, drawn_rows, fitted_outputs
from rdeepsense.deploy.onnx.graph import model
from rdeepsense.deploy.onnx.metadata import describe
from rdeepsense.deploy.onnx.modules import module_graph
from rdeepsense.deploy.onnx.nodes import OPSET
from rdeepsense.deploy.onnx.runner import OnnxRunner
from rdeepsense.deploy.options import Options
from rdeepsense.deploy.report import ExportReport
from rdeepsense.errors import InputError, require
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.fitting.passes import hidden_size
from rdeepsense.refusal import Refusal


@dataclass(frozen=True)
class OnnxReport(ExportReport):
    """The size of the file, and how well ONNX Runtime agrees with the model."""

    opset: int
    bytes: int
    agreement: str

    def to_json(self) -> dict[str, object]:
        return {
            "opset": self.opset,
            "bytes": self.bytes,
            "agreement": self.agreement,
            "quality": self.quality_json(),
        }


def export_onnx(
    fitted: Fitted,
    path: Path,
    options: Options,
    rows: LabelledRows,
    progress: Progress | None = None,
    refusal: Refusal | None = None,
) -> OnnxReport:
    """Write the ONNX file of a model."""
    check_one_pass(fitted)
    if refusal is not None and fitted.guard is None:
        raise InputError(
            "reject= needs a status, and the model's file is older than that; fit the model again"
        )
    X = rows.X if len(rows.X) else drawn_rows(fitted)
    X = X.astype(np.float32)
    tuned = None
    facts: Facts
    proto: Any  # a ModelProto, as onnx comes without types
    if is_dense(fitted.network.body):
        folded = fold_fitted(fitted, options.epistemic)
        folded = replace(folded, facts=replace(folded.facts, refusal=refusal))
        if options.features:
            _check_features(fitted, folded, options)
        network, tuned = stored_network(fitted, folded, rows, options, progress)
        facts, proto, wanted = folded.facts, model(folded, network, options.features), folded.run(X)
    else:
        _check_plain(options)
        if fitted.inputs.encoding is not None:
            raise InputError(
                "categories, and flags of missing values, are for fully-connected networks here; "
                "fit this one on numbers, with missing='mean'"
            )
        facts, last, output = fold_last(fitted)
        facts = replace(facts, refusal=refusal)
        proto = module_graph(fitted, last, output, refusal)
        wanted = fitted_outputs(fitted, X)
    require("onnx", "export").checker.check_model(proto, full_check=True)
    running = OnnxRunner.of(facts, proto.SerializeToString())
    agreement = "runs it; int8 is judged by its figures alone"
    if options.dtype == "float32":
        agreement = check_agreement(wanted, running, X)
    found = judge(running, fitted, rows, options, tuned)
    describe(proto, fitted, facts, options, found)
    content = proto.SerializeToString()
    write_whole(path, content)
    return OnnxReport("onnx", path, found, OPSET, len(content), agreement)


def _check_features(fitted: Fitted, folded: Folded, options: Options) -> None:
    """Refuse to give out hidden numbers that are not those that the trained last layer reads."""
    if options.dtype != "float32":
        raise InputError(f"features=True is for dtype='float32', not {options.dtype!r}")
    if not folded.layers.hidden or folded.layers.hidden != hidden_size(fitted.network):
        raise InputError("features=True needs a hidden layer with a ReLU before the last layer")


def _check_plain(options: Options) -> None:
    """Refuse what only fully-connected networks have."""
    if options.dtype != "float32":
        raise InputError(
            f"dtype={options.dtype!r} is for fully-connected networks; accepted for this one: "
            "'float32'"
        )
    if options.features:
        raise InputError("features=True is for fully-connected networks; export this one without")
    if options.epistemic is not None:
        raise InputError(
            f"epistemic={options.epistemic!r} is for fully-connected networks; export this one "
            "without it"
        )
