"""A folded model as an ONNX graph: raw sensor units in, mean and std or probabilities out.

    z = (x - centre) per_scale,   h_i = Relu(Gemm(h_{i-1}, W_i, b_i)),   raw = Gemm(h, W, b) + 0 z

The layers read z within the guard's ranges and up to the network's reach, and what `embedding`
makes of it. Of categories and missing values x is what `encoding` makes of them.

0 z is the sum over a row of z - z: NaN where an input is NaN or infinite, else 0. Without it a
run-time may make an ordinary number of such a row on the way through Relu or QuantizeLinear.
`laplace` adds the nodes of a laplace, `links` those of the head's link.

In eight bits the numbers are those of `quantise`: activations are divided by their row's step, so
that QuantizeLinear has the scale 1, and products multiplied by it. The first layer computes in
floats, as it takes inputs (and embeddings) of more than eight bits; the last one has no
QuantizeLinear. Weights are stored as bytes from 1 to 255 about 128: on x86 processors without VNNI,
ONNX Runtime's products of bytes and signed bytes may saturate at 16 bits, those of bytes and bytes
never do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.folded.output import Output
from rdeepsense.deploy.networks import FloatNetwork
from rdeepsense.deploy.onnx import guard
from rdeepsense.deploy.onnx.embedding import embedding_nodes
from rdeepsense.deploy.onnx.encoding import encoding_nodes
from rdeepsense.deploy.onnx.laplace import corrected_logits, laplace_nodes
from rdeepsense.deploy.onnx.links import NodeArithmetic
from rdeepsense.deploy.onnx.nodes import INPUT, Nodes
from rdeepsense.deploy.onnx.refusal import refusal_nodes
from rdeepsense.deploy.quantise import BYTE, LEAST_STEP, Int8Layer, Int8Network
from rdeepsense.link import Column, LocationWidth, Softmax, evaluate

BYTE_ZERO = 128
FEATURES = "features"


def output_names(output: Output) -> tuple[str, ...]:
    """Name the numbers that come out of the graph, in order."""
    names = ("probs",) if isinstance(output.link, Softmax) else ("mean", "std")
    return names if output.laplace is None else (*names, "epistemic")


# Any: a ModelProto, as onnx comes without types.
def model(folded: Folded, network: FloatNetwork | Int8Network, features: bool = False) -> Any:
    """Make the ModelProto of a network whose weights are float32 or int8, without metadata.

    With `features` the last hidden layer's numbers come out as well; float32 alone has them.
    """
    nodes, output = Nodes(), folded.output
    encoded = encoding_nodes(nodes, network.encoding)
    unbounded = _standardised(nodes, encoded, folded.facts.missing, network)
    reach = network.levels if isinstance(network, Int8Network) else network.reach
    ends = [nodes.single("least_z", -reach), nodes.single("greatest_z", reach)]
    z = unbounded
    if folded.facts.guard is not None:
        z = guard.moved(nodes, folded.facts.guard, network, z)
    if isinstance(network, Int8Network):
        z = _embedded_steps(nodes, network, z)
        z = nodes.node("Clip", [z, *ends], "bounded_z")
        raw, h = _int8_layers(nodes, network, z), ""
    else:
        z = nodes.node("Clip", [z, *ends], "bounded_z")
        raw, h = _float_layers(nodes, network, embedding_nodes(nodes, network.embedding, z))
    axis = nodes.constant("columns", np.array([1]))
    # A category that is missing has a vector, which is finite.
    seen = INPUT if encoded != INPUT and folded.facts.missing == "refuse" else unbounded
    nothing = nodes.node("Sub", [seen, seen], "z_minus_z")
    mark = nodes.node("ReduceSum", [nothing, axis], "not_finite")
    raw = nodes.node("Add", [raw, mark], "raw")
    wider = None
    if output.laplace is not None:
        assert isinstance(network, FloatNetwork)
        assert network.root is not None
        hidden = folded.layers.hidden
        read = [h] * (hidden > 0) + [z] * (hidden + 1 < len(output.laplace.root))
        wider = laplace_nodes(nodes, output.laplace, network.root, read, mark)
    known = folded.facts.guard
    refusal = folded.facts.refusal
    told = guard.NAMES[0] if refusal is None else "input_status"
    flagged = None if known is None else guard.guard_nodes(nodes, known, told)
    own = "" if flagged is None else "network_"
    if isinstance(output.link, Softmax):
        raw = raw if wider is None else corrected_logits(nodes, raw, wider)
        nodes.node("Softmax", [raw], f"{own}probs", axis=1)
    else:
        _location_width(nodes, output, output.link, raw, wider, f"{own}std")
    if known is not None and flagged is not None:
        if isinstance(output.link, Softmax):
            guard.mixed(nodes, known, flagged, f"{own}probs")
        else:
            guard.widened(nodes, known, flagged, f"{own}std")
    if refusal is not None:
        is_classifier, missing = isinstance(output.link, Softmax), folded.facts.missing
        refusal_nodes(nodes, refusal, told, is_classifier, missing)
    whole = () if flagged is None else guard.NAMES
    names, sizes = output_names(output), [folded.facts.outputs] * len(output_names(output))
    if features:
        nodes.node("Add", [h, mark], FEATURES)
        names, sizes = (*names, FEATURES), [*sizes, folded.layers.hidden]
    return nodes.model(folded.facts.inputs, sizes, names, whole)


def _standardised(
    nodes: Nodes, read: str, missing: str, network: FloatNetwork | Int8Network
) -> str:
    """Add z of what is read; missing inputs count as their mean where the model says so."""
    per_scale: ArrayLike | None = network.per_scale
    if isinstance(network, Int8Network) and per_scale is None:
        per_scale = network.per_step / 2
    assert per_scale is not None
    centred = nodes.node("Sub", [read, nodes.single("centre", network.centre)], "centred")
    z = nodes.node("Mul", [centred, nodes.single("per_scale", per_scale)], "z")
    if missing == "refuse":
        return z
    absent = nodes.node("IsNaN", [z], "missing")
    return nodes.node("Where", [absent, nodes.single("zero", 0.0), z], "z_or_mean")


def _float_layers(nodes: Nodes, network: FloatNetwork, h: str) -> tuple[str, str]:
    """Add the layers; returns the last one's columns, and what it reads."""
    before = h
    for k, layer in enumerate(network.layers):
        weight = nodes.single(f"weight_{k}", layer.weight.T)
        h = nodes.node("Gemm", [h, weight, nodes.single(f"bias_{k}", layer.bias)], f"sums_{k}")
        if layer is not network.layers[-1]:
            before = h = nodes.node("Relu", [h], f"hidden_{k}")
    return h, before


def _embedded_steps(nodes: Nodes, network: Int8Network, z: str) -> str:
    """Add what the first layer reads, counted in steps."""
    if network.embedding is None:
        return z  # is in steps already
    read = embedding_nodes(nodes, network.embedding, z)
    return nodes.node("Mul", [read, nodes.single("per_step", network.per_step / 2)], "steps")


def _int8_layers(nodes: Nodes, network: Int8Network, h: str) -> str:
    step = ""
    for k, layer in enumerate(network.layers):
        last = layer is network.layers[-1]
        factor, weight = layer.factor.astype(np.float64), layer.weight.T.astype(np.int64)
        if k == 0:
            # Here inputs have their zero at 0.
            offset = (layer.bias + network.levels * weight.sum(0)) * factor
            matrix = nodes.single("weight_0", weight * factor)
            h = nodes.node("Gemm", [h, matrix, nodes.single("bias_0", offset)], "sums_0")
        else:
            h = nodes.node("Gemm", [h, _stored(nodes, k, layer, weight)], f"products_{k}")
            h = nodes.node("Mul", [h, step], f"in_steps_{k}")
            if not last:
                bias = nodes.single(f"bias_{k}", layer.bias * factor)
                h = nodes.node("Add", [h, bias], f"sums_{k}")
        if not last:
            h, step = _bytes(nodes, k, nodes.node("Relu", [h], f"hidden_{k}"))
    return nodes.node("Add", [h, nodes.single("head_bias", network.head_bias)], "head")


def _bytes(nodes: Nodes, k: int, h: str) -> tuple[str, str]:
    """Add counts of steps, 255 of which are a row's largest activation, and those steps."""
    top = nodes.node("ReduceMax", [h], f"largest_{k}", axes=[1], keepdims=1)
    # A row on which no unit fires must not divide by 0.
    top = nodes.node("Max", [top, nodes.single(f"least_{k}", LEAST_STEP)], f"top_{k}")
    step = nodes.node("Div", [top, nodes.single(f"most_{k}", BYTE)], f"step_{k}")
    h = nodes.node("Div", [h, step], f"counts_{k}")
    one, zero = nodes.single(f"one_{k}", 1.0), f"zero_{k}"
    nodes.constant(zero, np.array(0, np.uint8))
    h = nodes.node("QuantizeLinear", [h, one, zero], f"hidden_bytes_{k}")
    return nodes.node("DequantizeLinear", [h, one, zero], f"hidden_counts_{k}"), step


def _stored(nodes: Nodes, k: int, layer: Int8Layer, weight: NDArray[np.int64]) -> str:
    """Add the weights of a layer as bytes, made floats again."""
    factor = nodes.single(f"factor_{k}", layer.factor)
    stored = nodes.constant(f"weight_bytes_{k}", (weight + BYTE_ZERO).astype(np.uint8))
    zero = nodes.constant(f"weight_zero_{k}", np.full(len(layer.factor), BYTE_ZERO, np.uint8))
    return nodes.node("DequantizeLinear", [stored, factor, zero], f"weight_{k}", axis=1)


def _location_width(
    nodes: Nodes, output: Output, link: LocationWidth, raw: str, wider: str | None, std: str
) -> None:
    """Add the mean, and the std by this name."""
    assert output.shift is not None
    assert output.spread is not None
    moved = bool(output.shift.any())
    columns = [f"column_{k}" for k in range(link.columns)]
    if not moved and isinstance(link.location, Column):
        columns[link.location.number] = "mean"
    nodes.node("Split", [raw], *columns, axis=1)
    arithmetic = NodeArithmetic(nodes, columns)
    location = evaluate(link.location, arithmetic)
    if wider is None:
        assert link.width is not None
        width = evaluate(link.width, arithmetic)
    else:
        assert link.variance is not None
        total = nodes.node("Add", [evaluate(link.variance, arithmetic), wider], "total")
        width = nodes.node("Sqrt", [total], "width")
    nodes.node("Mul", [width, nodes.single("spread", output.spread)], std)
    if moved:
        move = nodes.node("Mul", [std, nodes.single("shift", output.shift)], "move")
        nodes.node("Add", [location, move], "mean")
    elif location != "mean":
        nodes.node("Identity", [location], "mean")
