"""The arrays of a folded model: their names in its file, and the shapes that fit together.

    centre, scale                    (inputs,), as many as are read once a row is encoded
    encoding.K                       (levels + 2, width), of categories
    embedding.frequency, .bias       (inputs, frequencies), (inputs, width), where there is one
    embedding.weight                 (inputs times width, 2 times frequencies)
    layer.k.weight, layer.k.bias     (width k + 1, width k), (width k + 1,); width 0 is inputs and
                                     the embedding's, the last outputs times the link's columns
    spread, shift                    (outputs,), of numbers alone
    interval.coverages               (coverages,); .low, .high and .conformal (coverages, outputs)
    doubt.root                       square, of the hidden layer's and perhaps the inputs' size + 1
    doubt.gain, doubt.std            (outputs,)
    guard.low, .high, .missing       (columns of a row,); .levels too, where there are categories
    guard.fallback                   (outputs,)
    refusal.threshold, .spread       (1,), (outputs,), of classes (1,)
    novelty.*                        as `compact_novelty` has them

A file is held to it before its numbers are read, and a model made by hand before it is run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rdeepsense.arrays import Floats
from rdeepsense.compact_novelty import NUMBERS
from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.folded.output import Output
from rdeepsense.encoding import Encoding
from rdeepsense.errors import InputError
from rdeepsense.link import Link, LocationWidth, Softmax

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
