"""Periodic embeddings of the inputs as ONNX nodes.

    e_j = Relu(W_j [Sin, Cos](2 pi (p - Round(p))) + b_j),   p = c_j z_j

The axes are input, row, wave, so that one MatMul multiplies each input's waves by its own W_j.
"""

from __future__ import annotations

import numpy as np

from rdeepsense.deploy.onnx.nodes import Nodes
from rdeepsense.deploy.stored_embedding import StoredEmbedding
from rdeepsense.guard import EMBEDDING_REACH

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
