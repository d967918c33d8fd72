"""The same status, mean and std of strange rows in every form of a model."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from deploy.c_models import COMPILERS, library, predict, write
from deploy.random_models import Drawn, draw
from deploy.random_windows import draw_own

import rdeepsense as rds
from rdeepsense.deploy import load
from rdeepsense.deploy.c.emit import Source
from rdeepsense.deploy.c.graph import GraphSource
from rdeepsense.deploy.c.inputs import as_stored
from rdeepsense.deploy.fold import fold, fold_graph
from rdeepsense.deploy.quantise import DTYPES, prepare
from rdeepsense.guard import Guard
from rdeepsense.status import Status

needs_cc = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
STEPS = (0.0, 7.0, -35.0, 1e3, -1e5, 1e7, 1e12)  # standard deviations


def strange_rows(drawn: Drawn) -> tuple[Any, Any]:
    """Training rows with one input further and further out, as float32 holds them."""
    rng = np.random.default_rng(0)
    rows = np.repeat(drawn.X[:4], len(STEPS), axis=0)
    moved = rng.integers(rows.shape[1], size=len(rows))
    each = np.arange(len(rows))
    with np.errstate(over="ignore"):
        rows[each, moved] += np.tile(STEPS, 4) * drawn.X.std(0)[moved]
        rows = rows.astype(np.float32)
    return rows, drawn.estimator.status(rows)


def predicted(drawn: Drawn, rows: Any) -> Any:
    """(2, rows, outputs) with mean and std, or (1, rows, classes)."""
    dist = drawn.estimator.predict_dist(rows)
    parts = [dist.mean] if dist.is_categorical else [dist.mean, dist.std]
    return np.stack([part.reshape(len(rows), -1) for part in parts])


def agree(found: Any, wanted: Any, bound: float) -> None:
    found = np.asarray(found).reshape(wanted.shape)
    if len(wanted) == 2:  # a mean of a row far out has the rounding of its own size
        size = wanted[1] + np.abs(wanted[0])
        assert (np.abs(found[0] - wanted[0]) / size).max() < bound
        assert np.abs(found[1] / wanted[1] - 1).max() < 10 * bound
    else:
        assert np.abs(found - wanted).max() < 10 * bound


@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize("seed", range(6))
def test_every_form_says_the_same(seed: int, tmp_path: Path) -> None:
    drawn = draw(seed, widest=40, most=8)
    rows, status = strange_rows(drawn)
    assert status.reshape(4, -1)[:, 0].tolist() == [0] * 4
    assert (status.reshape(4, -1)[:, 2:] == 2).all()
    wanted = predicted(drawn, rows)
    save = tmp_path / "folded"
    rds.export(drawn.estimator, save)
    folded = load(save)
    assert np.array_equal(folded.status(rows), status)
    assert np.array_equal(folded.flagged_inputs(rows), drawn.estimator.flagged_inputs(rows))
    agree([p for p in folded.runner.run(rows)[:2] if p is not None], wanted, 1e-9)
    rds.export(drawn.estimator, tmp_path / "onnx", to="onnx")
    session = onnxruntime.InferenceSession(tmp_path / "onnx", providers=["CPUExecutionProvider"])
    *numbers, told, first = session.run(None, {"x": rows})
    assert np.array_equal(told, status)
    beyond = drawn.estimator.flagged_inputs(rows)
    assert np.array_equal(first, np.where(beyond.any(1), beyond.argmax(1), -1))
    agree(numbers, wanted, 1e-4)
    if COMPILERS:
        compiled = load(save, compile=True)
        assert np.array_equal(compiled.status(rows), status)
        agree([p for p in compiled.runner.run(rows)[:2] if p is not None], wanted, 1e-4)


@pytest.mark.everyday(3, "compilers")
@needs_cc
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(4))
def test_every_type_of_c_says_the_same(seed: int, dtype: str, tmp_path: Path) -> None:
    drawn = draw(seed, widest=40, most=8)
    rows, status = strange_rows(drawn)
    folded = fold(drawn.estimator)
    network = prepare(folded, dtype, drawn.X.astype(np.float32))
    source = Source(folded, network)
    built = library(write(source, tmp_path / "m", drawn.X), COMPILERS[0], "-O2")
    found, numbers = predict(built, source, rows)
    assert found == status.tolist()
    wanted = folded.finish(network.raw(folded.facts.inside(rows)), rows)
    agree(numbers, np.stack([p for p in wanted[:2] if p is not None]), 1e-4)
    first = [built.model_flagged_input(ctypes.c_void_p(row.ctypes.data)) for row in rows]
    beyond = drawn.estimator.flagged_inputs(rows)
    assert first == np.where(beyond.any(1), beyond.argmax(1), rows.shape[1]).tolist()


@needs_cc
@pytest.mark.parametrize("dtype", ["float32", "int8", "windows"])
def test_without_ranges_c_flags_the_inputs_that_it_moves(dtype: str, tmp_path: Path) -> None:
    """Files of models from before there were ranges have none."""
    drawn = draw_own(0) if dtype == "windows" else draw(3, widest=20, most=8)
    rows = drawn.X[:3].astype(np.float32)
    rows[1].flat[0], rows[2].flat[-1] = 3e38, -3e38  # of seven inputs four are read at once
    source: Source
    if dtype == "windows":
        graph = fold_graph(drawn.estimator.fitted_)
        graph = replace(graph, facts=replace(graph.facts, guard=None))
        source = GraphSource(graph, as_stored(graph, "float32"))
    else:
        folded = fold(drawn.estimator)
        facts = replace(folded.facts, guard=None, missing="refuse")
        folded = replace(folded, facts=facts)
        source = Source(folded, prepare(folded, dtype, drawn.X.astype(np.float32)))
    built = library(write(source, tmp_path / "m", drawn.X), COMPILERS[0], "-O0")
    assert predict(built, source, rows)[0] == [Status.OK, Status.OUT_OF_RANGE, Status.OUT_OF_RANGE]


def test_absurd_inputs_are_moved_alike(tmp_path: Path) -> None:
    """At 1e30 standard deviations numpy said 3e28 where C said 31,777."""
    drawn = draw(0, widest=20, most=4)
    rows = drawn.X[:2].copy()
    rows[0, 0], rows[1, 0] = 1e30, 1e38
    rds.export(drawn.estimator, tmp_path / "f")
    means = [np.ravel(drawn.estimator.predict(rows)), np.ravel(load(tmp_path / "f").predict(rows))]
    if COMPILERS:
        means.append(np.ravel(load(tmp_path / "f", compile=True).predict(rows)))
    for found in means[1:]:
        np.testing.assert_allclose(found, means[0], rtol=1e-4)


@pytest.mark.parametrize("missing", ["refuse", "mean"])
def test_a_number_out_of_range_is_read_as_the_end_of_its_range(
    missing: str, tmp_path: Path
) -> None:
    """The mean ran away: 2,694,874 +- 6.8 at a million standard deviations."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = 3 * X[:, 0] + X[:, 1]
    how: dict[str, Any] = {"missing": missing, "effort": "quick", "random_state": 0}
    model = rds.RDeepSenseRegressor(hidden=(8,), **how).fit(X, y)
    guard = model.fitted_.guard
    far = np.array([[1e3, 0.0], [-1e300, 0.0], [0.5, -1e6], [1e9, 1e9]])
    ends = np.clip(far, guard.low, guard.high)
    assert (model.status(far) == Status.OUT_OF_RANGE).all()
    assert (model.status(ends) & Status.OUT_OF_RANGE == 0).all()
    for given in ({}, {"epistemic": "laplace"}, {"samples": 5}):
        found, wanted = (model.predict_dist(rows, **given) for rows in (far, ends))
        # The mean keeps its place as the std is widened, but for the last bit.
        np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-12)
        assert (found.std >= y.std() * 0.999).all()
    path = tmp_path / "f"
    rds.export(model, path)
    assert np.array_equal(load(path).predict(far), load(path).predict(ends))
    said = model.live().predict(far[0]).distribution
    assert said.mean == pytest.approx(model.predict(ends[:1]).item(), rel=1e-9)


def test_a_code_stays_and_numbers_move_in_their_type() -> None:
    guard = Guard(
        np.array([-1.0, 0.0]), np.array([1.0, 2.0]), np.zeros(2), np.ones(1), np.array([0.0, 3.0])
    )
    rows = np.array([[5.0, -1.0], [np.nan, 7.0], [0.5, 2.0]], np.float32)
    inside = guard.inside(rows)
    assert inside.dtype == np.float32
    np.testing.assert_array_equal(inside, np.float32([[1, -1], [np.nan, 7], [0.5, 2]]))


def test_without_a_guard_inputs_stop_at_a_million_standard_deviations() -> None:
    """As for files of models from before there were ranges."""
    drawn = draw(1, widest=8, most=3)
    fitted = replace(drawn.estimator.fitted_, guard=None)
    scaler = fitted.inputs.scaler
    rows = scaler.rows_at(np.outer([2e6, 1e6], np.ones(len(scaler.scale))))
    wanted = fitted.distribution(rows[1:])
    np.testing.assert_allclose(fitted.distribution(rows[:1]).mean, wanted.mean, rtol=1e-9)
