"""A graph in a folded file: its steps in the header, their arrays among the tensors.

    graph = {"shape": [time, .., channels], "steps": [{"kind": .., "reads": [..], ..}, ..]}
    step.k.weight, step.k.bias, step.k.scale, step.k.shift, as step k has them

Anyone may have written the file: each field is held to its kind, every step to what it reads, all
from shapes alone, before a number is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.graph.graph import MOST_STEPS, Graph, value_sizes
from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.folded.graph.node import COUNT, MOST_NUMBERS, PLACE, Node
from rdeepsense.deploy.folded.graph.pointwise import Activation, Affine, Mean, Sum
from rdeepsense.deploy.folded.graph.recurrent import Gru, Lstm
from rdeepsense.deploy.folded.graph.shaping import Concatenated, Strided
from rdeepsense.deploy.folded.graph.spectrum import Spectrum
from rdeepsense.deploy.folded.graph.weighted import Convolution, Linear, Pool
from rdeepsense.deploy.folded.layout import Shape, shared
from rdeepsense.errors import InputError
from rdeepsense.modelfile.container import Header
from rdeepsense.modelfile.schema import Kind, check_fields, choice, several

STEP = "step."
MOST_AXES = 4  # of a row
MOST_READ = 64
MOST_WORK = 1 << 30  # multiply-adds of a row, so that a small file cannot keep a reader busy
KINDS: dict[str, type[Node]] = {
    one.kind: one
    for one in (Strided, Concatenated, Activation, Sum, Affine, Mean, Linear, Convolution, Pool,
                Gru, Lstm, Spectrum)
}  # fmt: skip
STEPS = Kind(
    lambda value: type(value) is list and 0 < len(value) <= MOST_STEPS,
    f"a list of 1 to {MOST_STEPS} steps",
)
GRAPH = {"shape": several(COUNT, MOST_AXES, least=1), "steps": STEPS}
EVERY = {"kind": choice(*KINDS), "reads": several(PLACE, MOST_READ, least=1)}


def graph_record(graph: Graph) -> Header:
    """Return what the header of a file says of a graph."""
    steps = [
        {"kind": node.kind, "reads": list(node.reads)}
        | {name: _plain(getattr(node, name)) for name in node.fields}
        for node in graph.nodes
    ]
    return {"shape": list(graph.shape), "steps": steps}


def graph_arrays(folded: FoldedGraph) -> dict[str, Floats]:
    """Name every array of a model."""
    graph = folded.graph
    found = {"centre": graph.centre, "scale": graph.scale}
    for k, node in enumerate(graph.nodes):
        found |= {f"{STEP}{k}.{name}": getattr(node, name) for name in node.arrays}
    return found | shared(folded.facts, folded.output)


def check_graph(header: Header, shapes: Mapping[str, Shape]) -> dict[str, Shape] | None:
    """Hold a header's graph to its fields and shapes; None where the file has none.

    Returns the shapes of all other arrays, with the graph in the place of one dense layer: what
    they must fit is how many channels go in and how many columns come out.
    """
    if "graph" not in header:
        return None
    check_fields(header["graph"], GRAPH, at="graph.")
    if header["layers"] != 1 or header.get("encoding") is not None:
        raise InputError("a graph stands alone: without layers or an encoding beside it")
    shape = header["graph"]["shape"]
    if prod(shape) > MOST_NUMBERS:
        raise InputError(f"graph.shape has {prod(shape)} numbers; at most {MOST_NUMBERS}")
    wanted = _wanted(header)
    for name, axes in wanted.items():
        if len(shapes.get(name, ())) != axes or 0 in shapes[name]:
            raise InputError(f"{name} has the shape {shapes.get(name)}, not {axes} axes")
    # Arrays of that shape that take no memory tell what a step makes of them.
    empty = {name: np.broadcast_to(0.0, shapes[name]) for name in wanted}
    nodes = _nodes(header, empty)
    sizes = value_sizes(prod(shape), nodes)
    work = sum(node.multiply_adds(*(sizes[k] for k in node.reads)) for node in nodes)
    if work > MOST_WORK:
        raise InputError(f"a row takes {work} multiply-adds; at most {MOST_WORK}")
    others = {name: one for name, one in shapes.items() if name not in wanted}
    stray = [name for name in others if name.startswith(("layer.", "embedding.", "doubt."))]
    if stray:
        raise InputError(f"{stray[0]!r:.60} is no array of such a model")
    columns = sizes[-1]
    return {**others, "layer.0.weight": (columns, shape[-1]), "layer.0.bias": (columns,)}


def graph_of(header: Header, arrays: Mapping[str, Floats]) -> Graph | None:
    """Read the graph of a header that `check_graph` has let through."""
    if "graph" not in header:
        return None
    shape = tuple(header["graph"]["shape"])
    if len(arrays["centre"]) != shape[-1]:
        raise InputError(f"centre has {len(arrays['centre'])} numbers for {shape[-1]} channels")
    return Graph(shape, arrays["centre"], arrays["scale"], _nodes(header, arrays))


def _wanted(header: Header) -> dict[str, int]:
    """Name the arrays of all steps, and their numbers of axes."""
    found: dict[str, int] = {}
    for k, step in enumerate(header["graph"]["steps"]):
        check_fields(step, EVERY, at=f"graph.steps.{k}.")
        kind = KINDS[step["kind"]]
        check_fields(step, kind.fields, at=f"graph.steps.{k}.")
        found |= {f"{STEP}{k}.{name}": axes for name, axes in kind.arrays.items()}
    return found


def _nodes(header: Header, arrays: Mapping[str, Floats]) -> tuple[Node, ...]:
    return tuple(
        KINDS[step["kind"]](
            reads=tuple(step["reads"]),
            **{name: _frozen(step[name]) for name in KINDS[step["kind"]].fields},
            **{name: arrays[f"{STEP}{k}.{name}"] for name in KINDS[step["kind"]].arrays},
        )
        for k, step in enumerate(header["graph"]["steps"])
    )


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
