"""The reject rule of `rdeepsense.refusal` is the same in every form of a model, NaN included."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from deploy.c.graph.test_export import motion
from deploy.c.live_models import InC
from deploy.c_models import COMPILERS, FAST, library, predict, write
from deploy.folded_models import hand_made, with_facts
from deploy.web.calls import call
from numpy.typing import NDArray

import rdeepsense as rds
from rdeepsense.adaptation.rates import Rates
from rdeepsense.deploy import load
from rdeepsense.deploy.c.emit import Source
from rdeepsense.deploy.c.export import fold_live
from rdeepsense.deploy.c.graph import GraphSource
from rdeepsense.deploy.c.inputs import as_stored
from rdeepsense.deploy.fold import fold, fold_fitted, folded_form, with_adaptation_folded
from rdeepsense.deploy.folded.model import DenseLayer, Folded, Output
from rdeepsense.deploy.onnx.export import OnnxRunner
from rdeepsense.deploy.onnx.nodes import TorchRefusal
from rdeepsense.deploy.onnx.nodes import model as onnx_graph
from rdeepsense.deploy.quantise import NetworkRunner, prepare
from rdeepsense.deploy.web.export import wasm_compiler
from rdeepsense.errors import InputError
from rdeepsense.guard import Guard
from rdeepsense.link import Column, LocationWidth
from rdeepsense.networks import DeepSense
from rdeepsense.predict.columns import Answers, OutputColumns
from rdeepsense.predict.prepare import known_of, torch_runner
from rdeepsense.refusal import Refusal, rejected
from rdeepsense.status import Status

needs_compiler = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
FIT: dict[str, Any] = {"random_state": 0, "verbose": False, "effort": "quick", "device": "cpu"}
FIT |= {"epochs": 3}
KINDS = [("number", "refuse"), ("two", "indicator"), ("classes", "mean"), ("two", "mean"),
         ("classes", "refuse"), ("number", "indicator"), ("classes", "indicator")]  # fmt: skip
NAN, INF = np.nan, np.inf
# Rows without a value where some were missing, or where none was; infinite; far away.
ORDINARY = 40
STRANGE = [[NAN, 0.2, 0.3], [0.1, NAN, 0.3], [INF, 0.2, 0.3], [0.1, -INF, 0.3], [NAN, INF, 0.3],
           [1e30, 0.0, 0.0], [3e38, -3e38, 0.0], [NAN] * 3, [INF] * 3]  # fmt: skip
Fitted = Callable[..., Any]


def table(kind: str, missing: str, fitted: Fitted) -> Any:
    """A model of three inputs, of which the first may be missing unless `missing` is "refuse"."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + 0.3 * (1 + np.abs(X[:, 1])) * rng.normal(size=300)
    if missing != "refuse":
        X[::7, 0] = np.nan
    if kind == "classes":
        estimator = rds.RDeepSenseClassifier(hidden=(6,), missing=missing, **FIT)
        return fitted(estimator, X, np.where(y > 0, "high", "low"))
    y = y if kind == "number" else np.c_[y, 10 * y + rng.normal(size=300)]
    return fitted(rds.RDeepSenseRegressor(hidden=(6,), missing=missing, **FIT), X, y)


def rows() -> NDArray[np.float32]:
    ordinary = np.random.default_rng(1).normal(size=(ORDINARY, 3))
    return np.concatenate([ordinary, STRANGE]).astype(np.float32)


def unsure(status: Any) -> NDArray[np.bool_]:
    return np.asarray((np.asarray(status, np.uint8) & Status.UNSURE) > 0)


def option_of(model: Any, every: bool) -> rds.RejectOption:
    """A reject option that accepts a share of the rows, or every row that has a score."""
    X, y = model.fitted_.kept_rows
    y = model.classes_[y] if model.fitted_.target.is_classes else y
    goal = {"threshold": 1e6} if every else {"target_coverage": 0.7}
    return rds.RejectOption(**goal).fit(model, X, y)


