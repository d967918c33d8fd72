"""A folded model as an ONNX graph: raw sensor units in, mean and std or probabilities out.

    z = (x - centre) per_scale,   h_i = Relu(Gemm(h_{i-1}, W_i, b_i)),   raw = Gemm(h, W, b) + 0 z

0 z is the sum over a row of z - z: NaN where an input is NaN or infinite, else 0. Without it a
run-time may make an ordinary number of such a row on the way through Relu or QuantizeLinear.
`onnx_doubt` adds the nodes of a doubt.

In eight bits the numbers are those of `quantise`: activations are divided by their row's step, so
that QuantizeLinear has the scale 1, and products multiplied by it. The first layer computes in
floats, as it takes inputs of more than eight bits; the last one has no QuantizeLinear. Weights are
stored as bytes from 1 to 255 about 128: on x86 processors without VNNI, ONNX Runtime's products of
bytes and signed bytes may saturate at 16 bits, those of bytes and bytes never do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.networks import FloatNetwork
from rdeepsense.deploy.onnx.laplace import corrected_logits, doubt_nodes
from rdeepsense.deploy.quantise import BYTE, LEAST_STEP, Int8Layer, Int8Network
from rdeepsense.errors import require

OPSET = 17
IR_VERSION = 8  # that of opset 17
INPUT = "x"
BYTE_ZERO = 128


class Graph:
    """Nodes and constants, collected in the order of the computation."""

    def __init__(self) -> None:
        self.onnx: Any = require("onnx", "export")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, values: NDArray[Any]) -> str:
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def single(self, name: str, values: Any) -> str:
        return self.constant(name, np.asarray(values, dtype=np.float32))

    def node(self, operator: str, inputs: list[str], *outputs: str, **attributes: Any) -> str:
        made = self.onnx.helper.make_node(operator, inputs, outputs, outputs[0], **attributes)
        self.nodes.append(made)
        return outputs[0]


def output_names(folded: Folded) -> tuple[str, ...]:
    names = ("probs",) if folded.is_classifier else ("mean", "std")
    return names if folded.doubt is None else (*names, "epistemic")


def model(folded: Folded, network: FloatNetwork | Int8Network) -> Any:
    """The ModelProto of a network whose weights are float32 or int8, without metadata."""
    graph = Graph()
    z = _standardised(graph, folded, network)
    if isinstance(network, Int8Network):
        raw = _int8_layers(graph, network, z)
    else:
        raw, h = _float_layers(graph, network, z)
    axis = graph.constant("columns", np.array([1]))
    mark = graph.node("ReduceSum", [graph.node("Sub", [z, z], "z_minus_z"), axis], "not_finite")
    raw = graph.node("Add", [raw, mark], "raw")
    doubt = None
    if folded.doubt is not None:
        assert isinstance(network, FloatNetwork)
        read = [h] * (folded.hidden > 0) + [z] * (folded.hidden + 1 < len(folded.doubt.root))
        doubt = doubt_nodes(graph, folded.doubt, network.root, read, mark)
    if folded.is_classifier:
        raw = raw if doubt is None else corrected_logits(graph, raw, doubt)
        graph.node("Softmax", [raw], "probs", axis=1)
    else:
        _regression(graph, folded, raw, doubt)
    helper, single = graph.onnx.helper, graph.onnx.TensorProto.FLOAT
    made = helper.make_graph(
        graph.nodes,
        "rdeepsense",
        [helper.make_tensor_value_info(INPUT, single, ["batch", folded.inputs])],
        [
            helper.make_tensor_value_info(name, single, ["batch", folded.outputs])
            for name in output_names(folded)
        ],
        graph.constants,
    )
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(made, opset_imports=[opset], ir_version=IR_VERSION)


def _standardised(graph: Graph, folded: Folded, network: FloatNetwork | Int8Network) -> str:
    """z; missing inputs count as their mean where the model says so."""
    per_scale = network.per_step / 2 if isinstance(network, Int8Network) else network.per_scale
    centred = graph.node("Sub", [INPUT, graph.single("centre", network.centre)], "centred")
    z = graph.node("Mul", [centred, graph.single("per_scale", per_scale)], "z")
    if folded.missing != "mean":
        return z
    missing = graph.node("IsNaN", [z], "missing")
    return graph.node("Where", [missing, graph.single("zero", 0.0), z], "z_or_mean")


def _float_layers(graph: Graph, network: FloatNetwork, h: str) -> tuple[str, str]:
    """The last layer's columns, and what it reads."""
    before = h
    for k, layer in enumerate(network.layers):
        weight = graph.single(f"weight_{k}", layer.weight.T)
        h = graph.node("Gemm", [h, weight, graph.single(f"bias_{k}", layer.bias)], f"sums_{k}")
        if layer is not network.layers[-1]:
            before = h = graph.node("Relu", [h], f"hidden_{k}")
    return h, before


