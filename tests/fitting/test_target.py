"""Targets: encoded for a fit, and predictions brought back to their units."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from rdeepsense import Categorical, Gaussian, InputError
from rdeepsense.data.scaling import Scaler
from rdeepsense.data.splits import evenly
from rdeepsense.fitting.target import ClassTarget, RegressionTarget, target_from_json

SCALER = Scaler(np.array([10.0, 0.0]), np.array([2.0, 3.0]))


def test_numbers_keep_their_shape() -> None:
    target, y = RegressionTarget.of([1, 2, 4], 3, None)
    assert (target.shape, target.outputs, y.dtype) == ((), 1, np.float64)
    table, _ = RegressionTarget.of([[1, 2], [3, 5]], 2, None)
    assert (table.shape, table.outputs) == ((2,), 2)
    assert table.encode([[7, 8]], 1).tolist() == [[7.0, 8.0]]
    with pytest.raises(InputError, match=r"outputs of shape \(\), the model was fitted on \(2,\)"):
        table.encode([7.0], 1)
    with pytest.raises(InputError, match="y is constant"):
        RegressionTarget.of([1.0, 1.0], 2, None)


def test_predictions_come_back_in_units() -> None:
    two = Gaussian([[0.0, 1.0]], [[1.0, 2.0]])
    found = RegressionTarget((2,)).in_units(two, SCALER)
    assert found == Gaussian([[10.0, 3.0]], [[2.0, 6.0]])
    one = Scaler(SCALER.shift[:1], SCALER.scale[:1])
    assert RegressionTarget(()).in_units(two[:, :1], one) == Gaussian([10.0], [2.0])
    variance = np.array([[1.0, 2.0]])
    assert RegressionTarget((2,)).variance_in_units(variance, SCALER).tolist() == [[4.0, 18.0]]
    assert RegressionTarget(()).variance_in_units(variance[:, :1], one).tolist() == [4.0]
    assert ClassTarget(np.array(["a", "b"])).variance_in_units(variance, None) is variance


def test_the_scale_follows_the_head() -> None:
    y, part = np.array([0.0, 1.0, 2.0, 3.0, 100.0]), evenly(np.arange(5))
    standard = RegressionTarget(()).scaler(y, part, "standard")
    robust = RegressionTarget(()).scaler(y, part, "robust")
    assert standard is not None
    assert robust is not None
    assert standard.shift[0] == pytest.approx(21.2)
    assert robust.shift[0] == 2.0
    assert ClassTarget(np.array([0, 1])).scaler(y, part, None) is None


def test_classes_are_numbered_in_order() -> None:
    target, numbers = ClassTarget.of(["walk", "rest", "walk"], 3, None)
    assert target.classes.tolist() == ["rest", "walk"]
    assert numbers.tolist() == [1, 0, 1]
    assert target.outputs == 2
    probs = Categorical([[0.25, 0.75]])
    assert target.in_units(probs, None) is probs
    with pytest.raises(InputError, match="the class 'run', which the model was not fitted on"):
        target.encode(["run"], 1)
    with pytest.raises(InputError, match="one class only"):
        ClassTarget.of(["a", "b"], 2, np.array([1.0, 0.0]))
    with pytest.raises(InputError, match="the target y is None"):
        ClassTarget.of(None, 2, None)  # type: ignore[arg-type]


def test_names_and_units() -> None:
    target = RegressionTarget((2,)).described(["low", "high"], {"high": "m"})
    assert (target.names, target.units) == (("low", "high"), ("", "m"))
    assert target.described(None, None) == target
    with pytest.raises(InputError, match="classes have no unit"):
        ClassTarget(np.array([0, 1])).described(None, ["m"])


@pytest.mark.parametrize("classes", [["a", "b"], [3, 7], [False, True]])
def test_classes_come_back_from_json(classes: list[Any]) -> None:
    target = ClassTarget(np.array(classes))
    again = target_from_json(json.loads(json.dumps(target.to_json())))
    assert isinstance(again, ClassTarget)
    assert again.classes.tolist() == classes
    assert again.classes.dtype == target.classes.dtype


def test_numbers_come_back_from_json() -> None:
    for shape in ((), (3,)):
        target = RegressionTarget(shape)
        assert target_from_json(json.loads(json.dumps(target.to_json()))) == target