def near(option: rds.RejectOption, X: Any) -> NDArray[np.bool_]:
    """Rows whose score float32 cannot tell from the threshold."""
    return np.abs(option.uncertainty(X) / option.threshold_ - 1) < 1e-4


def in_batches(model: Any, option: rds.RejectOption, X: Any) -> Any:
    """What prediction of files says, in its columns `status` and `reject`."""
    wanted = OutputColumns(further=("status", "reject"))
    refusal = Refusal(np.array([option.threshold_]), option.spread_)
    known = replace(known_of(model, wanted), refusal=refusal)
    columns = Answers(known, wanted, torch_runner(model, wanted)).of(X).columns
    status = columns["status"]
    words = np.char.find(np.asarray(status.values, str), "unsure")[status.codes] >= 0
    np.testing.assert_array_equal(words, columns["reject"])
    return words * int(Status.UNSURE)


def session(path: Path) -> Any:
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("every", [False, True], ids=["share", "every"])
@pytest.mark.parametrize(("kind", "missing"), KINDS)
@pytest.mark.everyday(6, "slow")
def test_every_form_rejects_the_same_rows(
    kind: str, missing: str, every: bool, fitted: Fitted, tmp_path: Path
) -> None:
    model, X = table(kind, missing, fitted), rows()
    option = option_of(model, every)
    wanted = unsure(option.status(X))
    strange = np.array(STRANGE)
    lacking = np.isinf(strange).any(1)
    lacking |= np.isnan(strange[:, 1]) & (missing != "mean")
    lacking |= np.isnan(strange[:, 0]) & (missing == "refuse")
    assert wanted[-len(strange) :][lacking].all()
    assert not every or wanted.sum() == lacking.sum()
    np.testing.assert_array_equal(~option.accept(X), wanted)
    mask = np.ma.getmaskarray(option.predict(X[:ORDINARY])).reshape(ORDINARY, -1)
    np.testing.assert_array_equal(mask, np.broadcast_to(wanted[:ORDINARY, None], mask.shape))

    rds.export(model, tmp_path / "folded", reject=option)
    rds.export(model, tmp_path / "onnx", to="onnx", reject=option)
    found = {
        "folded": load(tmp_path / "folded").status(X),
        "onnx": session(tmp_path / "onnx").run(["status"], {"x": X})[0],
    }
    if missing != "mean":  # files have no answer for rows that predict takes there
        found["files"] = in_batches(model, option, X.astype(np.float64))
    for form, status in found.items():
        apart = unsure(status) != wanted
        assert not (apart & ~near(option, X)).any(), form


@needs_compiler
@pytest.mark.parametrize("every", [True, False], ids=["every", "share"])
@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize(("kind", "missing"), KINDS)
@pytest.mark.everyday(1, "compilers")
def test_c_rejects_the_same_rows(
    kind: str, missing: str, dtype: str, every: bool, fitted: Fitted, tmp_path: Path
) -> None:
    model, X = table(kind, missing, fitted), rows()
    option, folded = option_of(model, every), fold(model)
    folded = with_facts(folded, refusal=Refusal(np.array([option.threshold_]), option.spread_))
    network: Any = prepare(folded, dtype, X[:ORDINARY])
    source, wanted = Source(folded, network), unsure(option.status(X))
    built = library(write(source, tmp_path / "m"), COMPILERS[0], "-O1", *FAST)
    found = unsure(predict(built, source, X)[0])
    # int8 has other numbers than the estimator, of which its own C has the same.
    own = NetworkRunner(folded, network).run(X) if dtype == "int8" else folded.run(X)
    apart = (found != unsure(own.status)) & ~near(option, X)
    assert not apart.any()
    assert not every or (found == wanted).all()
    if dtype == "float32":
        many = library_of(tmp_path / "many", model, option).status(X)
        assert not ((unsure(many) != wanted) & ~near(option, X)).any()