def _int8_layers(graph: Graph, network: Int8Network, h: str) -> str:
    step = ""
    for k, layer in enumerate(network.layers):
        last = layer is network.layers[-1]
        factor, weight = layer.factor.astype(np.float64), layer.weight.T.astype(np.int64)
        if k == 0:
            # Here inputs have their zero at 0.
            offset = (layer.bias + network.levels * weight.sum(0)) * factor
            matrix = graph.single("weight_0", weight * factor)
            h = graph.node("Gemm", [h, matrix, graph.single("bias_0", offset)], "sums_0")
        else:
            h = graph.node("Gemm", [h, _stored(graph, k, layer, weight)], f"products_{k}")
            h = graph.node("Mul", [h, step], f"in_steps_{k}")
            if not last:
                bias = graph.single(f"bias_{k}", layer.bias * factor)
                h = graph.node("Add", [h, bias], f"sums_{k}")
        if not last:
            h, step = _bytes(graph, k, graph.node("Relu", [h], f"hidden_{k}"))
    return graph.node("Add", [h, graph.single("head_bias", network.head_bias)], "head")


def _bytes(graph: Graph, k: int, h: str) -> tuple[str, str]:
    """Counts of steps, 255 of which are a row's largest activation, and those steps."""
    top = graph.node("ReduceMax", [h], f"largest_{k}", axes=[1], keepdims=1)
    # A row on which no unit fires must not divide by 0.
    top = graph.node("Max", [top, graph.single(f"least_{k}", LEAST_STEP)], f"top_{k}")
    step = graph.node("Div", [top, graph.single(f"most_{k}", BYTE)], f"step_{k}")
    h = graph.node("Div", [h, step], f"counts_{k}")
    one, zero = graph.single(f"one_{k}", 1.0), f"zero_{k}"
    graph.constant(zero, np.array(0, np.uint8))
    h = graph.node("QuantizeLinear", [h, one, zero], f"hidden_bytes_{k}")
    return graph.node("DequantizeLinear", [h, one, zero], f"hidden_counts_{k}"), step


def _stored(graph: Graph, k: int, layer: Int8Layer, weight: Any) -> str:
    """The weights of a layer as bytes, made floats again."""
    factor = graph.single(f"factor_{k}", layer.factor)
    stored = graph.constant(f"weight_bytes_{k}", (weight + BYTE_ZERO).astype(np.uint8))
    zero = graph.constant(f"weight_zero_{k}", np.full(len(layer.factor), BYTE_ZERO, np.uint8))
    return graph.node("DequantizeLinear", [stored, factor, zero], f"weight_{k}", axis=1)


def _regression(graph: Graph, folded: Folded, raw: str, doubt: str | None) -> None:
    assert folded.shift is not None
    moved = bool(folded.shift.any())
    graph.node("Split", [raw], "location" if moved else "mean", "raw_width", axis=1)
    positive = graph.node("Softplus", ["raw_width"], "positive")
    width = graph.node("Add", [positive, graph.single("floor", folded.floor)], "width")
    if doubt is not None:
        square = (
            [width] if folded.head == "gaussian" else [graph.node("Mul", [width] * 2, "square")]
        )
        width = graph.node("Add", [*square, doubt], "total")
    if folded.head == "gaussian" or doubt is not None:
        width = graph.node("Sqrt", [width], "root")
    graph.node("Mul", [width, graph.single("spread", folded.spread)], "std")
    if moved:
        move = graph.node("Mul", ["std", graph.single("shift", folded.shift)], "move")
        graph.node("Add", ["location", move], "mean")
