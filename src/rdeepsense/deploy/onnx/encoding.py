"""What networks read of a row with categories and missing values, as ONNX nodes.

    [Gather(x, numbers), Cast(IsNaN(Gather(x, flagged))), Gather(vectors, row of the code), ...]

A code that is none of the levels' has the row after theirs, a missing one the row after that.
"""

from __future__ import annotations

import numpy as np

from rdeepsense.deploy.onnx.nodes import INPUT, Nodes
from rdeepsense.encoding import Category, Encoding


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
