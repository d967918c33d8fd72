"""`export(to='onnx')`: the file, its metadata, and a comparison with the original."""

from __future__ import annotations

import copy
import io
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from rdeepsense import __version__
from rdeepsense._files import write_whole
from rdeepsense._progress import Progress
from rdeepsense._torch import quiet
from rdeepsense.data.scaling import Scaler
from rdeepsense.deploy.fine_tune import judge, stored_network
from rdeepsense.deploy.fold import check_one_pass, fold_fitted, fold_last, is_dense
from rdeepsense.deploy.folded.file import TEXTS
from rdeepsense.deploy.folded.model import (
    DenseLayer,
    Facts,
    Folded,
    Intervals,
    MeanStd,
    Output,
    Outputs,
    Probabilities,
    Runner,
    apart,
)
from rdeepsense.deploy.onnx.nodes import (
    INPUT,
    NAMES,
    OPSET,
    TensorArithmetic,
    TorchGuard,
    TorchRefusal,
    model,
    output_names,
)
from rdeepsense.deploy.options import LabelledRows, Options
from rdeepsense.deploy.quality import ExportReport, Quality
from rdeepsense.encoding import Encoding
from rdeepsense.errors import InputError, require
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.fitting.passes import hidden_size
from rdeepsense.guard import REACH
from rdeepsense.link import Softmax, evaluate
from rdeepsense.refusal import Refusal
from rdeepsense.status import Status

# --------------------------------------------------------------------------------------------------
# Networks other than plain dense layers as ONNX, by torch's exporter
#
#     z = (x - centre) per_scale,   raw = body(z) + 0 z,   then mean and std, or probabilities
#
# torch writes the graph of the body; the scale of targets and the calibration are folded into its
# last layer, as for dense models. The body reads z within the guard's ranges; 0 z as in `nodes`.
# --------------------------------------------------------------------------------------------------


# Any: a ModelProto, as onnx comes without types.
def module_graph(
    fitted: Fitted, last: DenseLayer, output: Output, refusal: Refusal | None = None
) -> Any:
    """Let torch write the ModelProto, without metadata; `last` is the folded last layer."""
    onnx = require("onnx", "export")
    names = output_names(output) + (() if fitted.guard is None else NAMES)
    dynamic = {name: {0: "batch"} for name in (INPUT, *names)}
    content = io.BytesIO()
    with quiet():
        # Of torch's two exporters this one needs no further library and keeps GRU and LSTM whole.
        try:
            torch.onnx.export(
                _WholeModel(fitted, last, output, refusal).eval(),
                (torch.zeros(1, *fitted.inputs.shape),),
                content,  # type: ignore[arg-type]
                input_names=[INPUT],
                output_names=list(names),
                dynamic_axes=dynamic,
                opset_version=OPSET,
                dynamo=False,
            )
        except (RuntimeError, torch.onnx.errors.OnnxExporterError) as error:
            reason = str(error).strip().splitlines()[0]
            raise InputError(
                f"torch cannot write {type(fitted.network.body).__name__} as ONNX: {reason}"
            ) from error
    return onnx.load_model_from_string(content.getvalue())


class _WholeModel(nn.Module):
    """Raw sensor units in; mean and std, or probabilities, and what the guard says, out."""

    def __init__(
        self, fitted: Fitted, last: DenseLayer, output: Output, refusal: Refusal | None
    ) -> None:
        super().__init__()
        classes = isinstance(output.link, Softmax)
        self.refusal = None if refusal is None else TorchRefusal(refusal, classes)
        self.body = copy.deepcopy(fitted.network.body).cpu().float()
        linear = self.body.get_submodule(fitted.network.output)
        assert isinstance(linear, nn.Linear)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(last.weight))
            linear.bias.copy_(torch.from_numpy(last.bias))
        scaler = fitted.inputs.scaler
        self.guard = None if fitted.guard is None else TorchGuard(fitted.guard)
        self.link, self.missing = output.link, fitted.inputs.missing
        self.centre, self.per_scale = _single(scaler.shift), _single(1 / scaler.scale)
        self.low, self.high = torch.tensor(-REACH), torch.tensor(REACH)
        if self.guard is not None:
            self.low, self.high = (
                ((end - self.centre) * self.per_scale).clamp(-REACH, REACH)
                for end in (self.guard.low, self.guard.high)
            )
        self.spread = _single(0.0 if output.spread is None else output.spread)
        self.shift = _single(0.0 if output.shift is None else output.shift)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        z = (x - self.centre) * self.per_scale
        if self.missing != "refuse":
            z = torch.where(torch.isnan(z), torch.zeros_like(z), z)
        within = torch.minimum(torch.maximum(z, self.low), self.high)
        raw = self.body(within) + (z - z).flatten(1).sum(1, keepdim=True)
        if isinstance(self.link, Softmax):
            probs: Tensor = raw.softmax(1)
            if self.guard is None:
                return (probs,)
            status, first = self.guard(x)
            probs = self.guard.mixed(probs, status)
            return probs, self._told(status, probs), first
        assert self.link.width is not None
        arithmetic = TensorArithmetic(raw.chunk(self.link.columns, 1))
        std = self.spread * evaluate(self.link.width, arithmetic)
        mean = evaluate(self.link.location, arithmetic) + self.shift * std
        if self.guard is None:
            return mean, std
        status, first = self.guard(x)
        std = self.guard.widened(std, status)
        return mean, std, self._told(status, std), first

    def _told(self, status: Tensor, predicted: Tensor) -> Tensor:
        return status if self.refusal is None else self.refusal(status, predicted)


