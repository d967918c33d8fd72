"""What each step of a graph costs, as the report lists layers."""

from __future__ import annotations

from rdeepsense.deploy.c.graph.rounded import Weighted
from rdeepsense.deploy.c.graph.stored import StoredGraph
from rdeepsense.deploy.c.report import LayerCost


def graph_costs(network: StoredGraph) -> tuple[LayerCost, ...]:
    """Count steps that multiply; those without weights of their own are in float32."""
    graph, found = network.graph, []
    for k, (node, cost) in enumerate(zip(graph.nodes, graph.costs, strict=True)):
        if not cost:
            continue
        inputs = sum(graph.sizes[read] for read in node.reads)
        dtype = network.dtype if isinstance(node, Weighted) else "float32"
        found.append(LayerCost(inputs, graph.sizes[k + 1], cost, dtype, node.kind))
    return tuple(found)
