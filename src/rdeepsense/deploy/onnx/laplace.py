"""The doubt of a folded model (see `doubt`) as ONNX nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rdeepsense.deploy.folded.laplace import Doubt

if TYPE_CHECKING:
    from rdeepsense.deploy.onnx.graph import Graph


def doubt_nodes(graph: Graph, doubt: Doubt, root: Any, read: list[str], mark: str) -> str:
    """gain |[*read, 1] root|^2 of each output; the epistemic std is an output of the graph.

    `mark` is NaN for rows that are not finite.
    """
    phi = graph.node("Concat", read, "phi", axis=1)
    constants = [graph.single("doubt_root", root[:-1]), graph.single("doubt_constant", root[-1])]
    sums = graph.node("Gemm", [phi, *constants], "doubt_sums")
    square = graph.node("ReduceSumSquare", [sums], "doubt_square", axes=[1])
    square = graph.node("Add", [square, mark], "doubt_or_nan")
    size = graph.node("Sqrt", [square], "doubt_size")
    graph.node("Mul", [size, graph.single("doubt_std", doubt.std)], "epistemic")
    return graph.node("Mul", [square, graph.single("doubt_gain", doubt.gain)], "doubt_of_outputs")


def corrected_logits(graph: Graph, raw: str, doubt: str) -> str:
    """Logits with a mean of 0, divided by sqrt(1 + doubt)."""
    middle = graph.node("ReduceMean", [raw], "middle", axes=[1])
    centred = graph.node("Sub", [raw, middle], "centred_logits")
    larger = graph.node("Add", [doubt, graph.single("one", 1.0)], "one_and_doubt")
    return graph.node("Div", [centred, graph.node("Sqrt", [larger], "heat")], "logits")
