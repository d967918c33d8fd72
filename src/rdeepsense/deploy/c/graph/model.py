"""What the C of a graph is made of, beside its steps."""

from __future__ import annotations

from math import prod

from rdeepsense.arrays import Floats
from rdeepsense.deploy.c.graph.stored import StoredGraph
from rdeepsense.deploy.c.inputs import CModel
from rdeepsense.deploy.c.text import identifier
from rdeepsense.deploy.folded.graph.model import FoldedGraph


def graph_model(
    folded: FoldedGraph, network: StoredGraph, name: str, sure: Floats | None
) -> CModel:
    """Take from a folded graph what its C needs."""
    facts, graph, output = folded.facts, folded.graph, folded.output
    return CModel(
        name=identifier(name),
        network=network,
        widths=(graph.inputs, graph.columns),
        link=output.link,
        spread=output.spread,
        shift=output.shift,
        laplace=None,
        guard=facts.guard,
        encoding=None,
        sure=sure,
        intervals=facts.intervals,
        missing=facts.missing,
        centre=graph.centre,
        scale=graph.scale,
        head=facts.head,
        classes=facts.classes,
        features=facts.features,
        feature_units=facts.feature_units,
        targets=facts.targets,
        target_units=facts.target_units,
        version=facts.version,
        source=facts.source,
        window=prod(graph.shape[:-1]),
    )
