"""Further holes: drawn at the columns' own rates, and not where a hole tells of the target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import rdeepsense as rds
from rdeepsense.data.rows import FitRows, split_rows
from rdeepsense.data.scaling import Scaler
from rdeepsense.encoding import Encoding
from rdeepsense.fitting.trainer import MissingValueAugmentation

NETWORK: dict[str, Any] = {"hidden": (8,), "epochs": 2, "device": "cpu", "verbose": False}
FIXED: dict[str, Any] = {**NETWORK, "alpha": 0.5, "likelihood": "gaussian"}


def fit_rows(lacking: Any, y: Any, flagged: tuple[int, ...] = (0, 2)) -> FitRows:
    X = np.random.default_rng(5).normal(size=lacking.shape)
    rows = split_rows(np.where(lacking, np.nan, X), y, None, None, False, False, seed=0)
    return replace(rows, encoding=Encoding(X.shape[1], flagged))


def by_chance(rows: int = 1_000) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.random((rows, 3)) < [0.1, 0.0, 0.3], rng.normal(size=rows)


def test_holes_by_chance_are_drawn_at_their_own_rates() -> None:
    lacking, y = by_chance()
    rows = fit_rows(lacking, y)
    holes = MissingValueAugmentation.of(rows, None)
    assert holes is not None
    assert (holes.columns, holes.copies) == ((0, 2), 7)
    np.testing.assert_allclose(holes.rates, lacking[:, [0, 2]].mean(0))
    scaler = Scaler.of_table(rows.X, rows.rows.index, rows.rows.weight, rows.encoding)
    x = scaler.gather(rows.X, np.arange(1_000))
    drawn = holes.drawn(x, scaler)
    assert drawn.shape == (8_000, 5)
    assert torch.equal(drawn[:1_000], x)
    assert torch.equal(drawn[:, 1], x[:, 1].repeat(8))  # a column that never lacks a value
    on = (1 - scaler.shift[3:]) / scaler.scale[3:]
    for copy in drawn[1_000:].split(1_000):
        for number, flag, value, rate in ((0, 3, on[0], 0.1), (2, 4, on[1], 0.3)):
            hole = torch.isclose(copy[:, flag], torch.tensor(value, dtype=copy.dtype))
            assert (copy[hole, number] == 0).all()
            assert torch.equal(copy[~hole, number], x[~hole, number])
            assert abs(hole.float().mean() - (1 - (1 - rate) ** 2)) < 0.05
    assert torch.equal(holes.drawn(x, scaler), drawn)


def test_a_hole_that_tells_something_is_not_drawn() -> None:
    lacking, y = by_chance()
    told = MissingValueAugmentation.of(fit_rows(lacking, y + lacking[:, 0]), None)
    assert told is not None
    assert told.columns == (2,)
    noisy = MissingValueAugmentation.of(
        fit_rows(lacking, y * np.where(lacking[:, 2], 3.0, 1.0)), None
    )
    assert noisy is not None
    assert noisy.columns == (0,)
    both = y + lacking[:, 0] + lacking[:, 2]
    assert MissingValueAugmentation.of(fit_rows(lacking, both), None) is None


def test_as_many_copies_as_are_needed() -> None:
    lacking, y = by_chance(30_000)
    assert MissingValueAugmentation.of(fit_rows(lacking, y), None) is None
    lacking, y = by_chance(12_000)
    some = MissingValueAugmentation.of(fit_rows(lacking, y), None)
    assert some is not None
    assert some.copies == 1
    assert MissingValueAugmentation.of(fit_rows(lacking, y, flagged=()), None) is None


@pytest.mark.parametrize(
    "options", [{"drop_prob": 0.05}, {"drop_prob": "auto"}], ids=["held out", "folds"]
)
def test_rows_are_counted_once(options: Any) -> None:
    lacking, y = by_chance(300)
    X = np.where(lacking, np.nan, np.random.default_rng(5).normal(size=(300, 3)))
    model = rds.RDeepSenseRegressor(random_state=0, **FIXED, **options).fit(X, y)
    assert model.training_["copies_with_holes"] == 7
    rows = (model.training_["rows"], model.training_["validation_rows"])
    assert rows == ((300, 300) if options["drop_prob"] == "auto" else (240, 60))
    assert len(model.fitted_.kept_rows[0]) == (300 if options["drop_prob"] == "auto" else 60)
    again = rds.RDeepSenseRegressor(random_state=0, **FIXED, **options).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_weights_and_classes() -> None:
    lacking, y = by_chance(300)
    X = np.where(lacking, np.nan, np.random.default_rng(5).normal(size=(300, 3)))
    weight = np.linspace(0.5, 1.5, 300)
    model = rds.RDeepSenseClassifier(random_state=0, effort="quick", **NETWORK)
    model.fit(X, y > 0, sample_weight=weight)
    assert model.training_["copies_with_holes"] == 7
    rds.SSPRegressor(members=2, random_state=0, **NETWORK).fit(X, y, sample_weight=weight)
