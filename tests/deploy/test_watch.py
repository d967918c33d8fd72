"""Reject option and compact novelty in folded files and ONNX, their report, and what is refused."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from deploy.c.graph.test_export import motion
from deploy.random_models import draw

import rdeepsense as rds
from rdeepsense.deploy import load
from rdeepsense.deploy.c.build import compiler
from rdeepsense.errors import InputError
from rdeepsense.networks import DeepSense
from rdeepsense.status import Status

FIT: dict[str, Any] = {
    "random_state": 0,
    "verbose": False,
    "effort": "quick",
    "device": "cpu",
    "epochs": 2,
}


def ring(rows: int, seed: int) -> tuple[Any, Any]:
    """Rows on a circle, whose columns tell nothing one by one; one level more beside."""
    rng = np.random.default_rng(seed)
    at = rng.uniform(0, 2 * np.pi, rows)
    X = np.column_stack([np.cos(at), np.sin(at)]) + 0.05 * rng.normal(size=(rows, 2))
    return X * [10.0, 0.1] + [500.0, 0.0], np.cos(3 * at) + 0.1 * rng.normal(size=rows)


@pytest.fixture(scope="module")
def tabular() -> Any:
    X, y = ring(2_000, 0)
    return rds.RDeepSenseRegressor(hidden=(16,), likelihood="gaussian", **FIT).fit(X, y)


@pytest.fixture(scope="module")
def windowed() -> Any:
    spec = DeepSense((2, 1), interval=8, filters=3, hidden=6)
    return rds.RDeepSenseClassifier(network=spec, **FIT).fit(*motion(400, 0))


def near(option: rds.RejectOption, X: Any) -> Any:
    """Rows whose score float32 cannot tell from the threshold."""
    return np.abs(option.uncertainty(X) / option.threshold_ - 1) < 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_a_reject_option_is_the_same_in_every_form(seed: int, tmp_path: Path) -> None:
    model = draw(seed, widest=20, most=6)
    estimator, X = model.estimator, model.X.astype(np.float32)
    y = estimator.predict(X)
    option = rds.RejectOption(target_coverage=0.7).fit(estimator, X, y)
    wanted = option.status(X)
    assert 0 < (wanted == Status.UNSURE).mean() < 0.5
    rds.export(estimator, tmp_path / "folded", reject=option)
    assert ((load(tmp_path / "folded").status(X) == wanted) | near(option, X)).all()
    rds.export(estimator, tmp_path / "onnx", to="onnx", reject=option)
    session = onnxruntime.InferenceSession(tmp_path / "onnx", providers=["CPUExecutionProvider"])
    told = session.run(["status"], {"x": X})[0]
    assert ((told == wanted) | near(option, X)).all()
    assert json.loads(session.get_modelmeta().custom_metadata_map["status"])["UNSURE"] == 8


def test_onnx_of_windows_is_unsure_too(windowed: Any, tmp_path: Path) -> None:
    X, y = motion(60, 3)
    X = X.astype(np.float32)
    option = rds.RejectOption(target_coverage=0.5).fit(windowed, X, y)
    rds.export(windowed, tmp_path / "onnx", to="onnx", reject=option)
    session = onnxruntime.InferenceSession(tmp_path / "onnx", providers=["CPUExecutionProvider"])
    told = session.run(["status"], {"x": X})[0]
    assert ((told == option.status(X)) | near(option, X)).all()
    assert 20 < (told == Status.UNSURE).sum() < 40


def test_a_share_is_that_of_the_rows(tabular: Any, tmp_path: Path) -> None:
    rds.export(tabular, tmp_path / "m", reject=0.8)
    X, _ = tabular.fitted_.kept_rows
    unsure = load(tmp_path / "m").status(X) & Status.UNSURE > 0
    assert abs(unsure.mean() - 0.2) < 0.01


def test_only_what_was_learnt_travels_unasked(tabular: Any, tmp_path: Path) -> None:
    rds.export(tabular, tmp_path / "plain")
    assert load(tmp_path / "plain").facts.novelty is None
    known = rds.load(_saved(tabular, tmp_path)).fit_novelty(ring(2_000, 0)[0])
    rds.export(known, tmp_path / "known")
    assert load(tmp_path / "known").facts.novelty is not None
    rds.export(known, tmp_path / "off", novelty=False)
    assert load(tmp_path / "off").facts.novelty is None


def _saved(model: Any, folder: Path) -> Path:
    model.save(folder / "model")
    return folder / "model"


@pytest.mark.parametrize("fitted", [False, True])
def test_what_no_column_tells_is_unlike(tabular: Any, fitted: bool, tmp_path: Path) -> None:
    model = rds.load(_saved(tabular, tmp_path))
    if fitted:
        model.fit_novelty(ring(2_000, 0)[0])
    report: Any = rds.export(model, tmp_path / "c", to="c99", novelty=True)
    found = report.to_json()["novelty"]
    assert found["bytes_in_flash"] <= 8_192
    assert found["false_alarms"] <= 0.03
    assert found["auroc"]["shuffled"] > 0.75
    assert found["auroc"]["shuffled"] > found["full_auroc"]["shuffled"] - 0.05
    rds.export(model, tmp_path / "m", novelty=True)
    deployed, rng = load(tmp_path / "m"), np.random.default_rng(0)
    healthy = deployed.status(ring(2_000, 9)[0]) & Status.UNLIKE > 0
    assert (deployed.surprise(ring(50, 9)[0]) < deployed.facts.novelty.threshold[0]).mean() > 0.9
    inside = np.column_stack([500 + rng.uniform(-3, 3, 200), rng.uniform(-0.03, 0.03, 200)])
    assert healthy.mean() < 0.04
    assert (deployed.status(inside) == Status.UNLIKE).mean() > 0.9


@pytest.mark.parametrize("kind", ["table", "windows"])
def test_python_flags_the_rows_that_exports_flag(
    kind: str, tabular: Any, windowed: Any, tmp_path: Path
) -> None:
    if kind == "table":
        model = rds.load(_saved(tabular, tmp_path)).fit_novelty(ring(2_000, 0)[0])
        X = np.vstack([ring(500, 9)[0], ring(50, 9)[0] * [1, 0.3], ring(3, 9)[0] * [1, 1e6]])
        X[:2, 0] = np.nan, np.inf
    else:
        model = rds.load(_saved(windowed, tmp_path)).fit_novelty(motion(400, 0)[0])
        X, _ = motion(100, 5)
        X[:20, :, 1] = X[:20, :1, 1]
    X = X.astype(np.float32)
    wanted = model.status(X)
    unlike = (wanted & Status.UNLIKE) > 0
    assert 0.02 < unlike.mean() < 0.5
    assert (unlike & (wanted == Status.UNLIKE)).any()
    rds.export(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").status(X), wanted)
    if compiler() is not None:
        told = load(tmp_path / "m", compile=True)
        surprise = told.facts.novelty.surprise(X)
        near = np.abs(surprise / told.facts.novelty.threshold[0] - 1) < 1e-4
        assert ((told.status(X) == wanted) | near).all()
    model.save(tmp_path / "again")
    np.testing.assert_array_equal(rds.load(tmp_path / "again").status(X), wanted)
    answered = X[2:]
    dist, found = model.predict_dist(answered), load(tmp_path / "m").runner.run(answered)
    told, own = (found.probs, dist.mean) if dist.is_categorical else (found.std, dist.std)
    np.testing.assert_allclose(told, own.reshape(told.shape), rtol=1e-9)


def test_a_file_of_before_fits_learnt_it_has_that_of_fit_novelty(tabular: Any) -> None:
    """It is drawn from the full density, and its threshold needs rows that the model kept."""
    model = copy.copy(tabular).fit_novelty(ring(2_000, 0)[0])
    before = replace(model.fitted_, unlike=None)
    X = np.vstack([ring(500, 9)[0], np.tile([500.0, 0.0], (200, 1))])
    unlike = before.flags(X) & Status.UNLIKE > 0
    assert unlike[:500].mean() < 0.04
    assert unlike[500:].all()
    few = replace(before, kept_rows=tuple(part[:9] for part in before.kept_rows))
    np.testing.assert_array_equal(few.flags(X), before.status(X))


def test_a_stuck_channel_is_unlike(windowed: Any, tmp_path: Path) -> None:
    rds.export(windowed, tmp_path / "m", novelty=True)
    X, _ = motion(100, 5)
    stuck = X.copy()
    stuck[:, :, 1] = stuck[:, :1, 1]
    deployed = load(tmp_path / "m")
    assert (deployed.status(stuck) & Status.UNLIKE > 0).all()
    assert (deployed.status(X) & Status.UNLIKE > 0).mean() < 0.06


def test_categories_are_left_to_their_own_status(tmp_path: Path) -> None:
    X, y = ring(300, 1)
    table = np.column_stack([X.astype(object), np.where(y > 0, "up", "down")])
    table[::9, 0] = None
    model = rds.RDeepSenseRegressor(hidden=(6,), missing="indicator", **FIT).fit(table, y)
    model.fit_novelty(table)
    rds.export(model, tmp_path / "m")
    deployed = load(tmp_path / "m")
    assert len(deployed.facts.novelty.centre) == 2
    gone = [[None, None, "up"], [503.0, 0.0, "sideways"], [510.0, 0.0, "up"]]
    assert deployed.status(np.array(gone, object)).tolist()[1:] == [4, 0]
    both = load(tmp_path / "m", compile=True)
    assert np.array_equal(deployed.status(table), both.status(table))


def test_what_cannot_be_exported_is_named(tabular: Any, windowed: Any, tmp_path: Path) -> None:
    X, y = tabular.fitted_.kept_rows
    option = rds.RejectOption(target_coverage=0.9, score="epistemic").fit(tabular, X, y)
    fitted = rds.RejectOption(target_coverage=0.9).fit(tabular, X, y)
    wide = rds.RDeepSenseRegressor(hidden=(4,), **FIT)
    wide.fit(np.random.default_rng(0).normal(size=(200, 200)), np.arange(200.0))
    few = (X[:20], y[:20])
    for model, options, said in [
        (tabular, {"reject": option}, "score 'epistemic'"),
        (tabular, {"reject": rds.RejectOption(threshold=1.0)}, "not fitted"),
        (windowed, {"reject": fitted}, "another model"),
        (tabular, {"reject": 1.5}, "reject=1.5; accepted"),
        (tabular, {"reject": 0.9, "epistemic": "laplace"}, "epistemic part"),
        (tabular, {"novelty": True, "to": "onnx"}, "novelty=True is not for to='onnx'"),
        (tabular, {"novelty": True, "to": "c99", "rows": few}, "needs 40 rows"),
        (wide, {"novelty": True}, "200 columns"),
    ]:
        with pytest.raises(InputError, match=said):
            rds.export(model, tmp_path / "m", **options)
    assert not (tmp_path / "m").exists()
    wide.fit_novelty(np.random.default_rng(0).normal(size=(200, 200)))
    rds.export(wide, tmp_path / "m")
    assert load(tmp_path / "m").facts.novelty is None
    with pytest.raises(InputError, match="without a novelty"):
        load(tmp_path / "m").surprise(np.zeros((1, 200)))
    said: Any = rds.export(wide, tmp_path / "c", to="c99", max_nll_change=1)
    assert "200 columns" in said.to_json()["novelty_left_out"]
