"""Networks that are not plain dense layers, convolutions and recurrent ones above all, as ONNX.

    z = (x - centre) per_scale,   raw = body(z) + 0 z,   then mean and std, or probabilities

torch writes the graph of the body; the scale of targets and the calibration are folded into its
last layer, as for dense models. 0 z is as in `onnx_graph`.
"""

from __future__ import annotations

import copy
import hashlib
import io
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from rdeepsense.data.scaling import Scaler
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.onnx.graph import INPUT, OPSET, output_names
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.errors import InputError, require
from rdeepsense.estimators.rdeepsense import RDeepSense

FOLDABLE = (nn.Linear, nn.ReLU, nn.Dropout, nn.Identity)


def needs_torch(estimator: Any) -> bool:
    """Whether the network is more than what `fold` takes: a Sequential of dense layers."""
    if not isinstance(estimator, RDeepSense):
        return False  # which fold refuses
    check_is_fitted(estimator)
    return not all(
        type(m) is nn.Sequential or isinstance(m, FOLDABLE)
        for m in estimator.network_.body.modules()
    )


def fold_last(estimator: Any) -> Folded:
    """The last layer as a folded model, with the facts of the whole one.

    It is folded as that of an estimator whose inputs are the last hidden values.
    """
    network = estimator.network_
    last = copy.deepcopy(network.body.get_submodule(network.output))
    part = copy.copy(estimator)
    whole, width = estimator.fitted_, last.in_features
    alone = StochasticNetwork(nn.Sequential(last), network.head, "0")
    part.fitted_ = replace(
        whole,
        model=replace(whole.networks, members=(alone,)),
        inputs=replace(whole.inputs, scaler=Scaler(np.zeros(width), np.ones(width))),
    )
    folded = fold(part)
    scaler = estimator.fitted_.inputs.scaler
    digest = hashlib.sha256(folded.source.encode())
    for array in (scaler.shift, scaler.scale, *_weights(network)):
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return replace(folded, centre=scaler.shift, scale=scaler.scale, source=digest.hexdigest())


def module_graph(estimator: Any, folded: Folded) -> Any:
    """The ModelProto, without metadata."""
    onnx = require("onnx", "export")
    names = output_names(folded)
    dynamic = {name: {0: "batch"} for name in (INPUT, *names)}
    content = io.BytesIO()
    with warnings.catch_warnings():
        # Of torch's two exporters this one needs no further library and keeps GRU and LSTM whole.
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(
                _WholeModel(estimator, folded).eval(),
                (torch.zeros(1, *estimator.fitted_.inputs.shape),),
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
                f"torch cannot write {type(estimator.network_.body).__name__} as ONNX: {reason}"
            ) from error
    return onnx.load_model_from_string(content.getvalue())


class _WholeModel(nn.Module):
    """Raw sensor units in; mean and std, or probabilities, out."""

    def __init__(self, estimator: Any, folded: Folded) -> None:
        super().__init__()
        network = estimator.network_
        self.body = copy.deepcopy(network.body).cpu().float()
        last = self.body.get_submodule(network.output)
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.weight.copy_(torch.from_numpy(folded.layers[-1].weight))
            last.bias.copy_(torch.from_numpy(folded.layers[-1].bias))
        self.head, self.floor, self.missing = folded.head, folded.floor, folded.missing
        self.centre, self.per_scale = _single(folded.centre), _single(1 / folded.scale)
        self.spread, self.shift = _single(folded.spread), _single(folded.shift)

    def forward(self, x: Tensor) -> Any:
        z = (x - self.centre) * self.per_scale
        if self.missing == "mean":
            z = torch.where(torch.isnan(z), torch.zeros_like(z), z)
        raw = self.body(z) + (z - z).flatten(1).sum(1, keepdim=True)
        if self.head == "categorical":
            return raw.softmax(1)
        location, width = raw.chunk(2, 1)
        width = nn.functional.softplus(width) + self.floor
        std = self.spread * (width.sqrt() if self.head == "gaussian" else width)
        return location + self.shift * std, std


def _single(values: Any) -> Tensor:
    return torch.from_numpy(np.asarray(0.0 if values is None else values, dtype=np.float32))


def _weights(network: nn.Module) -> list[NDArray[Any]]:
    return [value.detach().cpu().numpy() for value in network.state_dict().values()]
