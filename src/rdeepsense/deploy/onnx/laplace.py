"""The Laplace approximation of a folded model (see `folded.laplace`) as ONNX nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.folded.laplace import LastLayerLaplace
from rdeepsense.deploy.onnx.nodes import Nodes


def laplace_nodes(
    nodes: Nodes,
    laplace: LastLayerLaplace,
    root: NDArray[np.float32],
    read: list[str],
    mark: str,
) -> str:
    """Add gain |[*read, 1] root|^2 of each output; the epistemic std is an output of the graph.

    `mark` is NaN for rows that are not finite.
    """
    phi = nodes.node("Concat", read, "phi", axis=1)
    constants = [nodes.single("laplace_root", root[:-1]), nodes.single("laplace_bias", root[-1])]
    sums = nodes.node("Gemm", [phi, *constants], "laplace_sums")
    square = nodes.node("ReduceSumSquare", [sums], "laplace_square", axes=[1])
    square = nodes.node("Add", [square, mark], "laplace_or_nan")
    size = nodes.node("Sqrt", [square], "laplace_size")
    nodes.node("Mul", [size, nodes.single("laplace_std", laplace.std)], "epistemic")
    return nodes.node("Mul", [square, nodes.single("laplace_gain", laplace.gain)], "widened")


def corrected_logits(nodes: Nodes, raw: str, widened: str) -> str:
    """Divide logits with a mean of 0 by sqrt(1 + widened)."""
    middle = nodes.node("ReduceMean", [raw], "middle", axes=[1])
    centred = nodes.node("Sub", [raw, middle], "centred_logits")
    larger = nodes.node("Add", [widened, nodes.single("one", 1.0)], "one_and_widened")
    return nodes.node("Div", [centred, nodes.node("Sqrt", [larger], "heat")], "logits")
