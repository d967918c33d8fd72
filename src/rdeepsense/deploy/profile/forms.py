"""`rds.profile`: the forms of a model side by side, and the baselines beside them."""

from __future__ import annotations

import copy
import ctypes
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rdeepsense.deploy.c.build import (
    SHARED,
    Program,
    Target,
    build,
    compiled,
    need_compiler,
    options,
    single,
)
from rdeepsense.deploy.c.emit import Assembly, Source, header, switches
from rdeepsense.deploy.c.graph import GraphSource
from rdeepsense.deploy.c.inputs import as_stored, table
from rdeepsense.deploy.c.streams import StreamCost
from rdeepsense.deploy.fold import fold_last, folded_form, save
from rdeepsense.deploy.folded.graph import FoldedGraph, Graph
from rdeepsense.deploy.folded.model import DenseLayer, Folded, Layers, MeanStd, Output
from rdeepsense.deploy.onnx.export import module_graph, open_session
from rdeepsense.deploy.onnx.nodes import model
from rdeepsense.deploy.profile import measure as cost
from rdeepsense.deploy.profile.measure import (
    DEFAULT,
    Device,
    Measured,
    Missing,
    ProfileCandidate,
    device_named,
    measure,
    peak_of_python,
    timed,
)
from rdeepsense.deploy.quantise import DTYPES, as_float32, prepare
from rdeepsense.errors import InputError, RDeepSenseError, require
from rdeepsense.estimators.base import DistributionEstimator, fitted_model
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.link import Column, LocationWidth, Softmax

# --------------------------------------------------------------------------------------------------
# A C program, timed in a loop and counted by callgrind
#
# Timed is the fastest build for this processor, or one for the level of x86 that RDEEPSENSE_LEVEL
# names. Counted is one without AVX-512, which valgrind does not know (on x86 -march=x86-64-v3,
# elsewhere the compiler's own choice); the counts are of one prediction and the same every time.
# --------------------------------------------------------------------------------------------------

COUNTED = ("-march=x86-64-v3",) if platform.machine() in ("x86_64", "AMD64") else ()
POSIX = "-D_POSIX_C_SOURCE=199309L"  # clock_gettime

C = Path(__file__).parent / "c"


# The function that a stream of windows calls for each interval, by its way.
OF_STREAMS = {"exact": "model_push_interval", "running": "model_run_interval"}


class Native:
    """A built program and the row that it predicts; in a `way` of streams, its first interval."""

    def __init__(self, program: Program, row: NDArray[Any], way: str | None = None) -> None:
        source = program.sources[0]
        self.function = "model_predict" if way is None else OF_STREAMS[way]
        self.program = program
        self.compiler = need_compiler("this form")
        self.row = np.ascontiguousarray(row, dtype=np.float32)
        self.out = np.zeros((len(source.model.results), source.model.outputs), np.float32)
        row_section = {"row.h": f"static {table('float', 'row', self.row)}"}
        switches = {**source.switches, "RUNS": way == "running"}
        if way is not None:
            calls = Assembly("model", switches).text(C / "interval_into.h")
            row_section["predict_into.h"] = calls
        around = Assembly("model", switches, row_section)
        times, once = ({name: around.text(C / name)} for name in ("times.c", "once.c"))
        library, self.executable = build(
            self.compiler,
            program,
            [
                Target(".so", (*SHARED, *options(), POSIX), times, ("-lm",)),
                Target("", ("-std=c99", "-O3", *COUNTED), once, ("-lm",)),
            ],
        )
        self._library = ctypes.CDLL(str(library))
        self._library.model_times.restype = None

    def seconds(self, count: int) -> NDArray[np.float64]:
        """Time each of `count` predictions, in C."""
        times = np.empty(count)
        pointers = (_pointer(a) for a in (self.row, self.out, times))
        self._library.model_times(*pointers, ctypes.c_size_t(count))
        return times

    def instructions(self) -> int | None:
        """Count those of one prediction; None where callgrind is not here or cannot run it."""
        valgrind = shutil.which("valgrind")
        if valgrind is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            options = ["--tool=callgrind", f"--toggle-collect={self.function}"]
            file = f"--callgrind-out-file={Path(folder) / 'counts'}"
            done = subprocess.run(
                [valgrind, *options, file, str(self.executable)], capture_output=True, text=True
            )
        found = re.search(r"Collected : (\d+)", done.stderr)
        return int(found[1]) if found and done.returncode == 0 else None

    def peak_bytes(self) -> int | None:
        """Measure a process that only predicts one row; None where /proc does not say."""
        done = subprocess.run([str(self.executable)], capture_output=True, text=True)
        return 1024 * int(done.stdout) or None


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


