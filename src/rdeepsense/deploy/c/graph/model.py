"""What the C of a graph is made of, beside its steps."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from rdeepsense.arrays import Floats
from rdeepsense.deploy.c.graph.stored import StoredGraph
from rdeepsense.deploy.c.inputs import CModel, plain_model
from rdeepsense.deploy.folded.graph.model import FoldedGraph


def graph_model(
    folded: FoldedGraph, network: StoredGraph, name: str, sure: Floats | None
) -> CModel:
    """Take from a folded graph what its C needs."""
    facts, graph, output = folded.facts, folded.graph, folded.output
    widths = (graph.inputs, graph.columns)
    plain = plain_model(name, network, widths, facts, output, graph, sure)
    return replace(plain, window=prod(graph.shape[:-1]))