def _single(values: ArrayLike) -> Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.float32))


# --------------------------------------------------------------------------------------------------
# ONNX Runtime as a runner, on one thread
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OnnxRunner:
    """An inference session and the facts of the model in it."""

    facts: Facts
    session: Any = field(compare=False, repr=False)  # onnxruntime comes without types

    @classmethod
    def of(cls, facts: Facts, content: bytes) -> OnnxRunner:
        """Load a file's content."""
        return cls(facts, open_session(content))

    def run(self, X: NDArray[Any]) -> Outputs:
        found = self.session.run(None, {INPUT: np.asarray(X, dtype=np.float32)})
        values = dict(zip(self.names, (np.asarray(a, np.float64) for a in found), strict=True))
        epistemic = values.get("epistemic")
        status = values["status"].astype(np.uint8) if "status" in values else None
        if self.facts.is_classifier:
            return Probabilities(values["probs"], epistemic, status)
        return MeanStd(values["mean"], values["std"], epistemic, status)

    @property
    def names(self) -> list[str]:
        """Of what comes out, in order."""
        return [output.name for output in self.session.get_outputs()]


# Any: an InferenceSession, as onnxruntime comes without types.
def open_session(model: bytes | str) -> Any:
    """Open a file's content, or the file of that name, on one thread of the processor."""
    runtime = require("onnxruntime", "export")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


# --------------------------------------------------------------------------------------------------
# Comparison of ONNX Runtime with the model in float64
# --------------------------------------------------------------------------------------------------

AGREEMENT = 1e-5  # of the std, and of a probability
EPISTEMIC = 1e-4  # of the epistemic std: its sums may be small differences of large numbers
ROUNDING = 4 * float(np.finfo(np.float32).eps)  # of an output's largest mean
DRAWN_ROWS = 256


def drawn_rows(fitted: Fitted) -> NDArray[np.float64]:
    """Draw inputs about as large as those of the training, where a model kept no rows."""
    drawn = np.random.default_rng(0).normal(size=(DRAWN_ROWS, *fitted.inputs.network_shape))
    rows = fitted.inputs.scaler.rows_at(drawn)
    return rows if fitted.guard is None else fitted.guard.inside(rows)


def fitted_outputs(fitted: Fitted, X: NDArray[Any]) -> Outputs:
    """Predict by the fitted model itself."""
    dist = fitted.distribution(X)
    if dist.is_categorical:
        return Probabilities(np.asarray(dist.mean))
    shape = (len(X), -1)
    return MeanStd(np.reshape(dist.mean, shape), np.reshape(dist.std, shape))


def check_agreement(wanted: Outputs, running: Runner, X: NDArray[Any]) -> str:
    """Refuse a graph that does not compute what the model does.

    Returns how far apart they are: means and stds in units of the std, or probabilities.
    """
    found = running.run(X)
    difference = apart(wanted, found)
    allowed, unit = np.full(difference.shape, AGREEMENT), "in probability"
    if isinstance(wanted, MeanStd):
        # Sums are as large as the largest mean; their rounding may be far above a tiny std.
        allowed[0] += ROUNDING * np.abs(wanted.mean).max(0) / wanted.std
        unit = "of the std"
    said = f"differs from the model by {difference.max():.1e} {unit} at most ({len(X)} rows)"
    if not (difference <= allowed).all():
        raise InputError(
            f"ONNX Runtime {said}, which float32 does not explain; nothing was written"
        )
    if wanted.epistemic is not None:
        _check_epistemic(wanted.epistemic, found.epistemic)
    return said


def _check_epistemic(wanted: NDArray[np.float64], found: NDArray[np.float64] | None) -> None:
    assert found is not None
    ratio = float(np.abs(found / wanted - 1).max())
    if not ratio <= EPISTEMIC:
        raise InputError(
            f"ONNX Runtime's epistemic std differs from the model's by {ratio:.1e} of itself, "
            "which float32 does not explain; nothing was written"
        )


# --------------------------------------------------------------------------------------------------
# Metadata of an ONNX file: text as it is, other values as JSON
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Export of a fitted model to ONNX
#
# The graph (`nodes.model`, or `module_graph` for networks that are not plain dense layers) takes x
# (batch, inputs), or windows (batch, time, channels), in raw sensor units, float32. It gives mean
# and std, or probs, and with a Laplace approximation epistemic, each (batch, outputs). The metadata
# of the file contain everything else that a caller needs.
# --------------------------------------------------------------------------------------------------


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
