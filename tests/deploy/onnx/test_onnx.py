"""ONNX: the same predictions as torch, whatever the shape; nothing written that was not checked."""

from __future__ import annotations

import builtins
import dataclasses
import importlib
import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from deploy.folded_models import finished, forward, hand_made, with_facts
from deploy.random_models import Drawn, draw
from deploy.watched import without_novelty
from onnx.reference import ReferenceEvaluator
from torch import Tensor, nn

import rdeepsense as rds
from rdeepsense.datasets import simulate
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.folded.model import DenseLayer, Folded
from rdeepsense.deploy.onnx import export
from rdeepsense.deploy.onnx.export import OnnxRunner, check_agreement
from rdeepsense.deploy.onnx.nodes import model
from rdeepsense.deploy.quantise import prepare
from rdeepsense.errors import InputError, MissingExtraError
from rdeepsense.estimators import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.networks import DeepSense

LONG = bool(os.environ.get("RDEEPSENSE_LONG"))  # 200 models, up to 700 wide, 300 in- and outputs
MODELS = range(200) if LONG else range(20)
BOUND = 1e-5
to_onnx: Any = partial(rds.export, to="onnx")


def session_of(proto: Any) -> Any:
    onnx.checker.check_model(proto, full_check=True)
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(proto.SerializeToString(), providers=providers)


def outputs(session: Any, X: Any) -> Any:
    """The numbers; what the guard says is `told`."""
    names = [o.name for o in session.get_outputs() if o.type == "tensor(float)"]
    return session.run(names, {"x": np.asarray(X, dtype=np.float32)})


def told(session: Any, X: Any) -> Any:
    return session.run(["status", "flagged_input"], {"x": np.asarray(X, dtype=np.float32)})


def built(drawn: Drawn, dtype: str, **changes: Any) -> tuple[Folded, Any, Any]:
    folded = with_facts(fold(drawn.estimator), **changes)
    network = prepare(folded, dtype, drawn.X.astype(np.float32))
    return folded, network, model(folded, network)


@pytest.mark.parametrize("seed", MODELS)
def test_random_models_agree_with_torch(seed: int) -> None:
    drawn = draw(seed, *((700, 300) if LONG else (200, 16)))
    folded, _, proto = built(drawn, "float32")
    session = session_of(proto)
    X = drawn.X.astype(np.float32)
    assert [(i.name, i.shape, i.type) for i in session.get_inputs()] == [
        ("x", ["batch", folded.facts.inputs], "tensor(float)")
    ]
    for rows in (X, X[:1], X[:0]):
        found = outputs(session, rows)
        names = ["probs"] if folded.facts.is_classifier else ["mean", "std"]
        assert [o.name for o in session.get_outputs()] == [*names, "status", "flagged_input"]
        assert [array.shape for array in told(session, rows)] == [(len(rows),)] * 2
        for output, array in zip(session.get_outputs(), found, strict=False):
            assert output.shape == ["batch", folded.facts.outputs]
            assert array.shape == (len(rows), folded.facts.outputs)
            assert array.dtype == np.float32
        if not len(rows):
            continue
        if folded.facts.is_classifier:
            wanted = drawn.estimator.predict_proba(rows)
            assert np.abs(found[0] - wanted).max() < BOUND, drawn.name
            continue
        mean, std = drawn.estimator.predict(rows, return_std=True)
        mean, std = (part.reshape(len(rows), -1) for part in (mean, std))
        assert np.abs((found[0] - mean) / std).max() < BOUND, drawn.name
        assert np.abs(found[1] / std - 1).max() < BOUND, drawn.name


