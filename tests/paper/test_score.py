"""Figures and curves of hand-made predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rdeepsense import Categorical, Gaussian, metrics
from rdeepsense.paper.scores import KEPT, examples, rounded, score, standard_error
from rdeepsense.paper.study import Parts
from rdeepsense.paper.tasks.task import Split, Task


def parts_of(y: np.ndarray, groups: np.ndarray | None = None, **more: Any) -> Parts:
    """A task whose test rows are y."""
    rows = np.arange(len(y))
    task = Task(
        name="GasSen", X=np.zeros((len(y), 1), np.float32), y=y, features=("x",),
        targets=tuple(f"t{i}" for i in range(y[0].size)), unit="ppm", source="made up",
        simulated=True, groups=groups, grouped_by="day" if groups is not None else "", **more,
    )  # fmt: skip
    by = "rows" if groups is None else "groups"
    return Parts(task, Split(rows[:1], rows[:1], rows, "all"), by)


def test_regression_figures_and_errors() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=(600, 2))
    dist = Gaussian(np.zeros((600, 2)), np.full((600, 2), 1.5))
    scored = score(dist, parts_of(y))
    figures = scored.figures
    assert figures["nll"] == pytest.approx(metrics.nll(dist, y))
    assert figures["deviation_area_signed"] > 0.1
    mae = np.abs(y).mean(axis=1)
    # 50 blocks of 12 rows estimate about the same as the rows themselves.
    assert figures["mae_se"] == pytest.approx(mae.std(ddof=1) / np.sqrt(600), rel=0.3)
    assert standard_error(scored.jackknife["mae"]) == pytest.approx(figures["mae_se"], rel=1e-3)
    area = np.array(scored.jackknife["deviation_area"])
    assert area.mean() == pytest.approx(figures["deviation_area"], abs=1e-3)
    assert 0.002 < figures["deviation_area_se"] < 0.02
    assert scored.calibration is not None
    assert scored.calibration.levels == list(metrics.LEVELS)
    assert scored.group_coverage is None


def test_groups_cluster_the_errors_and_have_a_coverage_each() -> None:
    groups = np.repeat([3, 9, 11], 10)
    y = np.repeat([0.0, 1.0, 50.0], 10)
    scored = score(Gaussian(np.zeros(30), np.ones(30)), parts_of(y, groups))
    assert scored.group_coverage == [1.0, 1.0, 0.0]
    assert len(scored.jackknife["mae"]) == 3
    error = [-17.0, -16.0, 33.0]  # of the groups, about the mean 17
    assert scored.figures["mae_se"] == pytest.approx(np.sqrt(1.5 * np.sum(np.square(error))) / 3)


def test_refusing_the_uncertain_lowers_the_risk() -> None:
    y = np.concatenate([np.zeros(50), np.full(50, 4.0)])
    dist = Gaussian(np.zeros(100), np.repeat([1.0, 4.0], 50))
    curve = score(dist, parts_of(y)).risk_coverage
    assert (curve.kept, curve.risk_name) == (list(KEPT), "MAE (ppm)")
    assert curve.risk[0] == 2.0
    assert curve.risk[KEPT.index(0.5)] == 0.0
    assert curve.risk == sorted(curve.risk, reverse=True)


def test_classes() -> None:
    probs = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.4, 0.3, 0.3], [0.2, 0.2, 0.6]] * 5)
    y = np.array([0, 1, 1, 2] * 5)
    dist = Categorical(probs)
    scored = score(dist, parts_of(y, classes=("a", "b", "c")))
    figures = scored.figures
    assert figures["accuracy"] == 0.75
    assert figures["f1"] == pytest.approx(metrics.f1(dist, y))
    assert figures["mefp"] == pytest.approx(metrics.mefp(dist, y))
    assert figures["mefp_se"] == pytest.approx(0.0, abs=1e-5)
    left = np.delete(np.arange(20), 2)  # without a false prediction
    assert scored.jackknife["f1"][2] == pytest.approx(metrics.f1(dist[left], y[left]), abs=1e-5)
    assert scored.risk_coverage.risk[:1] == [0.25]
    assert scored.calibration is None
    right = score(Categorical(probs), parts_of(probs.argmax(1), classes=("a", "b", "c")))
    assert right.figures["mefp"] is None
    assert right.figures["mefp_se"] is None


def test_examples() -> None:
    y = np.arange(12.0).reshape(6, 2)
    shown = examples(Gaussian(-y, np.ones((6, 2))), parts_of(y))
    assert shown is not None
    assert [case.title for case in shown.cases] == ["t0", "t1"]
    assert shown.cases[0].mean == [-10, -8, -6, -4, -2, 0]
    assert shown.cases[0].truth == [10, 8, 6, 4, 2, 0]
    assert shown.cases[1].low[0] == pytest.approx(-11 - 1.64485, abs=1e-4)
    waves = examples(Gaussian(np.zeros((6, 250)), 1.0), parts_of(np.zeros((6, 250))))
    assert waves is not None
    assert (len(waves.x), waves.x[1], len(waves.cases)) == (250, 0.008, 4)


def test_rounded_numbers() -> None:
    assert rounded([1 / 3, np.inf, None, np.float64(2)]) == [0.333333, None, None, 2.0]