# --------------------------------------------------------------------------------------------------
# Baselines for the cost of a prediction: C of the same shape
#
#     point:     the mean alone, without the rows of the last layer and the head that make the std
#     MCDrop-k:  k passes of the point network, each with a dropout mask of its own (section 4.3)
#     SSP-k:     k networks with weights of their own, one after the other (section 4.3)
#
# The passes end in the moments of their mixture; classes in the mean of their probabilities:
#
#     mean = 1/k sum m_i,   var = 1/k sum (s_i^2 + m_i^2) - mean^2
#
# The weights are the model's own: SSP's members are copies that lie apart in memory, so their
# mixture is the model's prediction, and MCDrop's kept units are divided by the keep probability.
# --------------------------------------------------------------------------------------------------

DROP_PROB = 0.1


class DroppingSource(Source):
    """A network that drops hidden units at random; of one thread, as its generator is shared."""

    @cached_property
    def switches(self) -> dict[str, bool]:
        return {**switches(self.model), "DROPOUT": True}

    def config(self) -> str:
        return f"{super().config()}#define DROPPED {round(DROP_PROB * 2**32)}u\n"


def point(folded: Folded) -> Folded:
    """Leave out the rows of the std; a classifier has none and stays as it is."""
    if isinstance(folded.output.link, Softmax):
        return folded
    outputs, layers = folded.facts.outputs, folded.layers
    last, none = layers.dense[-1], np.zeros(outputs)
    mean = DenseLayer(last.weight[:outputs], last.bias[:outputs])
    return Folded(
        replace(folded.facts, head="point", intervals=None, guard=None),
        replace(layers, dense=(*layers.dense[:-1], mean)),
        Output(LocationWidth(Column(0), None), none, none),
    )


def point_program(folded: Folded) -> Program:
    """Build the point estimate."""
    alone = point(folded)
    return single(Source(alone, as_float32(alone)))


def mcdrop(folded: Folded, passes: int) -> Program:
    """Build MCDrop-k: every pass is one of the same network."""
    alone = point(folded)
    first, *others = alone.layers.dense
    scaled = [DenseLayer(layer.weight / (1 - DROP_PROB), layer.bias) for layer in others]
    alone = replace(alone, layers=replace(alone.layers, dense=(first, *scaled)))
    return _mixture([DroppingSource(alone, as_float32(alone), "member0")], passes)


def ssp(folded: Folded, members: int) -> Program:
    """Build SSP-k: every pass is one of another network."""
    folded = replace(folded, facts=replace(folded.facts, guard=None))
    network = as_float32(folded)
    return _mixture([Source(folded, network, f"member{k}") for k in range(members)], members)


def _mixture(sources: list[Source], passes: int) -> Program:
    names = [f"{sources[k % len(sources)].name}_predict" for k in range(passes)]
    includes = "".join(f'#include "{s.name}/model.h"\n' for s in sources)
    members = f"{includes}#define PASSES {passes}\n#define MEMBERS {', '.join(names)}\n"
    around = Assembly("model", sources[0].switches, {"members.h": members})
    files = {"model.h": around.text(C / "mixture.h"), "model.c": around.text(C / "mixture.c")}
    for source in sources:
        files[f"{source.name}/model.h"] = header(source)
        files[f"{source.name}/model.c"] = source.code()
    return Program(files, tuple(sources))


# --------------------------------------------------------------------------------------------------
# The profiled model, and the row that all forms predict
# --------------------------------------------------------------------------------------------------


