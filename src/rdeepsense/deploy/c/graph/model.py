"""What the C of a graph is made of, beside its steps."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from rdeepsense.deploy.c.graph.stored import StoredGraph
from rdeepsense.deploy.c.inputs import CModel, plain_model
from rdeepsense.deploy.c.live import CLive
from rdeepsense.deploy.folded.graph.last_layer import last_layer
from rdeepsense.deploy.folded.graph.model import FoldedGraph


def graph_model(
    folded: FoldedGraph,
    network: StoredGraph,
    name: str,
    live: CLive | None = None,
) -> CModel:
    """Take from a folded graph what its C needs."""
    facts, graph, output = folded.facts, folded.graph, folded.output
    learns = live is not None or folded.narrowing is not None
    hidden = (last_layer(graph).weight.shape[1],) if learns else ()
    widths = (graph.inputs, *hidden, graph.columns)
    plain = plain_model(name, network, widths, facts, output, graph)
    window = prod(graph.shape[:-1])
    return replace(plain, window=window, live=live, narrowing=folded.narrowing)
