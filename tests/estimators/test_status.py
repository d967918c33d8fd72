"""What estimators say of rows beyond what they were trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rdeepsense as rds

SMALL: dict[str, Any] = {"random_state": 0, "verbose": False, "device": "cpu"}
FEW: dict[str, Any] = {"epochs": 2, "hidden": (8,), **SMALL}
REGRESSORS = {
    "rdeepsense": lambda: rds.RDeepSenseRegressor(**FEW, effort="quick"),
    "isotonic": lambda: rds.RDeepSenseRegressor(calibrate="isotonic", **FEW, effort="quick"),
    "student": lambda: rds.RDeepSenseRegressor(likelihood="student", **FEW, effort="quick"),
    "mcdrop": lambda: rds.MCDropRegressor(**FEW),
    "ssp": lambda: rds.SSPRegressor(**FEW),
    "gp": lambda: rds.GPRegressor(**SMALL),
}
CLASSIFIERS = {
    "rdeepsense": lambda: rds.RDeepSenseClassifier(**FEW, effort="quick"),
    "mcdrop": lambda: rds.MCDropClassifier(**FEW),
    "ssp": lambda: rds.SSPClassifier(**FEW),
    "gp": lambda: rds.GPClassifier(steps=20, **SMALL),
}


def table(rows: int = 300) -> tuple[Any, Any]:
    """Three sensors and one that always says 21.3."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(rows, 3)), np.full(rows, 21.3)]
    return X, 5 + 10 * X[:, 0] + rng.normal(size=rows)


def strange(X: Any) -> Any:
    """Healthy; 35 standard deviations out; a constant that moved; absurd."""
    rows = X[:4].copy()
    rows[1, 1], rows[2, 3], rows[3, 0] = 35.0, 21.4, -1e30
    return rows


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name: str, tmp_path: Path) -> None:
    X, y = table()
    model = REGRESSORS[name]().fit(X, y)
    rows = strange(X)
    assert model.status(rows).tolist() == [0, 2, 2, 2]
    assert model.flagged_inputs(rows)[1:].argmax(1).tolist() == [1, 3, 0]
    dist, plain = model.predict_dist(rows), model.fitted_.uncalibrated(rows)
    calibrated = model.fitted_.calibration
    plain = plain if calibrated is None else calibrated.apply(plain)
    np.testing.assert_allclose(dist.mean, plain.mean, rtol=1e-9)
    fallback = model.fitted_.guard.fallback.item()
    np.testing.assert_allclose(dist.std[1:], np.maximum(plain.std[1:], fallback), rtol=1e-9)
    assert dist.std[0] == plain.std[0]
    assert dist[:1] == plain[:1]
    low, high = model.predict_interval(rows, 0.9)
    assert ((high - low)[1:] > fallback).all()
    model.save(tmp_path / "m")
    again = rds.load(tmp_path / "m")
    assert again.status(rows).tolist() == [0, 2, 2, 2]
    assert np.array_equal(again.predict_dist(rows).std, dist.std)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name: str) -> None:
    X, y = table()
    labels = np.array(["low", "mid", "high"])[np.digitize(y, [-2.0, 14.0])]
    model = CLASSIFIERS[name]().fit(X, labels)
    rows = strange(X)
    assert model.status(rows).tolist() == [0, 2, 2, 2]
    plain = model.fitted_.uncalibrated(rows)
    calibrated = model.fitted_.calibration
    probs = (plain if calibrated is None else calibrated.apply(plain)).mean
    frequencies = np.array([(labels == label).mean() for label in model.classes_])
    np.testing.assert_allclose(model.predict_proba(rows)[0], probs[0])
    np.testing.assert_allclose(model.predict_proba(rows)[1:], (probs[1:] + frequencies) / 2)


def test_epistemic_predictions_are_guarded_too(fitted: Any) -> None:
    X, y = table()
    model = fitted(rds.RDeepSenseRegressor(**FEW, effort="quick"), X, y)
    dist = model.predict_dist(strange(X), epistemic="laplace")
    assert (dist.std[1:] >= model.fitted_.guard.fallback * (1 - 1e-12)).all()


def test_rows_that_predict_refuses_have_a_status(fitted: Any) -> None:
    X, y = table()
    model = fitted(rds.RDeepSenseRegressor(**FEW, effort="quick"), X, y)
    rows = X[:3].copy()
    rows[0, 2], rows[1, 1] = np.nan, np.inf
    assert model.status(rows).tolist() == [rds.Status.MISSING, rds.Status.OUT_OF_RANGE, 0]
    with pytest.raises(rds.InputError, match="NaN or infinity"):
        model.predict(rows)


def test_a_nan_is_flagged_where_there_never_was_one() -> None:
    X, y = table()
    X[::7, 1] = np.nan
    model = rds.RDeepSenseRegressor(missing="mean", **FEW, effort="quick").fit(X, y)
    rows = np.tile(X[1], (3, 1))
    rows[1, 1], rows[2, 2] = np.nan, np.nan
    assert model.status(rows).tolist() == [0, 0, rds.Status.MISSING]
    std = model.predict_dist(rows).std
    assert std[2] == pytest.approx(model.fitted_.guard.fallback.item())
    assert std[1] < std[2]


def test_the_training_rows_are_not_flagged(fitted: Any) -> None:
    X, y = table(3_000)
    model = fitted(rds.RDeepSenseRegressor(**FEW, effort="quick"), X, y)
    for rows in (X, X.astype(np.float32)):
        status = model.status(rows)
        assert set(status) <= {rds.Status.OK, rds.Status.UNLIKE}
        assert (status > 0).mean() < 0.01 + 5 * 0.007  # UNLIKE has a threshold of 600 rows or less


def test_files_of_before_have_no_guard() -> None:
    from golden.fits import MODELS

    for path in sorted(MODELS.glob("*.safetensors"))[:1]:
        model = rds.load(path)
        rows = np.full((2, model.n_features_in_), 1e9)
        assert model.fitted_.guard is None
        assert not model.status(rows).any()
        assert not model.flagged_inputs(rows).any()
