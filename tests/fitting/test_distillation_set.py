"""Distillation: one pass that says what an ensemble says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import rdeepsense as rds
from rdeepsense import metrics
from rdeepsense.datasets import FEATURES, simulate
from rdeepsense.fitting.distillation import NEIGHBOURS, QUANTILES, distillation_set

TASK, TEST = simulate(400, seed=0), simulate(3_000, seed=1)
SMALL: dict[str, Any] = {"random_state": 0, "device": "cpu"}


@pytest.mark.slow
def test_a_student_comes_near_its_teacher() -> None:
    teacher = rds.SSPRegressor(members=5, hidden=(32,), epochs=60, **SMALL).fit(TASK.X, TASK.y)
    student = rds.RDeepSenseRegressor(hidden=(64, 64), drop_prob=0.0, **SMALL, effort="quick")
    student.distil(teacher, TASK.X)
    theirs, ours = teacher.predict_dist(TEST.X), student.predict_dist(TEST.X)
    error = np.sqrt(np.mean((ours.mean - theirs.mean) ** 2)) / TEST.y.std()
    assert error < 0.1
    assert np.sqrt(np.mean(np.log(ours.std / theirs.std) ** 2)) < 0.25
    assert metrics.nll(ours, TEST.y) < metrics.nll(theirs, TEST.y) + 0.1
    assert student.training_["teacher"] == "SSPRegressor"


def test_lessons_are_the_teachers_quantiles_and_the_targets() -> None:
    teacher = rds.SSPRegressor(members=2, hidden=(8,), epochs=3, **SMALL).fit(TASK.X, TASK.y)
    table, targets, weight = distillation_set(teacher, TASK.X, None, 0)
    assert table.shape == (400 * (1 + NEIGHBOURS) * QUANTILES, 4)
    assert (weight == 1).all()
    dist = teacher.predict_dist(TASK.X)
    mine = targets.reshape(QUANTILES, 1 + NEIGHBOURS, 400)[:, 0]
    levels = np.array([dist.cdf(values) for values in mine])
    assert (np.floor(levels * QUANTILES) == np.arange(QUANTILES)[:, None]).all()
    more, both, weights = distillation_set(teacher, TASK.X, TASK.y, 0)
    assert np.array_equal(both[-400:], TASK.y)
    assert weights[-400:].sum() == pytest.approx(weights[:-400].sum())
    assert len(more) == len(table) + 400


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_feature_names_are_kept(frame: Any) -> None:
    X = frame(dict(zip(FEATURES, TASK.X.T, strict=True)))
    teacher = rds.SSPRegressor(members=2, hidden=(8,), epochs=3, **SMALL).fit(X, TASK.y)
    student = rds.RDeepSenseRegressor(hidden=(8,), epochs=1, **SMALL, effort="quick").distil(
        teacher, X
    )
    assert student.feature_names_in_.tolist() == list(FEATURES)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_names_and_units_go_over_to_the_student() -> None:
    X = pd.DataFrame(TASK.X, columns=list(FEATURES))
    y = pd.DataFrame({"load": TASK.y, "lift": -TASK.y})
    teacher = rds.SSPRegressor(members=2, hidden=(8,), epochs=3, **SMALL).fit(X, y)
    teacher.describe(target_units=["N", "µm"], feature_units={"x2": "°C"})
    student = rds.RDeepSenseRegressor(hidden=(8,), epochs=1, **SMALL, effort="quick").distil(
        teacher, TASK.X
    )
    assert student.feature_names_in_.tolist() == list(FEATURES)
    assert student.fitted_.target.names == ("load", "lift")
    assert student.fitted_.target.units == ("N", "µm")
    assert student.fitted_.inputs.units == ("", "", "°C", "")
    student.distil(teacher, TASK.X, y.rename(columns={"load": "force"}))
    assert student.fitted_.target.names == ("force", "lift")  # those of a table come first


def test_classes_are_distilled_too() -> None:
    labels = np.array(["low", "middle", "high"])[np.digitize(TASK.y, [40.0, 60.0])]
    teacher = rds.SSPClassifier(members=3, hidden=(16,), epochs=40, **SMALL).fit(TASK.X, labels)
    student = rds.RDeepSenseClassifier(hidden=(32,), epochs=20, **SMALL, effort="quick").distil(
        teacher, TASK.X
    )
    assert student.classes_.tolist() == teacher.classes_.tolist()
    gap = np.abs(student.predict_proba(TEST.X) - teacher.predict_proba(TEST.X)).mean()
    assert gap < 0.08


def test_refusals() -> None:
    with pytest.raises(rds.InputError, match="teacher is a str, which has no predict_dist"):
        rds.RDeepSenseRegressor(**SMALL, effort="quick").distil("nobody", TASK.X)
    teacher = rds.SSPRegressor(members=1, hidden=(8,), epochs=1, **SMALL).fit(TASK.X, TASK.y)
    with pytest.raises(rds.InputError, match="y has shape \\(3,\\)"):
        rds.RDeepSenseRegressor(**SMALL, effort="quick").distil(teacher, TASK.X, [1, 2, 3])