def library_of(path: Path, model: Any, option: rds.RejectOption) -> Any:
    rds.export(model, path, reject=option)
    return load(path, compile=True)


@needs_compiler
@pytest.mark.parametrize("limit", [1e6, 0.5])
def test_c_that_learns_on_judges_by_what_it_learnt(
    limit: float, fitted: Fitted, tmp_path: Path
) -> None:
    model, X = table("number", "indicator", fitted), rows()
    plain = with_adaptation_folded(model.fitted_)
    refusal = Refusal(np.array([limit]), np.ones(1))
    folded = with_facts(fold_fitted(plain), refusal=refusal)
    network = prepare(folded, "float32", X[:ORDINARY])
    in_c = InC.built(
        Source(folded, network, live=fold_live(plain, network, 0.9, Rates())), tmp_path / "c"
    )
    never = unsure(rds.RejectOption(threshold=1e6).fit(model, *model.fitted_.kept_rows).status(X))
    for x, lacking in zip(X, never, strict=True):
        status, (_, std, *_), row = in_c.predict(x)
        assert unsure(status) == (lacking or rejected(std[0], np.float32(limit)))
        in_c.observe(row, 3.0)


@pytest.mark.compilers
def test_a_page_rejects_the_same_rows(fitted: Fitted, tmp_path: Path) -> None:
    node = shutil.which("node")
    try:
        wasm_compiler()
    except InputError as error:
        pytest.skip(str(error))
    if node is None:
        pytest.skip("node is not installed")
    for kind, missing in KINDS[:3]:
        model, X = table(kind, missing, fitted), rows()
        option = option_of(model, every=True)
        rds.export(model, tmp_path / kind, to="web", reject=option)
        # JSON has neither NaN nor infinity; the page makes them of null and of 1e39.
        X64 = X.astype(np.float64)
        given = np.where(np.isinf(X64), np.copysign(1e39, X64), X64)
        calls = [["predict", [None if np.isnan(v) else v for v in row]] for row in given]
        found = [one["status"] for one in call(node, tmp_path / kind, calls)]
        np.testing.assert_array_equal(unsure(found), unsure(option.status(X)))


@pytest.mark.parametrize("every", [True, False], ids=["every", "share"])
@pytest.mark.everyday(1, "slow")
def test_windows_are_rejected_alike(every: bool, fitted: Fitted, tmp_path: Path) -> None:
    spec = DeepSense((2, 1), interval=8, filters=3, hidden=6)
    X, y = motion(200, 0)
    model = fitted(rds.RDeepSenseClassifier(network=spec, **FIT), X, y)
    option = option_of(model, every)
    X = X[:30].astype(np.float32)
    X[0, 3, 1], X[1, 0, 0], X[2, 9, 2], X[3] = NAN, INF, -INF, NAN
    wanted = unsure(option.status(X))
    assert wanted[:4].all()
    assert not every or not wanted[4:].any()
    rds.export(model, tmp_path / "folded", reject=option)
    rds.export(model, tmp_path / "onnx", to="onnx", reject=option)
    found = {
        "folded": load(tmp_path / "folded").status(X),
        "onnx": session(tmp_path / "onnx").run(["status"], {"x": X})[0],
    }
    if COMPILERS:
        folded: Any = folded_form(model.fitted_)
        refusal = Refusal(np.array([option.threshold_]), option.spread_)
        folded = with_facts(folded, refusal=refusal)
        source = GraphSource(folded, as_stored(folded, "float32"))
        built = library(write(source, tmp_path / "m"), COMPILERS[0], "-O0")
        found["C"] = predict(built, source, X)[0]
        found["stream"] = [pushed(source, built, x) for x in X]
    for form, status in found.items():
        assert not ((unsure(status) != wanted) & ~near(option, X)).any(), form


