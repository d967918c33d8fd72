"""Folding changes nothing but the rounding, for every head and calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from deploy.random_models import draw
from torch import nn

from rdeepsense.deploy.fold import COVERAGES, fold
from rdeepsense.deploy.folded.deployed import DeployedModel
from rdeepsense.errors import InputError
from rdeepsense.estimators import RDeepSenseRegressor, SSPRegressor

SMALL: dict[str, Any] = {"epochs": 1, "random_state": 0, "verbose": False}


@pytest.mark.parametrize("seed", range(15))
def test_folded_layers_predict_what_torch_does(seed: int) -> None:
    drawn = draw(seed, most=16)
    model, folded = drawn.estimator, DeployedModel(fold(drawn.estimator))
    if folded.facts.is_classifier:
        np.testing.assert_allclose(
            folded.predict_proba(drawn.X), model.predict_proba(drawn.X), rtol=1e-9, atol=1e-12
        )
        assert np.array_equal(folded.predict(drawn.X), model.predict(drawn.X))
        return
    mean, std = model.predict(drawn.X, return_std=True)
    found = folded.predict(drawn.X, return_std=True)
    assert found[0].shape == mean.shape
    assert np.abs((found[0] - mean) / std).max() < 1e-9, drawn.name
    np.testing.assert_allclose(found[1], std, rtol=1e-9)
    for coverage in COVERAGES:
        wanted = model.predict_interval(drawn.X[:4], coverage)
        for end, true in zip(folded.predict_interval(drawn.X[:4], coverage), wanted, strict=True):
            assert np.abs((end - true) / std[:4]).max() < 1e-9, (drawn.name, coverage)


@pytest.fixture
def table() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal((1e6, 0, -5), 1, (200, 3))
    return X, X[:, 1] + 0.1 * rng.normal(size=200)


def test_conformal_factors_travel(table: tuple[Any, Any]) -> None:
    X, y = table
    model = RDeepSenseRegressor(hidden=(8,), calibrate="conformal", **SMALL, effort="quick").fit(
        X, y
    )
    folded = DeployedModel(fold(model))
    for ours, theirs in zip(
        folded.predict_interval(X, 0.8, method="conformal"),
        model.predict_interval(X, 0.8, method="conformal"),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_missing_inputs_count_as_their_mean(table: tuple[Any, Any]) -> None:
    X, y = table
    model = RDeepSenseRegressor(hidden=(8,), missing="mean", **SMALL, effort="quick").fit(X, y)
    X[3, 0] = X[5, 2] = np.nan
    np.testing.assert_allclose(DeployedModel(fold(model)).predict(X), model.predict(X), rtol=1e-9)


def test_layers_without_relu_between_them_are_multiplied_out(table: tuple[Any, Any]) -> None:
    X, y = table
    network = nn.Sequential(
        nn.Linear(3, 7), nn.Dropout(0.1), nn.Linear(7, 5, bias=False), nn.ReLU(),
        nn.Sequential(nn.Identity(), nn.Linear(5, 1)),
    )  # fmt: skip
    model = RDeepSenseRegressor(network=network, **SMALL, effort="quick").fit(X, y)
    folded = fold(model)
    assert folded.layers.widths == (3, 5, 2)
    np.testing.assert_allclose(DeployedModel(folded).predict(X), model.predict(X), rtol=1e-9)


class _Own(nn.Sequential):
    pass


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), "a network with Tanh cannot"),
        (_Own(nn.Linear(3, 1)), "a network with _Own cannot"),
    ],
)
def test_other_networks_are_refused(
    network: nn.Module, message: str, table: tuple[Any, Any]
) -> None:
    model = RDeepSenseRegressor(network=network, **SMALL, effort="quick").fit(*table)
    with pytest.raises(InputError, match=message):
        fold(model)


def test_methods_of_many_passes_and_broken_weights_are_refused(table: tuple[Any, Any]) -> None:
    with pytest.raises(InputError, match="SSPRegressor takes more than one pass"):
        fold(SSPRegressor(members=2, **SMALL).fit(*table))
    model = RDeepSenseRegressor(hidden=(4,), **SMALL, effort="quick").fit(*table)
    with torch.no_grad():
        next(model.network_.parameters())[0, 0] = np.inf
    with pytest.raises(InputError, match="not finite"):
        fold(model)


def test_the_digest_tells_models_apart(table: tuple[Any, Any]) -> None:
    one, two = (
        fold(
            RDeepSenseRegressor(hidden=(4,), **{**SMALL, "random_state": seed}, effort="quick").fit(
                *table
            )
        )
        for seed in (0, 1)
    )
    assert one.facts.source != two.facts.source
    assert (
        one.facts.source
        == fold(RDeepSenseRegressor(hidden=(4,), **SMALL, effort="quick").fit(*table)).facts.source
    )
