"""A reject option as ONNX nodes, and the same in torch: UNSURE in the status."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rdeepsense.deploy.folded.refusal import Refusal
from rdeepsense.deploy.onnx.nodes import Nodes
from rdeepsense.status import Status


def refusal_nodes(nodes: Nodes, refusal: Refusal, told: str, is_classifier: bool) -> None:
    """Add `status` of that of the guard (batch,), `told`, and std or probs; NaN is not unsure."""
    limit = refusal.threshold[0]
    if is_classifier:
        most = nodes.node("ReduceMax", ["probs"], "most", axes=[1], keepdims=0)
        beyond = nodes.node("Less", [most, nodes.single("least_sure", 1 - limit)], "unsure")
    else:
        part = nodes.node("Div", ["std", nodes.single("target_spread", refusal.spread)], "parts")
        score = nodes.node("ReduceMean", [part], "score", axes=[1], keepdims=0)
        beyond = nodes.node("Greater", [score, nodes.single("most_unsure", limit)], "unsure")
    whole = nodes.node("Cast", [beyond], "unsure_whole", to=nodes.onnx.TensorProto.INT32)
    value = nodes.constant("unsure_value", np.array(int(Status.UNSURE), np.int32))
    nodes.node("Add", [told, nodes.node("Mul", [whole, value], "unsure_flag")], "status")


class TorchRefusal(torch.nn.Module):
    """The same of any network."""

    def __init__(self, refusal: Refusal, is_classifier: bool) -> None:
        super().__init__()
        self.is_classifier, self.threshold = is_classifier, float(refusal.threshold[0])
        self.spread = torch.from_numpy(refusal.spread.astype(np.float32))

    def forward(self, status: Tensor, told: Tensor) -> Tensor:
        """Return the status of rows whose stds, or probabilities, are `told`."""
        score = 1 - told.amax(1) if self.is_classifier else (told / self.spread).mean(1)
        return status + int(Status.UNSURE) * (score > self.threshold).to(status.dtype)
