"""The forms in which one model can run, each ready to be measured on one row and one thread.

`c-` forms and their rivals are C, timed inside C; `ctypes` is c-float32 called from Python with the
arrays where they lie. torch gets a row that is already scaled, the others one in raw units.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rdeepsense.deploy.c.build import Program
from rdeepsense.deploy.c.compiled import compiled, single
from rdeepsense.deploy.c.export import DTYPES, prepare
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.profile import baselines as rivals
from rdeepsense.deploy.profile import cost
from rdeepsense.deploy.profile.native import Native
from rdeepsense.deploy.profile.subject import Form, Missing, Subject, peak_of_python, timed
from rdeepsense.errors import InputError, RDeepSenseError, require

NAMES = ("torch", "onnxruntime", "onnxruntime-int8", "folded", "ctypes",
         "c-float32", "c-float16", "c-int8", "point", "mcdrop-10", "ssp-5")  # fmt: skip
_RIVAL = re.compile(r"(torch-)?(mcdrop|ssp)-(\d{1,3})")

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


def form(subject: Subject, name: str) -> Form | Missing:
    """The form of that name; one whose library or compiler is not here is told as missing."""
    maker = _maker(name)
    try:
        return maker(subject)
    except RDeepSenseError as error:
        return Missing(name, " ".join(str(error).split()))


def check_names(names: Sequence[str]) -> None:
    """Refuse unknown names and names given twice."""
    for name in names:
        _maker(name)
        if names.count(name) > 1:
            raise InputError(f"--against names {name!r} twice")


def session_form(name: str, what: str, file: Path, subject: Subject, row: Any = None) -> Form:
    """An ONNX file, run by ONNX Runtime on one thread; `row` where it takes no raw units."""
    runtime: Any = require("onnxruntime", "export")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: (subject.row if row is None else row)[None]}
    return Form(
        name,
        f"{what}, ONNX Runtime {runtime.__version__}",
        timed(lambda: session.run(None, feed)),
        file.stat().st_size,
        subject.multiply_adds,
        peak_bytes=lambda: peak_of_python(_ONNX, file, subject.row_file),
        off_by=subject.off_by(session.run(None, feed)),
    )


def _maker(name: str) -> Callable[[Subject], Form]:
    if found := _RIVAL.fullmatch(name):
        in_torch, method, passes = bool(found[1]), found[2], int(found[3])
        if passes < 2:
            raise InputError(f"--against {name}: at least 2 passes are needed")
        return lambda subject: (_torch_rival if in_torch else _rival)(subject, method, passes)
    if name.startswith("c-") and name[2:] in DTYPES:
        return lambda subject: _exported(subject, name[2:])
    makers = {
        "torch": _torch,
        "folded": _numpy,
        "ctypes": _ctypes,
        "point": _point,
        "onnxruntime": lambda subject: _onnx(subject, "float32"),
        "onnxruntime-int8": lambda subject: _onnx(subject, "int8"),
    }
    if name not in makers:
        accepted = ", ".join(NAMES)
        raise InputError(
            f"--against {name!r} is unknown; accepted: {accepted}, any other number of passes, "
            "torch-mcdrop-10, torch-ssp-5"
        )
    return makers[name]


def _torch(subject: Subject) -> Form:
    import torch

    network = subject.estimator.network_.eval().cpu().float()
    scaled = subject.estimator.fitted_.inputs.scaler.transform(subject.row[None].astype(np.float64))
    row = torch.from_numpy(np.asarray(scaled, dtype=np.float32))
    return Form(
        "torch",
        f"torch {torch.__version__}, inference mode",
        timed(lambda: network(row)),
        4 * sum(p.numel() for p in network.parameters()),
        subject.multiply_adds,
        peak_bytes=lambda: peak_of_python(_TORCH, subject.path, subject.row_file),
    )


def _torch_rival(subject: Subject, method: str, passes: int) -> Form:
    folded = subject.folded
    kind = {"mcdrop": "MCDrop", "ssp": "SSP"}[method]
    hidden = folded.widths[1:-1]
    plan = cost.Plan.of(kind, folded.inputs, hidden, folded.outputs, folded.is_classifier, passes)
    return Form(
        f"torch-{method}-{passes}",
        f"{kind}-{passes} of the same shape in torch, random weights, pass by pass",
        timed(cost.prediction(plan)),
        plan.bytes,
        plan.multiply_adds,
    )


def _onnx(subject: Subject, dtype: str) -> Form:
    from rdeepsense.deploy.onnx.graph import model

    network: Any = prepare(subject.folded, dtype, subject.rows)
    file = subject.folder / f"{dtype}.onnx"
    file.write_bytes(model(subject.folded, network).SerializeToString())
    name = "onnxruntime" if dtype == "float32" else "onnxruntime-int8"
    return session_form(name, f"exported to ONNX, {dtype}", file, subject)


def _numpy(subject: Subject) -> Form:
    row = subject.row[None].astype(np.float64)
    return Form(
        "folded",
        f"folded layers, numpy {np.__version__}",
        timed(lambda: subject.folded.forward(row)),
        subject.folded_file.stat().st_size,
        subject.multiply_adds,
        peak_bytes=lambda: peak_of_python(_FOLDED, subject.folded_file, subject.row_file),
    )


def _ctypes(subject: Subject) -> Form:
    built = compiled(subject.folded)
    parts = 1 if built.is_classifier else 2
    call = built.caller(subject.row, np.empty(parts * built.outputs, np.float32))
    return Form(
        "ctypes",
        "C float32 called from Python through ctypes",
        timed(call),
        single(Source(subject.folded, prepare(subject.folded, "float32", subject.rows))).bytes,
        subject.multiply_adds,
        peak_bytes=lambda: peak_of_python(_FOLDED, subject.folded_file, subject.row_file, "C"),
    )


def _exported(subject: Subject, dtype: str) -> Form:
    source = Source(subject.folded, prepare(subject.folded, dtype, subject.rows))
    return _in_c(f"c-{dtype}", f"exported C, {source.values['dtype']}", single(source), subject)


def _point(subject: Subject) -> Form:
    what = "C float32 of the same shape without the std: a point estimate"
    return _in_c("point", what, rivals.point_program(subject.folded), subject)


def _rival(subject: Subject, method: str, passes: int) -> Form:
    make, kind = {"mcdrop": (rivals.mcdrop, "MCDrop"), "ssp": (rivals.ssp, "SSP")}[method]
    what = f"{kind}-{passes} of the same shape in C float32, pass by pass"
    return _in_c(f"{method}-{passes}", what, make(subject.folded, passes), subject, passes)


def _in_c(name: str, what: str, program: Program, subject: Subject, passes: int = 1) -> Form:
    native = Native(program, subject.row)
    native.seconds(1)
    adds = sum(a * b for a, b in pairwise(program.sources[0].folded.widths))
    return Form(
        name,
        what,
        native.seconds,
        program.bytes,
        passes * adds,
        native.instructions,
        native.peak_bytes,
        subject.off_by(native.out),
    )