@pytest.mark.parametrize("seed", range(6))
def test_int8_computes_with_the_numbers_of_the_c(seed: int) -> None:
    """All but the inputs, which C rounds to 16 bits: a byte may fall on the other side of a half.

    Most bytes do not, so half of the predictions are the same but for float32. Without a guard,
    whose wider ranges would make the steps of the inputs, and with them that chance, larger.
    """
    drawn = draw(seed, widest=150, most=9)
    folded, network, proto = built(drawn, "int8", guard=None)
    found = outputs(session_of(proto), drawn.X)
    wanted = finished(folded, network.raw(drawn.X.astype(np.float32)))
    exact = forward(folded, drawn.X.astype(np.float32))
    if folded.facts.is_classifier:
        difference, rounding = np.abs(found[0] - wanted), np.abs(exact - wanted)
    else:
        difference = np.abs(np.stack(found) - wanted) / wanted[1]
        rounding = np.abs(exact - wanted) / wanted[1]
    assert difference.max() < 3e-3, drawn.name
    assert np.mean(difference) < 0.5 * np.mean(rounding) + 1e-6, drawn.name


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_onnx_s_own_evaluator_agrees(seed: int) -> None:
    drawn = draw(seed, widest=30, most=6)
    proto = built(drawn, "float32")[2]
    X = drawn.X.astype(np.float32)
    session, names = session_of(proto), [o.name for o in proto.graph.output]
    found = [*outputs(session, X), *told(session, X)]
    for one, wanted in zip(found, ReferenceEvaluator(proto).run(names, {"x": X}), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-5)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_int8_needs_no_fusion(seed: int) -> None:
    """A run-time that knows nothing of integer layers computes the same in floats."""
    drawn = draw(seed, widest=30, most=6)
    proto = built(drawn, "int8")[2]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    content, providers = proto.SerializeToString(), ["CPUExecutionProvider"]
    plain = onnxruntime.InferenceSession(content, options, providers=providers)
    for found, wanted in zip(
        outputs(session_of(proto), drawn.X), outputs(plain, drawn.X), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


def test_int8_layers_run_in_integers(tmp_path: Path) -> None:
    """ONNX Runtime recognises every layer but the first; the last one gives floats."""
    _, _, proto = built(draw(0, widest=40, most=4), "int8")
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    nodes = onnx.load(tmp_path / "optimised.onnx").graph.node
    layers = [n for n in proto.graph.node if n.op_type == "Gemm"]
    assert len(layers) == 5
    assert [n.op_type for n in nodes].count("QGemm") == len(layers) - 1
    assert [n.op_type for n in nodes].count("DequantizeLinear") == 0


def test_a_unit_without_weights_keeps_its_bias() -> None:
    layers = (
        DenseLayer(np.array([[1e-20, 0], [0, 0], [1, 1]]), np.array([3.0, 2.0, 0.0])),
        DenseLayer(np.array([[0, 0, 0], [0, 0, 1e-20], [1, 1, 1]]), np.array([0.0, 5.0, 0.0])),
        DenseLayer(np.ones((2, 3)), np.zeros(2)),
    )
    folded = hand_made("gaussian", np.zeros(2), layers)
    X = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
    found = outputs(session_of(model(folded, prepare(folded, "int8", X))), X)
    np.testing.assert_allclose(np.stack(found), forward(folded, X), atol=0.1)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_row_that_is_not_finite_gives_nan(seed: int, dtype: str) -> None:
    drawn = draw(seed, widest=30, most=6)
    X = drawn.X.astype(np.float32)[:5]
    X[0, 0], X[1, -1], X[2, 0] = np.nan, np.inf, -np.inf
    session = session_of(built(drawn, dtype)[2])
    for array in outputs(session, X):
        assert np.isnan(array[:3]).all()
        assert np.isfinite(array[3:]).all()
    assert told(session, X)[0].tolist() == [1, 2, 2, 0, 0]
    assert told(session, X)[1].tolist() == [0, X.shape[1] - 1, 0, -1, -1]


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_missing_inputs_count_as_their_mean(dtype: str) -> None:
    drawn = draw(0, widest=30, most=6)
    known = replace(fold(drawn.estimator).facts.guard, missing=np.ones(drawn.X.shape[1]))
    folded, _, proto = built(drawn, dtype, missing="mean", guard=known)
    rows = drawn.X[:4].astype(np.float32)
    odd = np.arange(4)[:, None] % 2 == 1
    mean = np.where(odd, folded.layers.centre.astype(np.float32), rows)
    session = session_of(proto)
    for found, wanted in zip(
        outputs(session, np.where(odd, np.nan, rows)), outputs(session, mean), strict=True
    ):
        assert np.array_equal(found, wanted)
    rows[0, 0] = np.inf
    assert np.isnan(outputs(session, rows)[0][0]).all()


def test_softplus_is_right_from_end_to_end() -> None:
    """One weight: raw widths from -300 to 300, where exp alone would overflow."""
    layer = DenseLayer(np.array([[0.0], [1.0]]), np.zeros(2))
    folded = hand_made("student", np.zeros(1), [layer], spread=2.0, shift=0.25)
    X = np.linspace(-300, 300, 1201, dtype=np.float32)[:, None]
    mean, std = outputs(session_of(model(folded, prepare(folded, "float32", X))), X)
    wanted = 2 * (np.logaddexp(0, X.astype(np.float64)) + 1e-4)
    np.testing.assert_allclose(std, wanted, rtol=1e-6)
    np.testing.assert_allclose(mean, 0.25 * wanted, rtol=1e-6)


@pytest.fixture(scope="module")
def regressor() -> RDeepSenseRegressor:
    task = simulate(3000, 0)
    arguments: dict[str, Any] = {"epochs": 15, "random_state": 0, "verbose": False}
    arguments |= {"hidden": (48, 48), "drop_prob": 0.02, "calibrate": "conformal"}
    return RDeepSenseRegressor(**arguments, effort="quick").fit(task.X, task.y)


def test_int8_keeps_nll_and_coverage(regressor: RDeepSenseRegressor, tmp_path: Path) -> None:
    test = simulate(5000, 1)
    rows = (test.X, test.y)
    made = to_onnx(regressor, tmp_path / "m.onnx", dtype="int8", rows=rows).quality
    assert made.rows == 2500
    assert made.rows_from == "rows given"
    assert abs(made.nll_change) < 0.02
    assert abs(made.after["coverage_90"] - made.before["coverage_90"]) < 0.01
    assert made.after["nll"] != made.before["nll"]
    with pytest.raises(InputError, match="int8 moves the NLL from .* nothing was written"):
        to_onnx(regressor, tmp_path / "other.onnx", dtype="int8", max_nll_change=-1.0)
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


def test_metadata(regressor: RDeepSenseRegressor, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    made = to_onnx(regressor, path)
    assert made.bytes == path.stat().st_size
    assert made.agreement.startswith("differs from the model by ")
    proto = onnx.load(path)
    assert [(o.domain, o.version) for o in proto.opset_import] == [("", 17)]
    assert proto.ir_version == 8
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    about = session.get_modelmeta().custom_metadata_map
    folded = fold(regressor)
    facts = folded.facts
    assert facts.intervals is not None
    assert facts.intervals.conformal is not None
    assert (about["head"], about["dtype"], about["missing"]) == (facts.head, "float32", "refuse")
    assert about["model_sha256"] == facts.source
    assert about["calibration"] == (facts.calibration or "none")
    assert json.loads(about["input_mean"]) == folded.layers.centre.tolist()
    assert json.loads(about["quality"])["rows"] == len(regressor.fitted_.kept_rows[1])
    assert "features" not in about
    factors = json.loads(about["intervals"])
    assert list(factors) == ["0.5", "0.8", "0.9", "0.95", "0.99"]
    assert factors["0.9"] == {
        "low": facts.intervals.low[2].tolist(),
        "high": facts.intervals.high[2].tolist(),
        "conformal": facts.intervals.conformal[2].tolist(),
    }
    X = simulate(10, 2).X
    mean, std = outputs(session, X)
    low, high = regressor.predict_interval(X, 0.9, method="predicted")
    for end, factor in ((low, "low"), (high, "high")):
        found = (mean + np.array(factors["0.9"][factor]) * std)[:, 0]
        assert np.abs((found - end) / std[:, 0]).max() < BOUND
    content = path.read_bytes()
    to_onnx(regressor, path)
    assert path.read_bytes() == content


def test_classes(tmp_path: Path) -> None:
    task = simulate(1000, 0)
    labels = np.array(["low", "mid", 'h"igh\n'])[np.digitize(task.y, [40.0, 60.0])]
    arguments: dict[str, Any] = {"hidden": (16, 16), "epochs": 5, "random_state": 0}
    estimator = RDeepSenseClassifier(**arguments, verbose=False, effort="quick").fit(task.X, labels)
    estimator = without_novelty(estimator)
    for dtype, bound in (("float32", BOUND), ("int8", 0.05)):
        quality = to_onnx(estimator, tmp_path / dtype, dtype=dtype).quality
        assert set(quality.after) == {"nll", "accuracy", "ece"}
        session = onnxruntime.InferenceSession(tmp_path / dtype, providers=["CPUExecutionProvider"])
        about = session.get_modelmeta().custom_metadata_map
        assert json.loads(about["classes"]) == ['h"igh\n', "low", "mid"]
        assert "intervals" not in about
        probabilities = outputs(session, task.X)[0]
        assert np.abs(probabilities - estimator.predict_proba(task.X)).max() < bound


def test_without_rows_drawn_ones_are_compared(tmp_path: Path) -> None:
    task = simulate(300, 0)
    arguments: dict[str, Any] = {"hidden": (8,), "epochs": 1, "verbose": False}
    estimator = RDeepSenseRegressor(keep_rows=0, **arguments, effort="quick").fit(task.X, task.y)
    made = to_onnx(estimator, tmp_path / "m.onnx")
    assert made.quality is None
    assert made.agreement.endswith("(256 rows)")
    with pytest.raises(InputError, match="int8 needs rows to calibrate"):
        to_onnx(estimator, tmp_path / "int8.onnx", dtype="int8")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_wrong_number_is_seen(seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn = draw(seed, widest=20, most=4)
    folded, _, proto = built(drawn, "float32")
    X = drawn.X.astype(np.float32)
    check_agreement(folded.run(X), OnnxRunner.of(folded.facts, proto.SerializeToString()), X)
    name = f"weight_{len(folded.layers.dense) - 1}"
    tensor = next(t for t in proto.graph.initializer if t.name == name)
    weight = onnx.numpy_helper.to_array(tensor).copy()
    weight[:, 0] *= 1.001
    tensor.CopyFrom(onnx.numpy_helper.from_array(weight, name))
    monkeypatch.setattr(export, "model", lambda *_: proto)
    with pytest.raises(InputError, match="float32 does not explain; nothing was written"):
        to_onnx(drawn.estimator, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_mean_far_above_its_std_is_not_refused(tmp_path: Path) -> None:
    """Air pressure in pascal, nearly without noise: float32 holds it to 0.004 and no better."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    y = 101_325 + 100 * X[:, 0]
    arguments: dict[str, Any] = {"hidden": (16,), "drop_prob": 0.0, "random_state": 0}
    estimator = RDeepSenseRegressor(epochs=40, verbose=False, **arguments, effort="quick").fit(X, y)
    made = to_onnx(estimator, tmp_path / "m.onnx")
    assert float(made.agreement.split()[5]) > BOUND
    assert abs(made.quality.nll_change) < 1e-3


@pytest.mark.parametrize("library", ["onnx", "onnxruntime"])
def test_what_is_missing_is_named(
    library: str, regressor: RDeepSenseRegressor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def absent(name: str, package: str | None = None) -> Any:
        if name == library:
            raise ImportError(name)
        return builtins.__import__(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(MissingExtraError, match=rf"{library} is not.*rdeepsense\[export\]"):
        to_onnx(regressor, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


class Turning(nn.Module):
    """Convolutions, a stacked GRU in both directions and an LSTM."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.look, self.norm = nn.Conv1d(3, 6, 3, padding=1), nn.BatchNorm1d(6)
        self.turn = nn.GRU(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.keep = nn.LSTM(10, 4)
        self.last = nn.Linear(4, outputs)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.norm(self.look(x.transpose(1, 2)))).transpose(1, 2)
        return self.last(self.keep(self.turn(h)[0].transpose(0, 1))[0][-1])


def windows(rows: int, seed: int) -> tuple[Any, Any]:
    X = np.random.default_rng(seed).normal(size=(rows, 24, 3)) * [1.0, 50.0, 1e-3] + [9.8, 0, 1e-3]
    return X.astype(np.float32), X[:, :, 1].std(1) * 40 + 900


@pytest.mark.everyday(3, "slow")
@pytest.mark.parametrize("likelihood", ["gaussian", "student", "categorical"])
@pytest.mark.parametrize("own", [False, True])
def test_convolutions_and_recurrent_layers(own: bool, likelihood: str, tmp_path: Path) -> None:
    X, y = windows(120, 0)
    arguments: dict[str, Any] = {"epochs": 3, "random_state": 0, "verbose": False, "device": "cpu"}
    spec = DeepSense((2, 1), interval=8, filters=6, hidden=8)
    estimator: Any
    if likelihood == "categorical":
        y = np.digitize(y, np.quantile(y, [0.3, 0.6]))
        estimator = RDeepSenseClassifier(
            network=Turning(3) if own else spec, **arguments, effort="quick"
        )
    else:
        arguments |= {"likelihood": likelihood, "calibrate": "isotonic" if own else True}
        estimator = RDeepSenseRegressor(
            network=Turning(1) if own else spec, **arguments, effort="quick"
        )
    estimator = without_novelty(estimator.fit(X, y))
    path = tmp_path / "m.onnx"
    made = to_onnx(estimator, path)
    assert made.agreement.startswith("differs from the model by ")
    assert abs(made.quality.nll_change) < 1e-4
    onnx.checker.check_model(onnx.load(path), full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].shape == ["batch", 24, 3]
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["input_shape"]) == [24, 3]
    assert json.loads(about["input_mean"]) == estimator.fitted_.inputs.scaler.shift.tolist()
    assert (about["head"], about["dtype"]) == (likelihood, "float32")
    assert ("intervals" in about) == (likelihood != "categorical")
    for rows in (windows(50, 1)[0], X[:1]):
        found = outputs(session, rows)
        if likelihood == "categorical":
            assert np.abs(found[0] - estimator.predict_proba(rows)).max() < BOUND
            continue
        mean, std = estimator.predict(rows, return_std=True)
        # The mean of 900 is held by float32 to 6e-5.
        assert np.abs(found[0][:, 0] - mean).max() < BOUND * std.min() + 3e-4
        assert np.abs(found[1][:, 0] / std - 1).max() < BOUND
    broken = X[:4].copy()
    broken[0, 3, 1], broken[1, -1, 2] = np.nan, np.inf
    for array in outputs(session, broken):
        assert np.isnan(array[:2]).all()
        assert np.isfinite(array[2:]).all()
    assert [part.tolist() for part in told(session, broken)] == [[1, 2, 0, 0], [1, 2, -1, -1]]
    assert estimator.status(broken).tolist() == [1, 2, 0, 0]
    content = path.read_bytes()
    to_onnx(estimator, path)
    assert path.read_bytes() == content


def test_windows_with_missing_values_and_without_kept_rows(tmp_path: Path) -> None:
    X, y = windows(60, 0)
    X[0, 0, 0] = np.nan
    arguments: dict[str, Any] = {"epochs": 1, "random_state": 0, "verbose": False, "keep_rows": 0}
    spec = DeepSense((3,), interval=8, filters=4, hidden=4)
    estimator = RDeepSenseRegressor(network=spec, missing="mean", **arguments, effort="quick").fit(
        X, y
    )
    made = to_onnx(estimator, tmp_path / "m.onnx")
    assert made.agreement.endswith("(256 rows)")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    mean = outputs(session, X[:1])[0]
    np.testing.assert_allclose(mean[:, 0], estimator.predict(X[:1]), rtol=1e-6)
    with pytest.raises(InputError, match="dtype='int8' is for fully-connected.*float32"):
        to_onnx(estimator, tmp_path / "other.onnx", dtype="int8")
    with pytest.raises(InputError, match="DeepSenseNetwork cannot be folded; accepted:.*Linea"):
        fold(estimator)
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_a_wrong_graph_of_windows_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    X, y = windows(60, 0)
    spec = DeepSense((3,), interval=8, filters=4, hidden=4)
    estimator = RDeepSenseRegressor(network=spec, epochs=1, verbose=False, effort="quick").fit(X, y)
    right = export.module_graph

    def wrong(fitted: Any, last: DenseLayer, output: Any, refusal: Any) -> Any:
        spread = output.spread * 1.001
        return right(fitted, last, dataclasses.replace(output, spread=spread), refusal)

    monkeypatch.setattr(export, "module_graph", wrong)
    with pytest.raises(InputError, match="float32 does not explain; nothing was written"):
        to_onnx(estimator, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_network_that_torch_cannot_write_is_refused(tmp_path: Path) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(13, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(torch.fft.rfft(x[:, :, 1]).abs())

    X, y = windows(60, 0)
    estimator = RDeepSenseRegressor(network=Odd(), epochs=1, verbose=False, effort="quick").fit(
        X, y
    )
    with pytest.raises(InputError, match="torch cannot write Odd as ONNX: .*fft"):
        to_onnx(estimator, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_refusals(regressor: RDeepSenseRegressor, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="dtype='float16' is not for to='onnx'; accepted: 'flo"):
        to_onnx(regressor, tmp_path / "m.onnx", dtype="float16")
    with pytest.raises(InputError, match="model is a str; accepted: an estimator"):
        to_onnx("a model", tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []
