"""ONNX nodes for each part of a model: inputs, layers, links, status flags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from rdeepsense.arrays import Singles
from rdeepsense.deploy.folded.model import Folded, LastLayerLaplace, Output
from rdeepsense.deploy.quantise import (
    BYTE,
    LEAST_STEP,
    FloatNetwork,
    Int8Layer,
    Int8Network,
    StoredEmbedding,
)
from rdeepsense.encoding import Category, Encoding
from rdeepsense.errors import require
from rdeepsense.guard import EMBEDDING_REACH, LARGEST, Guard
from rdeepsense.link import Column, LocationWidth, Softmax, evaluate
from rdeepsense.refusal import Refusal
from rdeepsense.status import Status

# --------------------------------------------------------------------------------------------------
# Nodes and constants of an ONNX graph, in the order of computation
# --------------------------------------------------------------------------------------------------

OPSET = 17
IR_VERSION = 8  # that of opset 17
INPUT = "x"


class Nodes:
    """A graph in the making; values are known by their names."""

    def __init__(self) -> None:
        self.onnx: ModuleType = require("onnx", "export")
        self.made: list[Any] = []  # NodeProto and TensorProto: onnx comes without types
        self.constants: list[Any] = []

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """Add a constant of the array's own type."""
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def single(self, name: str, values: ArrayLike) -> str:
        """Add a constant in float32."""
        return self.constant(name, np.asarray(values, dtype=np.float32))

    def node(
        self, operator: str, inputs: list[str], *outputs: str, **attributes: int | list[int]
    ) -> str:
        """Add a node; returns the name of its first output."""
        made = self.onnx.helper.make_node(operator, inputs, outputs, outputs[0], **attributes)
        self.made.append(made)
        return outputs[0]

    # Any: a ModelProto, as onnx comes without types.
    def model(
        self, inputs: int, sizes: list[int], names: tuple[str, ...], whole: tuple[str, ...] = ()
    ) -> Any:
        """Make the ModelProto, which takes (batch, inputs) and gives (batch, size) each.

        Those named in `whole` are whole numbers (batch,): the first int32, the others int64.
        """
        helper, single = self.onnx.helper, self.onnx.TensorProto.FLOAT
        kinds = [self.onnx.TensorProto.INT32, self.onnx.TensorProto.INT64]
        info = helper.make_tensor_value_info
        numbers = [info(name, single, ["batch", n]) for name, n in zip(names, sizes, strict=True)]
        told = [info(name, kind, ["batch"]) for name, kind in zip(whole, kinds, strict=False)]
        graph = helper.make_graph(
            self.made,
            "rdeepsense",
            [helper.make_tensor_value_info(INPUT, single, ["batch", inputs])],
            [*numbers, *told],
            self.constants,
        )
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)


# --------------------------------------------------------------------------------------------------
# Periodic embeddings of the inputs as ONNX nodes
#
#     e_j = Relu(W_j [Sin, Cos](2 pi (p - Round(p))) + b_j),   p = c_j z_j
#
# The axes are input, row, wave, so that one MatMul multiplies each input's waves by its own W_j.
# --------------------------------------------------------------------------------------------------

ENDS = (("least", -1), ("greatest", 1))


def embedding_nodes(nodes: Nodes, embedding: StoredEmbedding | None, z: str) -> str:
    """Add [z, e]; without an embedding it is z alone."""
    if embedding is None:
        return z
    reach = [nodes.single(f"{end}_wave", EMBEDDING_REACH * sign) for end, sign in ENDS]
    near = nodes.node("Clip", [z, *reach], "embedded_z")
    by_input = nodes.node("Transpose", [near], "z_by_input", perm=[1, 0])
    axis = nodes.constant("wave", np.array([2]))
    by_input = nodes.node("Unsqueeze", [by_input, axis], "z_of_wave")
    frequency = nodes.single("frequency", embedding.frequency[:, None])
    periods = nodes.node("Mul", [by_input, frequency], "periods")
    rest = nodes.node("Sub", [periods, nodes.node("Round", [periods], "whole_periods")], "rest")
    angles = nodes.node("Mul", [rest, nodes.single("two_pi", 2 * np.pi)], "angles")
    both = [nodes.node(name, [angles], name.lower()) for name in ("Sin", "Cos")]
    waves = nodes.node("Concat", both, "waves", axis=2)
    weight = nodes.single("embedding_weight", embedding.weight)
    bias = nodes.single("embedding_bias", embedding.bias[:, None])
    sums = nodes.node("Add", [nodes.node("MatMul", [waves, weight], "wave_sums"), bias], "embedded")
    by_row = nodes.node("Transpose", [nodes.node("Relu", [sums], "e")], "e_by_row", perm=[1, 0, 2])
    shape = nodes.constant("embedding_shape", np.array([-1, embedding.outputs]))
    flat = nodes.node("Reshape", [by_row, shape], "embedding")
    return nodes.node("Concat", [z, flat], "z_and_embedding", axis=1)


# --------------------------------------------------------------------------------------------------
# Categories and missing values as ONNX nodes
#
#     [Gather(x, numbers), Cast(IsNaN(Gather(x, flagged))), Gather(vectors, row of the code), ...]
#
# A code that is none of the levels' has the row after theirs, a missing one the row after that.
# --------------------------------------------------------------------------------------------------


def encoding_nodes(nodes: Nodes, encoding: Encoding | None) -> str:
    """Add what the network reads of x; without an encoding it is x."""
    if encoding is None:
        return INPUT
    parts = []
    if encoding.numbers:
        parts.append(_columns(nodes, "numbers", encoding.numbers))
    if encoding.flagged:
        absent = nodes.node("IsNaN", [_columns(nodes, "flagged_x", encoding.flagged)], "absent")
        parts.append(nodes.node("Cast", [absent], "flags", to=nodes.onnx.TensorProto.FLOAT))
    parts += [_vectors(nodes, k, one) for k, one in enumerate(encoding.categories)]
    return nodes.node("Concat", parts, "encoded", axis=1)


def _columns(nodes: Nodes, name: str, columns: tuple[int, ...]) -> str:
    return nodes.node(
        "Gather", [INPUT, nodes.constant(f"{name}_columns", np.array(columns))], name, axis=1
    )


def _vectors(nodes: Nodes, k: int, category: Category) -> str:
    """Add the vectors (batch, width) of a category's levels."""
    own = f"category_{k}"
    column = _columns(nodes, f"{own}_x", (category.column,))
    code = nodes.node(
        "Squeeze", [column, nodes.constant(f"{own}_axis", np.array([1]))], f"{own}_code"
    )
    levels = float(len(category.levels))
    least, most = nodes.single(f"{own}_least", -0.5), nodes.single(f"{own}_most", levels - 0.5)
    inside = [
        nodes.node("Greater", [code, least], f"{own}_from_0"),
        nodes.node("Less", [code, most], f"{own}_below"),
    ]
    whole = nodes.node("Equal", [code, nodes.node("Floor", [code], f"{own}_floor")], f"{own}_whole")
    known = nodes.node("And", inside, f"{own}_inside")
    known = nodes.node("And", [known, whole], f"{own}_known")
    row = nodes.node("Where", [known, code, nodes.single(f"{own}_other", levels)], f"{own}_or")
    absent = nodes.node("IsNaN", [code], f"{own}_absent")
    none = nodes.single(f"{own}_none", levels + 1)
    row = nodes.node("Where", [absent, none, row], f"{own}_number")
    row = nodes.node("Cast", [row], f"{own}_row", to=nodes.onnx.TensorProto.INT64)
    table = nodes.single(f"{own}_vectors", category.vectors)
    return nodes.node("Gather", [table, row], own, axis=0)


# --------------------------------------------------------------------------------------------------
# The Laplace approximation as ONNX nodes; see `LastLayerLaplace`
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Links as ONNX nodes, and as torch operations for torch's exporter
# --------------------------------------------------------------------------------------------------

OPERATORS = {"add": "Add", "multiply": "Mul", "softplus": "Softplus", "exp": "Exp", "sqrt": "Sqrt"}
FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "add": torch.add,
    "multiply": torch.mul,
    "softplus": torch.nn.functional.softplus,
    "exp": torch.exp,
    "sqrt": torch.sqrt,
    "square": torch.square,
}


@dataclass
class NodeArithmetic:
    """The arithmetic of links whose numbers are the names of a graph's values."""

    nodes: Nodes
    columns: list[str]
    made: int = 0

    def column(self, number: int) -> str:
        return self.columns[number]

    def constant(self, value: float) -> str:
        return self.nodes.single(self._name("constant"), value)

    def apply(self, operation: str, *arguments: str) -> str:
        if operation == "square":
            return self.nodes.node("Mul", [*arguments, *arguments], self._name(operation))
        return self.nodes.node(OPERATORS[operation], list(arguments), self._name(operation))

    def _name(self, what: str) -> str:
        self.made += 1
        return f"link_{what}_{self.made}"


@dataclass(frozen=True)
class TensorArithmetic:
    """The arithmetic of links over tensors (rows, outputs), one for each column of an output."""

    columns: tuple[Tensor, ...]

    def column(self, number: int) -> Tensor:
        return self.columns[number]

    def constant(self, value: float) -> Tensor:
        return torch.tensor(value, dtype=self.columns[0].dtype)

    def apply(self, operation: str, *arguments: Tensor) -> Tensor:
        return FUNCTIONS[operation](*arguments)


# --------------------------------------------------------------------------------------------------
# The guard as ONNX nodes, and as torch operations for torch's exporter
#
# `status` (batch,) is a number of `rdeepsense.Status`, `flagged_input` (batch,) the first input
# that it is for, or -1.
# --------------------------------------------------------------------------------------------------

NAMES = ("status", "flagged_input")


def guard_nodes(nodes: Nodes, guard: Guard, named: str = NAMES[0]) -> str:
    """Add the two outputs, a status of this name; returns whether rows (batch, 1) are flagged."""
    below = nodes.node("Less", [INPUT, nodes.single("low", _held(guard).low)], "below")
    above = nodes.node("Greater", [INPUT, nodes.single("high", _held(guard).high)], "above")
    out = nodes.node("Or", [below, above], "beyond")
    if guard.levels is not None:
        numbers = nodes.constant("is_number", guard.levels == 0)
        out = nodes.node("And", [out, numbers], "numbers_beyond")
    unknown = nodes.constant("never_missing", guard.missing == 0)
    missing = nodes.node("And", [nodes.node("IsNaN", [INPUT], "is_nan"), unknown], "not_known")
    strange = None if guard.levels is None else _unknown_levels(nodes, guard.levels)
    told = [("out", out, Status.OUT_OF_RANGE), ("missing_any", missing, Status.MISSING)]
    told += [] if strange is None else [("unknown", strange, Status.UNKNOWN_LEVEL)]
    found = [
        nodes.node("Mul", [_any(nodes, name, flags), _whole(nodes, name, value)], f"{name}_flag")
        for name, flags, value in told
    ]
    status = nodes.node("Add", found[:2], "status_column")
    for more in found[2:]:
        status = nodes.node("Add", [status, more], "whole_status")
    nodes.node("Squeeze", [status, nodes.constant("last_axis", np.array([1]))], named)
    flagged = nodes.node("Cast", [status], "flagged", to=nodes.onnx.TensorProto.BOOL)
    either = nodes.node("Or", [out, missing], "either")
    if strange is not None:
        either = nodes.node("Or", [either, strange], "any_of_them")
    first = nodes.node("Cast", [either], "either_whole", to=nodes.onnx.TensorProto.INT32)
    first = nodes.node("ArgMax", [first], "first", axis=1, keepdims=1)
    none = nodes.constant("none", np.array(-1))
    column = nodes.node("Where", [flagged, first, none], "flagged_column")
    nodes.node("Squeeze", [column, "last_axis"], "flagged_input")
    return flagged


def moved(nodes: Nodes, guard: Guard, network: FloatNetwork | Int8Network, z: str) -> str:
    """Add z of numbers that are moved into their ranges; of what is encoded it is left alone.

    As z is monotone, also once it is rounded, its ends are those of the ranges.
    """
    per_scale: Singles | None = network.per_scale
    if isinstance(network, Int8Network) and per_scale is None:
        per_scale = network.per_step / np.float32(2)
    assert per_scale is not None
    ends, held = [], _held(guard)
    for name, values, none in (("low_z", held.low, -LARGEST), ("high_z", held.high, LARGEST)):
        numbers = slice(None) if network.encoding is None else list(network.encoding.numbers)
        own = values.astype(np.float32)[numbers]
        with np.errstate(over="ignore"):
            scaled = (own - network.centre[: len(own)]) * per_scale[: len(own)]
        end = np.full(len(network.centre), none, np.float32)
        end[: len(own)] = np.clip(scaled, -LARGEST, LARGEST)
        ends.append(nodes.single(name, end))
    return nodes.node("Min", [nodes.node("Max", [z, ends[0]], "z_from"), ends[1]], "z_within")


def widened(nodes: Nodes, guard: Guard, flagged: str, std: str) -> None:
    """Add `std`: at least that of the training targets where a row is flagged."""
    wide = nodes.node("Max", [std, nodes.single("fallback", guard.fallback)], "wide")
    nodes.node("Where", [flagged, wide, std], "std")


def mixed(nodes: Nodes, guard: Guard, flagged: str, probs: str) -> None:
    """Add `probs`: half the training frequencies where a row is flagged."""
    total = nodes.node("Add", [probs, nodes.single("fallback", guard.fallback)], "both")
    half = nodes.node("Mul", [total, nodes.single("half", 0.5)], "mixed")
    nodes.node("Where", [flagged, half, probs], "probs")


class TorchGuard(torch.nn.Module):
    """The guard of windows, or of any rows."""

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        held = _held(guard)
        self.low, self.high, self.fallback = (
            torch.from_numpy(values.astype(np.float32))
            for values in (held.low, held.high, held.fallback)
        )
        self.unknown = torch.from_numpy(held.missing == 0)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return `status` and `flagged_input`."""
        out = (x < self.low) | (x > self.high)
        missing = torch.isnan(x) & self.unknown
        flags = [part.flatten(1).any(1).to(torch.int32) for part in (out, missing)]
        status = flags[0] * int(Status.OUT_OF_RANGE) + flags[1] * int(Status.MISSING)
        either = (out | missing).reshape(x.shape[0], -1, x.shape[-1]).any(1).to(torch.int32)
        first = either.argmax(1)
        return status, torch.where(status > 0, first, torch.full_like(first, -1))

    def widened(self, std: Tensor, status: Tensor) -> Tensor:
        """Return the stds of flagged rows, at least those of the training targets."""
        return torch.where((status > 0)[:, None], torch.maximum(std, self.fallback), std)

    def mixed(self, probs: Tensor, status: Tensor) -> Tensor:
        """Return probabilities, half the training frequencies where a row is flagged."""
        return torch.where((status > 0)[:, None], (probs + self.fallback) * 0.5, probs)


def _held(guard: Guard) -> Guard:
    """Return the guard with ranges that float32 holds."""
    low, high = np.maximum(guard.low, -LARGEST), np.minimum(guard.high, LARGEST)
    return Guard(low, high, guard.missing, guard.fallback, guard.levels)


def _unknown_levels(nodes: Nodes, levels: NDArray[Any]) -> str:
    """Add which inputs are categories with a code that is none."""
    floor = nodes.node("Floor", [INPUT], "whole_code")
    known = [
        nodes.node("Equal", [INPUT, floor], "is_whole"),
        nodes.node("Greater", [INPUT, nodes.single("least_code", -0.5)], "is_code"),
        nodes.node("Less", [INPUT, nodes.single("level_counts", levels - 0.5)], "is_below"),
    ]
    both = nodes.node("And", known[:2], "is_whole_code")
    level = nodes.node("And", [both, known[2]], "is_level")
    level = nodes.node("Or", [level, "is_nan"], "is_level_or_missing")
    other = nodes.node("Not", [level], "is_other")
    return nodes.node("And", [other, nodes.constant("is_category", levels > 0)], "unknown_level")


def _any(nodes: Nodes, name: str, flags: str) -> str:
    """Add 1 for rows (batch, 1) with a flag, else 0."""
    whole = nodes.node("Cast", [flags], f"{name}_whole", to=nodes.onnx.TensorProto.INT32)
    return nodes.node("ReduceMax", [whole], f"{name}_any", axes=[1], keepdims=1)


def _whole(nodes: Nodes, name: str, value: int) -> str:
    return nodes.constant(f"{name}_value", np.array(int(value), np.int32))


# --------------------------------------------------------------------------------------------------
# The reject option as ONNX nodes and as torch operations
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# A folded dense model as an ONNX graph
#
#     z = (x - centre) per_scale,   h_i = Relu(Gemm(h_{i-1}, W_i, b_i)),   raw = Gemm(h, W, b) + 0 z
#
# The layers read z within the guard's ranges and up to the network's reach, and what
# `embedding_nodes` makes of it. Of categories and missing values x is what
# `encoding_nodes` makes of them.
#
# 0 z is the sum over a row of z - z: NaN where an input is NaN or infinite, else 0. Without it a
# run-time may make an ordinary number of such a row on the way through Relu or QuantizeLinear.
# `laplace_nodes` adds the nodes of the Laplace approximation, `NodeArithmetic` those of links.
#
# In eight bits the numbers are those of `quantise`: activations are divided by their row's step, so
# that QuantizeLinear has the scale 1, and products multiplied by it. The first layer computes in
# floats, as it takes inputs (and embeddings) of more than eight bits; the last one has no
# QuantizeLinear. Weights are stored as bytes from 1 to 255 about 128: on x86 processors without
# VNNI, ONNX Runtime's products of bytes and signed bytes may saturate at 16 bits, those of bytes
# and bytes never do.
# --------------------------------------------------------------------------------------------------

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
        z = moved(nodes, folded.facts.guard, network, z)
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
    told = NAMES[0] if refusal is None else "input_status"
    flagged = None if known is None else guard_nodes(nodes, known, told)
    own = "" if flagged is None else "network_"
    if isinstance(output.link, Softmax):
        raw = raw if wider is None else corrected_logits(nodes, raw, wider)
        nodes.node("Softmax", [raw], f"{own}probs", axis=1)
    else:
        _location_width(nodes, output, output.link, raw, wider, f"{own}std")
    if known is not None and flagged is not None:
        if isinstance(output.link, Softmax):
            mixed(nodes, known, flagged, f"{own}probs")
        else:
            widened(nodes, known, flagged, f"{own}std")
    if refusal is not None:
        is_classifier, missing = isinstance(output.link, Softmax), folded.facts.missing
        refusal_nodes(nodes, refusal, told, is_classifier, missing)
    whole = () if flagged is None else NAMES
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
