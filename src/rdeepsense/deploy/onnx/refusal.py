"""A reject option as ONNX nodes, and the same in torch: UNSURE in the status."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rdeepsense.deploy.onnx.nodes import Nodes
from rdeepsense.refusal import Refusal
from rdeepsense.status import Status


def refusal_nodes(
    nodes: Nodes, refusal: Refusal, told: str, is_classifier: bool, missing: str
) -> None:
    """Add `status`: the guard's (batch,), `told`, and UNSURE by std or probs; NaN is UNSURE.

    Infinity makes NaN of them. So does NaN where it may not be, but with `missing` "indicator".
    """
    if is_classifier:
        most = nodes.node("ReduceMax", ["probs"], "most", axes=[1], keepdims=0)
        score = nodes.node("Sub", [nodes.single("certain", 1.0), most], "score")
    else:
        part = nodes.node("Div", ["std", nodes.single("target_spread", refusal.spread)], "parts")
        score = nodes.node("ReduceMean", [part], "score", axes=[1], keepdims=0)
    limits = [score, nodes.single("most_unsure", refusal.threshold[0])]
    accepted = nodes.node("LessOrEqual", limits, "accepted")
    unsure = nodes.node("Not", [accepted], "unsure")
    if missing == "indicator":
        # MISSING is 1, so a status with it is odd.
        two = nodes.constant("two", np.array(2, np.int32))
        odd = nodes.node("Cast", [nodes.node("Mod", [told, two], "rest")], "lacks_value",
                         to=nodes.onnx.TensorProto.BOOL)  # fmt: skip
        unsure = nodes.node("Or", [unsure, odd], "unsure_or_missing")
    whole = nodes.node("Cast", [unsure], "unsure_whole", to=nodes.onnx.TensorProto.INT32)
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
        accepted = score <= self.threshold
        return status + int(Status.UNSURE) * (~accepted).to(status.dtype)