def pushed(source: GraphSource, built: Any, x: Any) -> int:
    """The status of a window that comes interval by interval."""
    stream, status = source.stream, 0
    assert stream is not None
    state = np.zeros(stream.count * (stream.sizes[0] + 1) + 8, np.float32)
    scratch = np.zeros(source.scratch_bytes() // 4 + 1, np.float32)
    probs = np.zeros(source.model.outputs, np.float32)
    address = [ctypes.c_void_p(a.ctypes.data) for a in (state, probs, scratch)]
    built.model_begin_window(address[0])
    for part in np.split(x.reshape(-1), stream.count):
        part = np.ascontiguousarray(part)
        given = ctypes.c_void_p(part.ctypes.data)
        status = built.model_push_interval(address[0], given, *address[1:])
    return status


def constant(kind: str, value: float) -> Folded:
    """A model of two inputs that says the same of every row: all its weights are zero."""
    guard = Guard(np.full(2, -9.0), np.full(2, 9.0), np.zeros(2), np.zeros(2))
    if kind == "classes":
        layers = [DenseLayer(np.zeros((2, 2)), np.zeros(2))]
        return with_facts(hand_made("categorical", np.zeros(2), layers), guard=guard)
    bias = np.array([0.0, 0.0, value, 2 * value])
    layers = [DenseLayer(np.zeros((4, 2)), bias)]
    folded = with_facts(hand_made("gaussian", np.zeros(2), layers), guard=guard)
    link = LocationWidth(Column(0), Column(1))
    return replace(folded, output=Output(link, np.array([1.0, 8.0]), np.zeros(2)))


# The score that every form has to the bit, the numbers that it comes from, and the spread.
EXACT = [("classes", 0.5, 0.0, [1.0]), ("number", 3.0, 2.0, [1.0, 8.0])]
BELOW = {0.5: np.float32(0.49999997), 3.0: np.float32(2.9999998)}


@pytest.mark.parametrize(("kind", "score", "value", "spread"), EXACT)
@pytest.mark.parametrize("accepts", [True, False])
def test_a_score_equal_to_the_threshold_is_accepted(
    kind: str, score: float, value: float, spread: list[float], accepts: bool, tmp_path: Path
) -> None:
    threshold = score if accepts else float(BELOW[score])
    check_constant(constant(kind, value), threshold, spread, accepts, tmp_path)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # in the self-test's own numbers
def test_an_infinite_score_is_rejected(tmp_path: Path) -> None:
    """The product of width and spread is more than float32 holds."""
    check_constant(constant("number", 1e38), 1e37, [1.0, 8.0], False, tmp_path)


def check_constant(
    folded: Folded, threshold: float, spread: list[float], accepts: bool, folder: Path
) -> None:
    refusal = Refusal(np.array([threshold]), np.array(spread))
    folded, X = with_facts(folded, refusal=refusal), np.zeros((3, 2), np.float32)
    told: Any = folded.run(X)
    predicted = told.probs if folded.facts.is_classifier else told.std
    with np.errstate(over="ignore"):  # as of infinite scores
        torch_told = torch.from_numpy(predicted.astype(np.float32))
    none = torch.zeros(len(X), dtype=torch.int32)
    found = {"folded": told.status}
    found["torch"] = TorchRefusal(refusal, folded.facts.is_classifier)(none, torch_told).numpy()
    for dtype in ("float32", "int8"):
        network = prepare(folded, dtype, X + np.arange(3, dtype=np.float32)[:, None])
        proto = onnx_graph(folded, network)
        found[f"onnx {dtype}"] = (
            OnnxRunner.of(folded.facts, proto.SerializeToString()).run(X).status
        )
        if COMPILERS:
            source = Source(folded, network)
            built = library(write(source, folder / dtype), COMPILERS[0], "-O0")
            found[f"C {dtype}"] = np.array(predict(built, source, X)[0])
    for form, status in found.items():
        assert (np.asarray(status) == (0 if accepts else Status.UNSURE)).all(), form
