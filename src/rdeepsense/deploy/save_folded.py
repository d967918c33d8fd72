"""A folded model to its file, which `folded.runtime` reads with numpy alone."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.folded.fields import check_header
from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.folded.graph.record import STEP, graph_arrays, graph_record
from rdeepsense.deploy.folded.layout import EMBEDDING, LAPLACE, arrays_of
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.link import to_json
from rdeepsense.modelfile import tensors as model_file

NARROWED = ("layer.", EMBEDDING, LAPLACE, STEP)  # the arrays that may be float32


def save(folded: Folded | FoldedGraph, path: str | os.PathLike[str]) -> None:
    """Write the folded model as one safetensors file, whole or not at all."""
    facts = folded.facts
    steps = None if isinstance(folded, Folded) else graph_record(folded.graph)
    header = {
        "kind": "folded",
        "head": facts.head,  # for information: the link is what counts
        "link": to_json(folded.output.link),
        "layers": len(folded.layers.dense) if isinstance(folded, Folded) else 1,
        **({} if steps is None else {"graph": steps}),
        **({} if facts.recipe is None else {"windows": facts.recipe.to_json()}),
        **({} if facts.smoothing is None else {"smoothing": asdict(facts.smoothing)}),
        **({"dates": list(facts.dated)} if facts.dated else {}),
        "classes": None if facts.classes is None else facts.classes.tolist(),
        "class_dtype": None if facts.classes is None else facts.classes.dtype.str,
        "features": facts.features,
        "feature_units": facts.feature_units,
        "targets": facts.targets,
        "target_units": facts.target_units,
        "missing": facts.missing,
        "columns": facts.inputs,
        "encoding": None if facts.encoding is None else facts.encoding.to_json(),
        "one_output": facts.one_output,
        "calibration": facts.calibration,
        "version": facts.version,
        "source": facts.source,
    }
    # What reading would refuse is refused here, before anything is written.
    check_header(json.loads(json.dumps(header)))
    found = arrays_of(folded) if isinstance(folded, Folded) else graph_arrays(folded)
    tensors: dict[str, NDArray[Any]] = {
        name: _smallest(values) if name.startswith(NARROWED) else values
        for name, values in found.items()
    }
    model_file.write(path, header, tensors)


def _smallest(values: NDArray[np.float64]) -> NDArray[Any]:
    """Narrow to float32 where that keeps every bit, as it does for layers left as trained."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return narrow if np.array_equal(narrow.astype(np.float64), values) else values