class ProfiledModel:
    """A fitted model, one of the rows that it kept, and a folder for what is made of them."""

    def __init__(self, fitted: Fitted, folder: Path, save: Callable[[Path], None]) -> None:
        self.fitted, self.folder, self._save = fitted, folder, save
        self.folded: Folded | FoldedGraph = folded_form(fitted)
        self.rows: NDArray[Any] = np.asarray(fitted.kept_rows[0])
        axes = tuple(range(1, self.rows.ndim))
        complete = self.rows[np.isfinite(self.rows).all(axes)]
        layers = self.layers
        if len(complete):
            row = complete[len(complete) // 2]
            row = _typical(layers, complete) if isinstance(layers, Layers) else row
        else:
            row = layers.rows_at(np.zeros((1, layers.inputs)))[0]
        self.row: NDArray[np.float32] = row.astype(np.float32)

    @classmethod
    def of(cls, model: DistributionEstimator, folder: Path) -> ProfiledModel:
        """Read a fitted estimator."""
        return cls(fitted_model(model), folder, model.save)

    @property
    def layers(self) -> Layers | Graph:
        """What computes the columns of the last layer."""
        return self.folded.layers if isinstance(self.folded, Folded) else self.folded.graph

    @property
    def dense(self) -> Folded:
        """The model as plain dense layers; refused where it is none."""
        if not isinstance(self.folded, Folded):
            raise InputError("this form is for fully-connected networks")
        return self.folded

    @property
    def widths(self) -> tuple[int, ...]:
        """Inputs, hidden layers, columns of the last layer; of a graph its ends alone."""
        layers = self.layers
        return layers.widths if isinstance(layers, Layers) else (layers.inputs, layers.columns)

    def source(self, dtype: str) -> Source:
        """Return the C of the model."""
        if isinstance(self.folded, FoldedGraph):
            return GraphSource(self.folded, as_stored(self.folded, dtype))
        return Source(self.folded, prepare(self.folded, dtype, self.rows))

    def off_by(self, found: NDArray[Any]) -> float:
        """Measure how far means, or probabilities, are from those of the folded model."""
        wanted = self.folded.run(self.row[None].astype(np.float64))
        if isinstance(wanted, MeanStd):
            return float(np.max(np.abs(found - wanted.mean) / wanted.std))
        return float(np.max(np.abs(found - wanted.probs)))

    @cached_property
    def row_file(self) -> Path:
        np.save(self.folder / "row.npy", self.row[None])
        return self.folder / "row.npy"

    @cached_property
    def model_file(self) -> Path:
        self._save(self.folder / "model.safetensors")
        return self.folder / "model.safetensors"

    @cached_property
    def folded_file(self) -> Path:
        save(self.folded, self.folder / "model.folded")
        return self.folder / "model.folded"


def _typical(layers: Layers, rows: NDArray[Any]) -> NDArray[Any]:
    """Find the row with the median number of hidden units that fire: C skips the others."""
    h, fired = layers.read(rows), np.zeros(len(rows))
    for layer in layers.dense[:-1]:
        h = np.maximum(h @ layer.weight.T + layer.bias, 0.0)
        fired += (h > 0).sum(1)
    row: NDArray[Any] = rows[np.argsort(fired, kind="stable")[len(rows) // 2]]
    return row


# --------------------------------------------------------------------------------------------------
# The forms of a model, ready to be measured
#
# `c-` candidates and baselines are C, timed inside C; `ctypes` is c-float32 called from Python with
# the arrays where they lie. torch gets a row that is already scaled, the others one in raw units.
# --------------------------------------------------------------------------------------------------

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
    return _in_c("point", what, point_program(profiled.dense), profiled)


def _baseline(profiled: ProfiledModel, method: str, passes: int) -> ProfileCandidate:
    make, kind = {"mcdrop": (mcdrop, "MCDrop"), "ssp": (ssp, "SSP")}[method]
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


# --------------------------------------------------------------------------------------------------
# `rdeepsense.profile`: cost of one prediction in every form of a model
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProfileReport:
    """The figures of all candidates, and the machine and the network that they are of."""

    layers: tuple[int, ...]  # inputs, hidden layers, columns of the last layer
    machine: str
    rounds: int
    energy: str  # where the energy comes from
    candidates: tuple[Measured | Missing, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "layers": list(self.layers),
            "machine": self.machine,
            "rounds": self.rounds,
            "energy": self.energy,
            "forms": [one.to_json() for one in self.candidates],
        }


def profile(
    model: DistributionEstimator,
    *,
    candidates: Sequence[str] | None = None,
    rounds: int = 20,
    device: str | None = None,
) -> ProfileReport:
    """Measure time, instructions, memory and energy of one prediction in every form of a model.

    Each form predicts one of the rows that the model kept, on one thread. All take turns in each
    round; the round with the smallest median counts. Forms of C are compiled on the first run.

    Parameters
    ----------
    model : a fitted `RDeepSenseRegressor` or `RDeepSenseClassifier` whose network can be exported
        as C.
    candidates : names such as "torch", "onnxruntime", "folded", "c-int8", "mcdrop-20", "ssp-3"; of
        windows also "c-exact" and "c-running", an interval of a stream. All of this model where
        None, for fully-connected networks with MCDrop-10 and SSP-5.
    rounds : how often all take their turn.
    device : the device that energy is estimated for: "Intel Edison" (the paper's),
        "Raspberry Pi 4" or "Cortex-M4". None takes a meter of this machine, where there is one.

    Returns
    -------
    ProfileReport : the figures of each; `to_json()` gives them as plain values.
    """
    check_names(tuple(candidates or ()))
    if rounds < 1:
        raise InputError(f"rounds={rounds!r} must be 1 or more")
    estimated_for = DEFAULT if device is None else device_named(device)
    # One that was named is what was asked for: it is not set aside for a meter.
    meter = cost.find() if device is None else None
    with tempfile.TemporaryDirectory() as folder:
        profiled = ProfiledModel.of(model, Path(folder))
        every = NAMES if isinstance(profiled.folded, Folded) else OF_WINDOWS
        names = every if candidates is None else tuple(candidates)
        found = measure([candidate(profiled, name) for name in names], rounds, meter, estimated_for)
        layers = profiled.widths
    return ProfileReport(layers, machine(), rounds, energy_label(meter, estimated_for), found)


def energy_label(meter: cost.Meter | None, device: Device) -> str:
    """Say where the energy comes from."""
    if meter is not None:
        return f"measured: {meter.name}"
    return (
        f"estimated for {device.name} from the multiply-adds: "
        f"{device.multiply_adds_per_second:g} a second at {device.watts:g} W"
    )


def machine() -> str:
    """Name the processor in words."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if "model name" in line]
    name = names[0] if names else platform.processor() or platform.machine()
    return f"{name}, one thread of {os.cpu_count()}, {platform.system()}"
