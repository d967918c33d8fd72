"""The forms in which one model can run, each ready to be measured on one row and one thread.

`c-` candidates and baselines are C, timed inside C; `ctypes` is c-float32 called from Python with
the arrays where they lie. torch gets a row that is already scaled, the others one in raw units.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from rdeepsense.deploy.c.build import Program
from rdeepsense.deploy.c.compiled import compiled, single
from rdeepsense.deploy.c.graph.cost import StreamCost
from rdeepsense.deploy.c.graph.source import GraphSource
from rdeepsense.deploy.fold import fold_last
from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.onnx.graph import model
from rdeepsense.deploy.onnx.modules import module_graph
from rdeepsense.deploy.onnx.runner import open_session
from rdeepsense.deploy.prepare import DTYPES, prepare
from rdeepsense.deploy.profile import baselines, cost
from rdeepsense.deploy.profile.candidate import Missing, ProfileCandidate, peak_of_python, timed
from rdeepsense.deploy.profile.native import Native
from rdeepsense.deploy.profile.profiled_model import ProfiledModel
from rdeepsense.errors import InputError, RDeepSenseError, require

NAMES = ("torch", "onnxruntime", "onnxruntime-int8", "folded", "ctypes",
         "c-float32", "c-float16", "c-int8", "point", "mcdrop-10", "ssp-5")  # fmt: skip
# Of networks of windows: the last two are an interval of a stream, in float32.
OF_WINDOWS = ("torch", "onnxruntime", "folded", "ctypes", "c-float32", "c-int8",
              "c-exact", "c-running")  # fmt: skip
_BASELINE = re.compile(r"(torch-)?(mcdrop|ssp)-(\d{1,3})")

_TORCH = (
    "import sys, numpy, rdeepsense\nrdeepsense.load(sys.argv[1]).predict(numpy.load(sys.argv[2]))"
)
_FOLDED = """import sys, numpy
from rdeepsense.deploy import load
load(sys.argv[1], compile=len(sys.argv) > 3).predict(numpy.load(sys.argv[2]))
"""
_ONNX = """import sys, numpy, onnxruntime
onnxruntime.InferenceSession(sys.argv[1]).run(None, {"x": numpy.load(sys.argv[2])})
"""


def candidate(profiled: ProfiledModel, name: str) -> ProfileCandidate | Missing:
    """Make the candidate of that name; one whose library or compiler is not here is missing."""
    maker = _maker(name)
    try:
        return maker(profiled)
    except RDeepSenseError as error:
        return Missing(name, " ".join(str(error).split()))


def check_names(names: Sequence[str]) -> None:
    """Refuse unknown names and names given twice."""
    for name in names:
        _maker(name)
        if names.count(name) > 1:
            raise InputError(f"candidates= names {name!r} twice")


def session_candidate(
    name: str,
    what: str,
    file: Path,
    profiled: ProfiledModel,
    row: NDArray[np.float32] | None = None,
) -> ProfileCandidate:
    """Run an ONNX file by ONNX Runtime on one thread; `row` where it takes no raw units."""
    session = open_session(str(file))
    version = require("onnxruntime", "export").__version__
    feed = {session.get_inputs()[0].name: (profiled.row if row is None else row)[None]}
    return ProfileCandidate(
        name,
        f"{what}, ONNX Runtime {version}",
        timed(lambda: session.run(None, feed)),
        file.stat().st_size,
        profiled.layers.multiply_adds,
        peak_bytes=lambda: peak_of_python(_ONNX, file, profiled.row_file),
        off_by=profiled.off_by(session.run(None, feed)[0]),
    )


def _maker(name: str) -> Callable[[ProfiledModel], ProfileCandidate]:
    if found := _BASELINE.fullmatch(name):
        in_torch, method, passes = bool(found[1]), found[2], int(found[3])
        if passes < 2:
            raise InputError(f"candidates={name!r}: at least 2 passes are needed")
        return lambda profiled: (_torch_baseline if in_torch else _baseline)(
            profiled, method, passes
        )
    if name.startswith("c-") and name[2:] in DTYPES:
        return lambda profiled: _exported(profiled, name[2:])
    if name in OF_WINDOWS[-2:]:
        return lambda profiled: _stream(profiled, name[2:])
    makers = {
        "torch": _torch,
        "folded": _numpy,
        "ctypes": _ctypes,
        "point": _point,
        "onnxruntime": lambda profiled: _onnx(profiled, "float32"),
        "onnxruntime-int8": lambda profiled: _onnx(profiled, "int8"),
    }
    if name not in makers:
        accepted = ", ".join(NAMES)
        raise InputError(
            f"candidates={name!r} is unknown; accepted: {accepted}, any other number of passes, "
            "torch-mcdrop-10, torch-ssp-5"
        )
    return makers[name]


def _torch(profiled: ProfiledModel) -> ProfileCandidate:
    network = copy.deepcopy(profiled.fitted.network).eval().cpu().float()
    row = profiled.fitted.inputs.scaler.transform(profiled.row[None].astype(np.float64))
    return ProfileCandidate(
        "torch",
        f"torch {torch.__version__}, inference mode",
        timed(lambda: network(row)),
        4 * sum(p.numel() for p in network.parameters()),
        profiled.layers.multiply_adds,
        peak_bytes=lambda: peak_of_python(_TORCH, profiled.model_file, profiled.row_file),
    )


def _torch_baseline(profiled: ProfiledModel, method: str, passes: int) -> ProfileCandidate:
    facts, hidden = profiled.folded.facts, profiled.dense.layers.widths[1:-1]
    kind = {"mcdrop": "MCDrop", "ssp": "SSP"}[method]
    inputs = profiled.dense.layers.inputs
    plan = cost.PassPlan.of(kind, inputs, hidden, facts.outputs, facts.is_classifier, passes)
    embedding = profiled.dense.layers.embedding
    if embedding is not None:
        plan = replace(plan, embedding=(embedding.frequency.shape[1], embedding.bias.shape[1]))
    return ProfileCandidate(
        f"torch-{method}-{passes}",
        f"{kind}-{passes} of the same shape in torch, random weights, pass by pass",
        timed(cost.prediction(plan)),
        plan.bytes,
        plan.multiply_adds,
    )


def _onnx(profiled: ProfiledModel, dtype: str) -> ProfileCandidate:
    file = profiled.folder / f"{dtype}.onnx"
    if isinstance(profiled.folded, FoldedGraph) and dtype == "float32":
        _, last, output = fold_last(profiled.fitted)
        made = module_graph(profiled.fitted, last, output)
    else:
        made = model(profiled.dense, prepare(profiled.dense, dtype, profiled.rows))
    file.write_bytes(made.SerializeToString())
    name = "onnxruntime" if dtype == "float32" else "onnxruntime-int8"
    return session_candidate(name, f"exported to ONNX, {dtype}", file, profiled)


def _numpy(profiled: ProfiledModel) -> ProfileCandidate:
    row = profiled.row[None].astype(np.float64)
    return ProfileCandidate(
        "folded",
        f"folded layers, numpy {np.__version__}",
        timed(lambda: profiled.folded.run(row)),
        profiled.folded_file.stat().st_size,
        profiled.layers.multiply_adds,
        peak_bytes=lambda: peak_of_python(_FOLDED, profiled.folded_file, profiled.row_file),
    )


def _ctypes(profiled: ProfiledModel) -> ProfileCandidate:
    built = compiled(profiled.folded)
    call = built.caller(profiled.row, np.empty(built.parts * built.facts.outputs, np.float32))
    return ProfileCandidate(
        "ctypes",
        "C float32 called from Python through ctypes",
        timed(call),
        single(profiled.source("float32")).bytes,
        profiled.layers.multiply_adds,
        peak_bytes=lambda: peak_of_python(_FOLDED, profiled.folded_file, profiled.row_file, "C"),
    )


def _exported(profiled: ProfiledModel, dtype: str) -> ProfileCandidate:
    source = profiled.source(dtype)
    return _in_c(f"c-{dtype}", f"exported C, {source.values['dtype']}", single(source), profiled)


def _stream(profiled: ProfiledModel, way: str) -> ProfileCandidate:
    """One interval of a stream in C: the window that ends with it, or states that go on."""
    source = profiled.source("float32")
    if not isinstance(source, GraphSource) or source.stream is None:
        raise InputError("this form is for networks of windows that take interval by interval")
    program = single(source)
    native = Native(program, profiled.row.reshape(-1)[: source.stream.read], way)
    native.seconds(source.stream.count)
    cost = StreamCost.of(source.stream, source.model.channels, None)
    return ProfileCandidate(
        f"c-{way}",
        f"exported C, float32, one interval of a stream ({way})",
        native.seconds,
        program.bytes,
        cost.multiply_adds[way],
        native.instructions,
        native.peak_bytes,
    )


def _point(profiled: ProfiledModel) -> ProfileCandidate:
    what = "C float32 of the same shape without the std: a point estimate"
    return _in_c("point", what, baselines.point_program(profiled.dense), profiled)


def _baseline(profiled: ProfiledModel, method: str, passes: int) -> ProfileCandidate:
    make, kind = {"mcdrop": (baselines.mcdrop, "MCDrop"), "ssp": (baselines.ssp, "SSP")}[method]
    what = f"{kind}-{passes} of the same shape in C float32, pass by pass"
    return _in_c(f"{method}-{passes}", what, make(profiled.dense, passes), profiled, passes)


def _in_c(
    name: str, what: str, program: Program, profiled: ProfiledModel, passes: int = 1
) -> ProfileCandidate:
    native = Native(program, profiled.row)
    native.seconds(1)
    adds = program.sources[0].multiply_adds
    return ProfileCandidate(
        name,
        what,
        native.seconds,
        program.bytes,
        passes * adds,
        native.instructions,
        native.peak_bytes,
        profiled.off_by(native.out[0]),
    )
