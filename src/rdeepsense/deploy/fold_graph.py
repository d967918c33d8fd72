"""From a fitted model whose network is not plain dense layers to a graph of steps.

Scale of targets and calibration go into the last layer, as for dense networks; the batch norms into
the weights before them. What the graph says of drawn rows is compared with torch before anyone
uses it.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import nn

from rdeepsense.deploy.fold import fold_last
from rdeepsense.deploy.folded.graph.graph import Graph
from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.tracing.stream import stream_of
from rdeepsense.deploy.tracing.trace import trace
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted

ROWS = 8
AGREEMENT = 1e-6  # of the spread of the columns


def fold_graph(fitted: Fitted) -> FoldedGraph:
    """Fold all layers of a fitted model into a graph."""
    if fitted.inputs.encoding is not None:
        raise InputError(
            "categories, and flags of missing values, are for fully-connected networks here; "
            "fit this one on numbers, with missing='mean'"
        )
    facts, last, output = fold_last(fitted)
    body = copy.deepcopy(fitted.network.body).cpu().double().eval()
    linear = body.get_submodule(fitted.network.output)
    assert isinstance(linear, nn.Linear)
    with torch.no_grad():
        linear.weight.copy_(torch.from_numpy(last.weight))
        linear.bias.copy_(torch.from_numpy(last.bias))
    scaler, shape = fitted.inputs.scaler, fitted.inputs.shape
    graph = Graph(shape, scaler.shift, scaler.scale, trace(body, shape))
    _compare(body, graph)
    return FoldedGraph(facts, graph, output, stream_of(body, graph))


def _compare(body: nn.Module, graph: Graph) -> None:
    """Refuse a graph that is not the network: rows that depend on each other, or on chance."""
    z = np.random.default_rng(0).normal(size=(ROWS, *graph.shape))
    with torch.no_grad():
        wanted = body(torch.from_numpy(z)).reshape(ROWS, -1).numpy()
    found = graph.computed(z.reshape(ROWS, -1))
    size = np.abs(wanted - wanted.mean()).max() + np.finfo(np.float32).tiny
    if found.shape != wanted.shape or not np.abs(found - wanted).max() <= AGREEMENT * size:
        raise InputError(
            f"{type(body).__name__} cannot be exported: its steps, taken one after the other, do "
            "not give what it gives; accepted: networks whose rows do not depend on each other, on "
            "chance or on numbers that a forward reads into Python"
        )
