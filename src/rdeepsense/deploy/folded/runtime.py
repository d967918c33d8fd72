"""Load a folded model with numpy alone: no torch, scipy, scikit-learn or safetensors.

The file may be anyone's. `container` bounds its bytes, `fields` its header and `layout` the shapes
of its tensors, all before a number is read; here the numbers are held to their ranges.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from rdeepsense.arrays import Floats, double_columns
from rdeepsense.compact_novelty import BYTE, LARGEST_SINGLE, SINGLES, WHOLE, CompactNovelty
from rdeepsense.deploy.folded.embedding import FASTEST, Embedding
from rdeepsense.deploy.folded.facts import Facts, Intervals
from rdeepsense.deploy.folded.fields import (
    TEXTS,
    check_header,
    classes_of,
    encoding_record,
    link_of,
    recipe_of,
    smoothing_of,
    texts_of,
)
from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.folded.graph.record import check_graph, graph_of
from rdeepsense.deploy.folded.laplace import LastLayerLaplace
from rdeepsense.deploy.folded.layers import DenseLayer, Layers
from rdeepsense.deploy.folded.layout import (
    EMBEDDING,
    GUARD,
    INTERVAL,
    LAPLACE,
    NOVELTY,
    REFUSAL,
    check_shapes,
)
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.folded.output import Output
from rdeepsense.deploy.folded.runner import MeanStd
from rdeepsense.encoding import ENCODING, MOST_LEVELS, Encoding, encoding_of
from rdeepsense.encoding import LARGEST as ENCODED
from rdeepsense.errors import InputError, ModelFileError
from rdeepsense.guard import FURTHEST, REACH, Guard
from rdeepsense.link import Link, LocationWidth
from rdeepsense.modelfile.container import Header, Tensor, read
from rdeepsense.refusal import Refusal

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
