"""Networks that are not plain dense layers, convolutions and recurrent ones above all, as ONNX.

    z = (x - centre) per_scale,   raw = body(z) + 0 z,   then mean and std, or probabilities

torch writes the graph of the body; the scale of targets and the calibration are folded into its
last layer, as for dense models. The body reads z within the guard's ranges; 0 z is as in `graph`.
"""

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from rdeepsense._torch import quiet
from rdeepsense.deploy.folded.model import DenseLayer, Output
from rdeepsense.deploy.onnx.nodes import (
    INPUT,
    NAMES,
    OPSET,
    TensorArithmetic,
    TorchGuard,
    TorchRefusal,
    output_names,
)
from rdeepsense.errors import InputError, require
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.guard import REACH
from rdeepsense.link import Softmax, evaluate
from rdeepsense.refusal import Refusal


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
