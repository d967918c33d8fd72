"""Planted faults in Python: `fit` warns of them, keeps rows together, and remembers."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

import rdeepsense as rds


def regressor(**more: Any) -> rds.RDeepSenseRegressor:
    settings: dict[str, Any] = {"effort": "quick", "epochs": 15, "hidden": (16,), **more}
    return rds.RDeepSenseRegressor(random_state=0, device="cpu", **settings)


def codes(model: Any) -> list[str]:
    return [one.code for one in model.findings_]


def covered(model: Any, X: Any, y: Any) -> float:
    low, high = model.predict_interval(X, 0.9)
    return float(np.mean((low <= y) & (y <= high)))


def people(
    rng: np.random.Generator, numbers: np.ndarray, effects: np.ndarray, rows: int
) -> tuple[pd.DataFrame, np.ndarray]:
    person, x = rng.choice(numbers, rows), rng.normal(size=(rows, 2))
    y = np.sin(2 * x[:, 0]) + effects[person] + 0.5 * rng.normal(size=rows)
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "person": person}), y


def test_near_copies_are_kept_together(rng: np.random.Generator) -> None:
    situation = np.repeat(np.arange(60), 20)
    points = rng.normal(size=(60, 3))
    X = points[situation] + 1e-4 * rng.normal(size=(1200, 3))
    y = (points[:, 0] + rng.normal(size=60))[situation]
    with pytest.warns(rds.DataWarning, match="60 blocks of near-copies.*keeps them together"):
        model = regressor().fit(X, y)
    assert codes(model) == ["near-copies"]
    X = rng.normal(size=(2000, 3))
    assert covered(model, X, X[:, 0] + rng.normal(size=2000)) > 0.8


def test_numbered_entities_are_kept_together(rng: np.random.Generator) -> None:
    effects, numbers = rng.normal(size=300), rng.permutation(300)
    X, y = people(rng, numbers[:40], effects, 800)
    with pytest.warns(rds.DataWarning, match="'person': rows of one of its 40 levels are alike"):
        model = regressor().fit(X, y)
    assert covered(model, *people(rng, numbers[40:], effects, 2000)) > 0.8


def test_categories_are_not_split_by_their_own_levels(rng: np.random.Generator) -> None:
    """A new level has a status of its own; for known ones the intervals must be right."""
    effects = rng.normal(size=60)
    X, y = people(rng, np.arange(40), effects, 800)
    with pytest.warns(rds.DataWarning, match="'person'") as caught:
        model = regressor(epochs=40).fit(X.assign(person=[f"P{k}" for k in X["person"]]), y)
    assert "keeps them together" not in str(caught[0].message)
    known, truth = people(rng, np.arange(40), effects, 2000)
    known["person"] = [f"P{k}" for k in known["person"]]
    assert covered(model, known, truth) == pytest.approx(0.9, abs=0.06)


def test_a_leak_is_said_and_kept_in_the_file(rng: np.random.Generator, tmp_path: Path) -> None:
    y = rng.normal(size=300)
    X = pd.DataFrame({"a": rng.normal(size=300), "copy": 1.8 * y + 32})
    with pytest.warns(rds.DataWarning, match="'copy' is the target in other units.*Leave it out"):
        model = regressor().fit(X, y)
    model.save(tmp_path / "model.st")
    again = rds.load(tmp_path / "model.st")
    assert again.findings_ == model.findings_
    assert codes(again) == ["target-copy"]
    verdict = rds.report(again, X, y).verdicts["target 0"]
    assert verdict.headline.startswith("cannot be trusted (skill strong")


def test_an_ordinary_table_is_fitted_as_without_a_check() -> None:
    X, y = load_diabetes(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", rds.DataWarning)
        model, plain = regressor().fit(X, y), regressor(check=False).fit(X, y)
    assert model.predict_dist(X) == plain.predict_dist(X)
    assert model.findings_ == ()


def test_the_check_can_be_left_out(rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 2))
    with pytest.warns(rds.DataWarning, match="40 rows are few"):
        regressor().fit(X, X[:, 0] ** 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", rds.DataWarning)
        model = regressor(check=False).fit(X, X[:, 0] ** 2)
    assert model.findings_ == ()
    with pytest.raises(rds.InputError, match="check = 'no'; accepted: True, False"):
        regressor(check="no").fit(X, X[:, 0])


def test_own_groups_and_validation_end_the_search_for_groups(rng: np.random.Generator) -> None:
    effects = rng.normal(size=40)
    X, y = people(rng, np.arange(40), effects, 400)
    with pytest.warns(rds.DataWarning, match="'person'") as caught:
        regressor().fit(X, y, validation=(X[:100], y[:100]))
    assert "keeps them together" not in str(caught[0].message)
    names = [f"P{k}" for k in X["person"]]
    with pytest.warns(rds.DataWarning, match="'person': each level is in one group"):
        model = regressor().fit(X.assign(person=names), y, groups=names)
    assert codes(model) == ["group-input"]


@pytest.mark.parametrize(("recordings", "used"), [(8, 8 * 37), (1, 197 - 27)])
def test_windows_that_share_samples_are_kept_apart(
    rng: np.random.Generator, recordings: int, used: int
) -> None:
    samples = 200 if recordings > 1 else 1_000
    signals = rng.normal(size=(recordings, samples, 2))
    starts = range(0, samples - 19, 5)
    X = np.stack([signal[at : at + 20] for signal in signals for at in starts])
    y = X.mean(axis=(1, 2))
    model = regressor(epochs=2, hidden="auto", network=rds.networks.Flattened((8,)))
    with pytest.warns(rds.DataWarning, match="begin 5 after each other.*keeps them together"):
        model.fit(X, y)
    assert codes(model) == ["overlapping-windows"]
    assert model.training_["rows"] == used
    folds = 8 if used >= 200 else 5  # a fit of few rows judges by folds in any case
    assert model.training_["validated"] == f"{folds}-fold cross-validation by groups"


def test_files_are_checked_by_a_sample_of_their_rows(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    y = rng.normal(size=600)
    table = pd.DataFrame({"a": rng.normal(size=600), "copy": 1.8 * y + 32, "y": y})
    table.to_parquet(tmp_path / "rows.parquet")
    with pytest.warns(rds.DataWarning, match="'copy' is the target in other units"):
        model = regressor(epochs=2).fit(tmp_path, "y")
    assert codes(model) == ["target-copy"]
