"""The file of a folded model: layout, checks, reading with numpy alone."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats, double_columns
from rdeepsense.compact_novelty import BYTE, LARGEST_SINGLE, NUMBERS, SINGLES, WHOLE, CompactNovelty
from rdeepsense.deploy.folded.graph import (
    COUNT,
    MOST_NUMBERS,
    MOST_STEPS,
    PLACE,
    Activation,
    Affine,
    Concatenated,
    Convolution,
    FoldedGraph,
    Graph,
    Gru,
    Linear,
    Lstm,
    Mean,
    Node,
    Pool,
    Spectrum,
    Strided,
    Sum,
    value_sizes,
)
from rdeepsense.deploy.folded.model import (
    FASTEST,
    DenseLayer,
    Embedding,
    Facts,
    Folded,
    Intervals,
    LastLayerLaplace,
    Layers,
    MeanStd,
    Output,
    Texts,
)
from rdeepsense.encoding import (
    ENCODING,
    MOST_COLUMNS,
    MOST_LEVELS,
    Encoding,
    check_encoding,
    encoding_of,
    without_tables,
)
from rdeepsense.encoding import LARGEST as ENCODED
from rdeepsense.errors import InputError, ModelFileError
from rdeepsense.guard import FURTHEST, REACH, Guard
from rdeepsense.link import (
    Column,
    Expression,
    Link,
    LocationWidth,
    Operation,
    Softmax,
    add,
    from_json,
    softplus,
    sqrt,
)
from rdeepsense.modelfile.container import Header, Tensor, read
from rdeepsense.modelfile.schema import (
    DTYPE,
    FLAG,
    LABELS,
    TEXT,
    Kind,
    check_fields,
    choice,
    labels_of,
    maybe,
    several,
    whole,
)
from rdeepsense.modelfile.schema import TEXTS as KEPT_TEXTS
from rdeepsense.refusal import Refusal
from rdeepsense.windowing.recipe import Recipe
from rdeepsense.windowing.stream import Smoothing

# --------------------------------------------------------------------------------------------------
# Arrays of a folded model: names and consistent shapes
#
#     centre, scale                    (inputs,), as many as are read once a row is encoded
#     encoding.K                       (levels + 2, width), of categories
#     embedding.frequency, .bias       (inputs, frequencies), (inputs, width), where there is one
#     embedding.weight                 (inputs times width, 2 times frequencies)
#     layer.k.weight, layer.k.bias     (width k + 1, width k), (width k + 1,); width 0 is inputs and
#                                      the embedding's, the last outputs times the link's columns
#     spread, shift                    (outputs,), of numbers alone
#     interval.coverages               (coverages,); .low, .high and .conformal (coverages, outputs)
#     doubt.root                       square: size of the hidden layer, perhaps the inputs, + 1
#     doubt.gain, doubt.std            (outputs,)
#     guard.low, .high, .missing       (columns of a row,); .levels too, where there are categories
#     guard.fallback                   (outputs,)
#     refusal.threshold, .spread       (1,), (outputs,), of classes (1,)
#     novelty.*                        as `compact_novelty` has them
#
# A file is held to it before its numbers are read, and a model made by hand before it is run.
# --------------------------------------------------------------------------------------------------

Shape = tuple[int, ...]
LAPLACE = "doubt."  # before the names of its arrays
INTERVAL = "interval."
GUARD = "guard."
REFUSAL = "refusal."
NOVELTY = "novelty."
EMBEDDING = "embedding."
MOST_LAYERS = 1_000
MOST_OF_NOVELTY = 256  # columns, knots, components, Gaussians


def arrays_of(folded: Folded) -> dict[str, Floats]:
    """Name every array of a model."""
    layers, output, facts = folded.layers, folded.output, folded.facts
    found: dict[str, Floats | None] = {"centre": layers.centre, "scale": layers.scale}
    for k, layer in enumerate(layers.dense):
        found[f"layer.{k}.weight"], found[f"layer.{k}.bias"] = layer.weight, layer.bias
    if layers.embedding is not None:
        found |= {f"{EMBEDDING}{name}": value for name, value in vars(layers.embedding).items()}
    if layers.encoding is not None:
        found |= layers.encoding.arrays()
    if output.laplace is not None:
        found |= {f"{LAPLACE}{name}": value for name, value in vars(output.laplace).items()}
    return {n: value for n, value in found.items() if value is not None} | shared(facts, output)


def shared(facts: Facts, output: Output) -> dict[str, Floats]:
    """Name the arrays that a model has whatever its layers are."""
    found: dict[str, Floats | None] = {"spread": output.spread, "shift": output.shift}
    if facts.guard is not None:
        found |= {f"{GUARD}{name}": value for name, value in facts.guard.arrays().items()}
    if facts.refusal is not None:
        found |= {f"{REFUSAL}{name}": value for name, value in facts.refusal.arrays().items()}
    if facts.novelty is not None:
        found |= {f"{NOVELTY}{name}": value for name, value in facts.novelty.arrays().items()}
    if facts.intervals is not None:
        found |= {f"{INTERVAL}{name}": value for name, value in vars(facts.intervals).items()}
    return {name: value for name, value in found.items() if value is not None}


def check_folded(folded: Folded) -> None:
    """Refuse a model, made by hand perhaps, whose arrays do not fit together."""
    shapes = {name: value.shape for name, value in arrays_of(folded).items()}
    facts = folded.facts
    classes = None if facts.classes is None else len(facts.classes)
    layers = folded.layers
    outputs = check_shapes(shapes, folded.output.link, len(layers.dense), classes, layers.encoding)
    if facts.encoding is not layers.encoding:
        raise InputError("the facts have another encoding than the layers")
    if (facts.inputs, facts.outputs) != (layers.columns, outputs):
        raise InputError(
            f"the layers have {layers.columns} inputs and {outputs} outputs, "
            f"the facts say {facts.inputs} and {facts.outputs}"
        )


def check_shapes(
    shapes: Mapping[str, Shape],
    link: Link,
    layers: int,
    classes: int | None,
    encoding: Encoding | None = None,
    windows: bool = False,
) -> int:
    """Return the number of outputs, or name the first array that does not fit the others."""
    if not 0 < layers <= MOST_LAYERS:
        raise InputError(f"layers = {layers} must be 1 to {MOST_LAYERS}")
    inputs = _length(shapes, "centre")
    wanted: dict[str, Shape] = {"centre": (inputs,), "scale": (inputs,)}
    columns = inputs
    if encoding is not None:
        columns, tables = encoding.inputs, encoding.shapes(shapes)
        read = len(encoding.numbers) + len(encoding.flagged)
        if read + sum(shape[1] for shape in tables.values()) != inputs:
            raise InputError(f"the encoding does not fit the layers, which read {inputs} numbers")
        wanted |= tables
    wanted |= _embedding(shapes, inputs)
    embedded = math.prod(wanted.get(f"{EMBEDDING}bias", (0,)))
    width, hidden = inputs + embedded, 0
    for k in range(layers):
        hidden, before, width = width if k else 0, width, _length(shapes, f"layer.{k}.bias")
        wanted |= {f"layer.{k}.bias": (width,), f"layer.{k}.weight": (width, before)}
    if embedded and layers == 1:
        raise InputError("an embedding is read by the last layer; it takes a hidden one")
    for name, shape in wanted.items():
        if shapes.get(name) != shape and name.startswith("layer."):
            number = name.split(".")[1]
            raise InputError(f"layer {number} does not fit the one before it: {_is(shapes, name)}")
    if link.columns < 1 or width % link.columns:
        raise InputError(
            f"the link does not fit the layers: it reads {link.columns} columns of each output, "
            f"and the last layer has {width}"
        )
    outputs = width // link.columns
    if classes != (outputs if isinstance(link, Softmax) else None):
        raise InputError(
            f"the link does not fit the classes: {classes or 'none'} for {outputs} outputs"
        )
    if isinstance(link, LocationWidth):
        wanted |= {"spread": (outputs,), "shift": (outputs,)}
    wanted |= _laplace(shapes, hidden, inputs, outputs) | _intervals(shapes, link, outputs)
    if any(name.startswith(GUARD) for name in shapes):
        coded = encoding is not None and bool(encoding.categories)
        names = ("low", "high", "missing", *["levels"] * coded)
        wanted |= {f"{GUARD}{name}": (columns,) for name in names}
        wanted[f"{GUARD}fallback"] = (outputs,)
    if any(name.startswith(REFUSAL) for name in shapes):
        spread = 1 if isinstance(link, Softmax) else outputs
        wanted |= {f"{REFUSAL}threshold": (1,), f"{REFUSAL}spread": (spread,)}
    if any(name.startswith(NOVELTY) for name in shapes):
        read = columns if encoding is None else len(encoding.numbers)
        wanted |= _novelty(shapes, read, windows)
    for name, shape in wanted.items():
        if shapes.get(name) != shape:
            raise InputError(f"{name} does not fit the layers: {_is(shapes, name)}, not {shape}")
    for name in shapes:
        if name not in wanted:
            raise InputError(f"{name!r:.60} is no array of such a model")
    return outputs


def _embedding(shapes: Mapping[str, Shape], inputs: int) -> dict[str, Shape]:
    if not any(name.startswith(EMBEDDING) for name in shapes):
        return {}
    waves = 2 * _last(shapes, f"{EMBEDDING}frequency")
    width = _last(shapes, f"{EMBEDDING}bias")
    return {
        f"{EMBEDDING}frequency": (inputs, waves // 2),
        f"{EMBEDDING}weight": (inputs * width, waves),
        f"{EMBEDDING}bias": (inputs, width),
    }


def _laplace(
    shapes: Mapping[str, Shape], hidden: int, inputs: int, outputs: int
) -> dict[str, Shape]:
    if not any(name.startswith(LAPLACE) for name in shapes):
        return {}
    rows = _length(shapes, f"{LAPLACE}root")
    if rows - 1 not in (hidden, hidden + inputs):
        raise InputError(
            f"the epistemic matrix does not fit the layers: {LAPLACE}root has {rows} rows, "
            f"not {hidden + 1} or {hidden + inputs + 1}"
        )
    numbers = (outputs,)
    return {f"{LAPLACE}root": (rows, rows), f"{LAPLACE}gain": numbers, f"{LAPLACE}std": numbers}


def _novelty(shapes: Mapping[str, Shape], inputs: int, windows: bool) -> dict[str, Shape]:
    columns = inputs * (NUMBERS if windows else 1)
    knots, size = _last(shapes, f"{NOVELTY}knots"), _length(shapes, f"{NOVELTY}axis_steps")
    gaussians = _length(shapes, f"{NOVELTY}constants")
    if knots < 2 or max(columns, knots, size, gaussians) > MOST_OF_NOVELTY:
        raise InputError(
            f"{NOVELTY}* have {columns} columns, {knots} knots, {size} components and {gaussians} "
            f"Gaussians; at most {MOST_OF_NOVELTY} of any, and two knots or more"
        )
    own: dict[str, Shape] = {
        "centre": (inputs,),
        "lines": (columns, 4),
        "knots": (columns, knots),
        "scores": (columns, knots),
        "axes": (columns, size),
        "axis_steps": (size,),
        "factors": (gaussians, size, size),
        "factor_steps": (gaussians, size),
        "means": (gaussians, size),
        "constants": (gaussians,),
        "threshold": (1,),
    }
    if f"{NOVELTY}width" in shapes:  # files of before there was one have none
        own["width"] = (1,)
    return {f"{NOVELTY}{name}": shape for name, shape in own.items()}


def _intervals(shapes: Mapping[str, Shape], link: Link, outputs: int) -> dict[str, Shape]:
    if isinstance(link, Softmax) or not any(name.startswith(INTERVAL) for name in shapes):
        return {}
    coverages = _length(shapes, f"{INTERVAL}coverages")
    table = (coverages, outputs)
    wanted: dict[str, Shape] = {f"{INTERVAL}coverages": (coverages,)}
    wanted |= {f"{INTERVAL}low": table, f"{INTERVAL}high": table}
    if f"{INTERVAL}conformal" in shapes:
        wanted[f"{INTERVAL}conformal"] = table
    return wanted


def _length(shapes: Mapping[str, Shape], name: str) -> int:
    shape = shapes.get(name)
    if not shape or not shape[0]:
        raise InputError(f"{name} is missing or has no numbers")
    return shape[0]


def _last(shapes: Mapping[str, Shape], name: str) -> int:
    """Return the columns of a matrix."""
    _length(shapes, name)
    if len(shapes[name]) != 2 or not shapes[name][1]:
        raise InputError(f"{name} is no matrix: {_is(shapes, name)}")
    return shapes[name][1]


def _is(shapes: Mapping[str, Shape], name: str) -> str:
    return f"{name} has shape {shapes[name]}" if name in shapes else f"{name} is missing"


# --------------------------------------------------------------------------------------------------
# Header fields of a folded file, checked when they are read
# --------------------------------------------------------------------------------------------------

TEXTS = ("features", "feature_units", "targets", "target_units")


def check_header(header: Header) -> None:
    """Refuse a header whose fields are not of their types, or out of range; name the first."""
    # Files of before texts were kept lack some.
    check_fields(header, FIELDS, dict.fromkeys((*TEXTS, "dates"), maybe(KEPT_TEXTS)))
    if (header["classes"] is None) != (header["class_dtype"] is None):
        raise InputError("class_dtype is garbled; it belongs to classes, and they to it")


def texts_of(header: Header, name: str, count: int) -> Texts | None:
    """Read names or units, of which there must be this many."""
    texts = header.get(name)
    if not texts:
        return None
    if len(texts) != count:
        raise InputError(f"{name} do not fit the layers: {len(texts)} texts for {count}")
    return tuple(texts)


def classes_of(header: Header) -> NDArray[Any] | None:
    """Read the labels of a classifier; every one must survive its dtype."""
    if header["classes"] is None:
        return None
    return labels_of(header["classes"], header["class_dtype"])


def encoding_record(header: Header) -> Encoding | None:
    """Read the record of an encoding, without its tables; None where there is none."""
    if header.get("encoding") is None:
        return None
    check_fields(header, {"columns": whole(1, MOST_COLUMNS)})
    check_encoding(header["encoding"], header["columns"])
    return without_tables(header["encoding"], header["columns"])


def recipe_of(header: Header, shape: tuple[int, ...]) -> Recipe | None:
    """Read how windows of this shape are cut from a log; None where nobody said."""
    if "windows" not in header:
        return None
    recipe = Recipe.from_json(header["windows"])
    if (recipe.length, len(recipe.channels)) != shape:
        raise InputError(
            f"windows are of {recipe.length} samples of {len(recipe.channels)} channels, which "
            f"does not fit the graph of {list(shape)}"
        )
    return recipe


def smoothing_of(header: Header) -> Smoothing | None:
    """Read how the decisions of a stream are taken together."""
    if "smoothing" not in header:
        return None
    if "windows" not in header or header["classes"] is None:
        raise InputError("smoothing is for classes of windows that say how they are cut")
    return Smoothing.from_json(header["smoothing"])


def link_of(header: Header) -> Link:
    """Read the link; files of before there were links name a head and its floor instead."""
    if "link" in header:
        try:
            link = from_json(header["link"])
        except OverflowError as error:
            raise InputError("the link holds a number that is too large") from error
    else:
        link = _link_of_head(header)
    if isinstance(link, LocationWidth):
        if not _reads_columns(link.location):
            raise InputError("the link takes the column of a negative number")
        sign(link.location)
        if link.width is not None and not (_reads_columns(link.width) and sign(link.width) > 0):
            raise InputError("the link's width can be 0 or negative")
    return link


def sign(expression: Expression) -> int:
    """Tell what is known of an expression for any columns: 1 positive, 0 not negative, -1 nothing.

    A square counts as positive: it is 0 at single points only. A root of what may be negative is
    refused.
    """
    if isinstance(expression, Column):
        return -1
    if isinstance(expression, Operation):
        signs = [sign(argument) for argument in expression.arguments]
        if expression.name == "sqrt" and signs[0] < 0:
            raise InputError("the link takes the root of what may be negative")
        if expression.name in ("softplus", "exp"):
            return 1
        if expression.name == "square":
            return 0 if signs[0] == 0 else 1
        if expression.name == "add":
            return max(signs) if min(signs) >= 0 else -1
        if expression.name == "multiply" and expression.arguments[0] == expression.arguments[1]:
            return 0 if signs[0] == 0 else 1
        return min(signs)
    return (expression > 0) - (expression < 0)


def _reads_columns(expression: Expression) -> bool:
    """Tell whether every column that an expression reads is one."""
    if isinstance(expression, Operation):
        return all(map(_reads_columns, expression.arguments))
    return not isinstance(expression, Column) or expression.number >= 0


def _link_of_head(header: Header) -> Link:
    name, floor = header["head"], header.get("floor")
    if not isinstance(floor, int | float) or isinstance(floor, bool) or not 0 <= floor <= 1e100:
        raise InputError(f"floor = {floor!r:.60} is garbled; it must be a number, 0 or more")
    positive: Expression = add(softplus(Column(1)), float(floor))
    of_heads: dict[str, Link] = {
        "gaussian": LocationWidth(Column(0), sqrt(positive)),
        "student": LocationWidth(Column(0), positive),
        "categorical": Softmax(),
    }
    if name not in of_heads:
        raise InputError(f"has the head {name!r:.60}, unknown here")
    return of_heads[name]


# What each field that every file has may be.
FIELDS = {
    "head": TEXT,
    "layers": whole(1, MOST_LAYERS),
    "classes": maybe(LABELS),
    "class_dtype": maybe(DTYPE),
    "missing": choice("refuse", "mean", "indicator"),
    "one_output": FLAG,
    "calibration": maybe(TEXT),
    "version": TEXT,
    "source": TEXT,
}


# --------------------------------------------------------------------------------------------------
# Graphs in a folded file: steps in the header, arrays among the tensors
#
#     graph = {"shape": [time, .., channels], "steps": [{"kind": .., "reads": [..], ..}, ..]}
#     step.k.weight, step.k.bias, step.k.scale, step.k.shift, as step k has them
#
# Anyone may have written the file: each field is held to its kind, every step to what it reads, all
# from shapes alone, before a number is looked at.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Loading of a folded model with numpy alone
#
# A file may come from anyone. Before a number is read, `modelfile.container` bounds its bytes,
# `check_header` its header and `check_shapes` the shapes of its tensors. Then each number is
# checked against its range.
# --------------------------------------------------------------------------------------------------

Arrays = dict[str, Floats]
DTYPES = ("F64", "F32")
LARGEST = 1e150  # of any number, so that a product of two is one
LARGEST_COLUMN = 1e100  # of the last layer, for rows within REACH standard deviations
LEAST = 1 / LARGEST
WHOLE_NUMBERS = tuple(f"{NOVELTY}{name}" for name in WHOLE)
# Numbers that a device holds in float32, or as bytes.
NOVELTY_RANGES = {
    **{f"{NOVELTY}{name}": (-LARGEST_SINGLE, LARGEST_SINGLE) for name in SINGLES},
    **dict.fromkeys(WHOLE_NUMBERS, (-float(BYTE), float(BYTE))),
    f"{NOVELTY}width": (1 / LARGEST_SINGLE, LARGEST_SINGLE),
}
# The least and the largest that the numbers of a tensor may be, where it is not +- LARGEST.
RANGES = {
    "scale": (LEAST, LARGEST),
    "spread": (LEAST, LARGEST),
    f"{INTERVAL}coverages": (LEAST, 1.0),
    f"{INTERVAL}conformal": (0.0, np.inf),  # infinite where too few rows were set aside
    f"{EMBEDDING}frequency": (-FASTEST, FASTEST),
    f"{LAPLACE}gain": (0.0, LARGEST),
    f"{LAPLACE}std": (0.0, LARGEST),
    f"{GUARD}low": (-FURTHEST, FURTHEST),
    f"{GUARD}high": (-FURTHEST, FURTHEST),
    f"{GUARD}missing": (0.0, 1.0),
    f"{GUARD}levels": (0.0, MOST_LEVELS),
    f"{GUARD}fallback": (0.0, LARGEST),
    f"{REFUSAL}spread": (LEAST, LARGEST),
    **NOVELTY_RANGES,
}


def load_folded(path: str | os.PathLike[str]) -> Folded | FoldedGraph:
    """Read a folded model from its file, verified."""
    header, tensors = read(path)
    try:
        if header.get("kind") != "folded":
            raise InputError(
                f"is a {header.get('kind')!s:.40}, not a folded model; "
                "rdeepsense.export(model, path, to='folded') makes one"
            )
        check_header(header)
        link, classes = link_of(header), classes_of(header)
        shapes = {name: tensor.shape for name, tensor in tensors.items()}
        steps = check_graph(header, shapes)
        shapes = shapes if steps is None else steps
        record = encoding_record(header)
        outputs = check_shapes(
            shapes,
            link,
            header["layers"],
            None if classes is None else len(classes),
            record,
            len(header.get("graph", {}).get("shape", ())) > 1,
        )
        inputs, named = shapes["centre"][0], outputs if classes is None else 1
        inputs = inputs if record is None else record.inputs
        if header["one_output"] and (classes is not None or outputs != 1):
            raise InputError(f"one_output is garbled: the layers have {outputs} outputs")
        counts = dict(zip(TEXTS, (inputs, inputs, named, named), strict=True))
        texts: dict[str, Any] = {
            name: texts_of(header, name, count) for name, count in counts.items()
        }
        arrays = {name: _floats(name, tensor) for name, tensor in tensors.items()}
        _check_numbers(arrays, link)
        graph = graph_of(header, arrays)
        encoding = None
        if record is not None:
            encoding = encoding_of(header["encoding"], record.inputs, arrays)
            if not np.array_equal(arrays.get(f"{GUARD}levels", record.counts), record.counts):
                raise InputError(f"{GUARD}levels does not fit the encoding")
        parts, laplace = _under(INTERVAL, arrays), _under(LAPLACE, arrays)
        guard, refusal, novelty = (_under(name, arrays) for name in (GUARD, REFUSAL, NOVELTY))
        facts = Facts(
            inputs=inputs,
            outputs=outputs,
            head=header["head"],
            **texts,
            classes=classes,
            missing=header["missing"],
            one_output=header["one_output"],
            calibration=header["calibration"],
            intervals=Intervals(**parts) if parts else None,
            guard=Guard(**guard) if guard else None,
            encoding=encoding,
            version=header["version"],
            source=header["source"],
            window=() if graph is None else graph.shape[:-1],
            recipe=recipe_of(header, () if graph is None else graph.shape),
            smoothing=smoothing_of(header),
            refusal=Refusal(**refusal) if refusal else None,
            novelty=CompactNovelty(**novelty) if novelty else None,
            dated=tuple(header.get("dates") or ()),
            double=_double(arrays, encoding),
        )
        output = Output(
            link,
            arrays.get("spread"),
            arrays.get("shift"),
            LastLayerLaplace(**laplace) if laplace else None,
        )
        folded: Folded | FoldedGraph
        if graph is None:
            folded = Folded(facts, replace(_layers(header, arrays), encoding=encoding), output)
        else:
            folded = FoldedGraph(facts, graph, output)
        _try_rows(folded)
    except InputError as error:
        raise ModelFileError(f"{path}: {error}") from error
    return folded


def _double(arrays: Arrays, encoding: Encoding | None) -> tuple[int, ...]:
    """Return the columns that need float64."""
    found = double_columns(arrays["centre"], arrays["scale"])
    if encoding is None:
        return found
    numbers = encoding.numbers
    return tuple(numbers[k] for k in found if k < len(numbers))


def _floats(name: str, tensor: Tensor) -> Floats:
    if tensor.dtype not in DTYPES:
        raise InputError(f"{name} has dtype {tensor.dtype}; accepted: {', '.join(DTYPES)}")
    return tensor.view().astype(np.float64)


def _layers(header: Header, arrays: Arrays) -> Layers:
    dense = (
        DenseLayer(arrays[f"layer.{k}.weight"], arrays[f"layer.{k}.bias"])
        for k in range(header["layers"])
    )
    found = _under(EMBEDDING, arrays)
    embedding = Embedding(**found) if found else None
    return Layers(arrays["centre"], arrays["scale"], tuple(dense), embedding)


def _check_numbers(arrays: Arrays, link: Link) -> None:
    """Refuse numbers that are NaN or out of their range."""
    ranges = dict(RANGES)
    if isinstance(link, LocationWidth) and link.width is None:
        ranges["spread"] = (0.0, LARGEST)
    for name, values in arrays.items():
        most = ENCODED if name.startswith(ENCODING) else LARGEST
        least, largest = ranges.get(name, (-most, most))
        low, high = values.min(), values.max()  # NaN where any is; without a copy of the array
        if not (least <= low and high <= largest):
            raise InputError(
                f"{name} holds {low:g} to {high:g}; accepted: {least:g} to {largest:g}"
            )
    low, high = arrays.get(f"{INTERVAL}low"), arrays.get(f"{INTERVAL}high")
    if low is not None and high is not None and not (low <= high).all():
        raise InputError(f"{INTERVAL}low lies above {INTERVAL}high")
    guard = _under(GUARD, arrays)
    if guard and not (guard["low"] <= guard["high"]).all():
        raise InputError(f"{GUARD}low lies above {GUARD}high")
    if guard and not isinstance(link, LocationWidth) and abs(guard["fallback"].sum() - 1) > 1e-6:
        raise InputError(f"{GUARD}fallback holds no frequencies of classes: their sum is not 1")
    knots = arrays.get(f"{NOVELTY}knots")
    if knots is not None and (np.diff(knots, axis=1) < 0).any():
        raise InputError(f"{NOVELTY}knots are not in order")
    for name in WHOLE_NUMBERS:
        if name in arrays and (arrays[name] != np.rint(arrays[name])).any():
            raise InputError(f"{name} holds what is no whole number")
    root = arrays.get(f"{LAPLACE}root")
    if root is not None and any(row[:k].any() for k, row in enumerate(root)):
        raise InputError(f"{LAPLACE}root is not upper triangular")


def _try_rows(folded: Folded | FoldedGraph) -> None:
    """Refuse a model that has no finite prediction for the rows that it should know best.

    These are the centre of the training rows and a standard deviation on either side of it. Far
    from it the layers at least must not overflow.
    """
    layers = folded.layers if isinstance(folded, Folded) else folded.graph
    steps = np.array([[0.0], [1.0], [-1.0], [REACH], [-REACH]])
    with np.errstate(all="ignore"):
        # Without the guard: not every form of the model can hold its ranges.
        open_to_all = replace(folded, facts=replace(folded.facts, guard=None))
        raw = open_to_all.raw(layers.rows_at(steps * np.ones(layers.inputs)))
        if not np.abs(raw).max() <= LARGEST_COLUMN:
            raise InputError("the layers overflow: their weights are too large")
        found = folded.output.finish(raw[:3])
    fits = all(np.isfinite(part).all() for part in found if part is not None)
    if isinstance(found, MeanStd):
        link = folded.output.link
        assert isinstance(link, LocationWidth)
        fits = fits and (link.width is None or bool((found.std > 0).all()))
    if not fits:
        raise InputError("the link or spread gives no finite mean and positive std")


def _under(prefix: str, arrays: Arrays) -> Arrays:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
