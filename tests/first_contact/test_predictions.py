"""What a model is asked for: intervals with their guarantee, several quantiles, one layer."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from first_contact.test_live import SETTINGS, model, rows

import rdeepsense as rds

__all__ = ["model"]


@pytest.fixture
def conformal(fitted: Callable[..., Any]) -> Any:
    return fitted(rds.RDeepSenseRegressor(**SETTINGS, calibrate="conformal"), *rows(400))


def test_a_conformal_model_gives_conformal_intervals(conformal: Any, tmp_path: Path) -> None:
    X, _ = rows(30, 1)
    auto = conformal.predict_interval(X, 0.8)
    np.testing.assert_array_equal(auto, conformal.predict_interval(X, 0.8, method="conformal"))
    predicted = conformal.predict_interval(X, 0.8, method="predicted")
    assert not np.array_equal(auto, predicted)
    np.testing.assert_array_equal(predicted, conformal.predict_dist(X).interval(0.8))
    rds.export(conformal, tmp_path / "m.folded", novelty=True)
    deployed = rds.deploy.load(tmp_path / "m.folded")
    np.testing.assert_allclose(deployed.predict_interval(X, 0.8), auto, rtol=1e-9)


def test_other_models_give_those_of_the_distribution(model: Any) -> None:
    X, y = rows(30, 1)
    np.testing.assert_array_equal(
        model.predict_interval(X, 0.8), model.predict_dist(X).interval(0.8)
    )
    kinds = np.arange(30) % 2
    own = model.conformalise(X, y, groups=kinds)
    with pytest.raises(rds.InputError, match="per group: give groups="):
        own.predict_interval(X, 0.8)
    low, high = own.predict_interval(X, 0.8, groups=kinds)
    assert (high > low).all()


def test_several_quantiles_in_one_call(model: Any, fitted: Callable[..., Any]) -> None:
    X, _ = rows(30, 1)
    levels = [0.1, 0.5, 0.9]
    found = model.predict(X, quantiles=levels)
    assert found.shape == (30, 3)
    dist = model.predict_dist(X)
    for k, level in enumerate(levels):
        np.testing.assert_allclose(found[:, k], dist.quantile(level), rtol=1e-12)
    with pytest.raises(rds.InputError, match=re.escape("with each of them give q[:, None]")):
        dist.quantile(levels)
    for wrong in (0.5, [[0.5]], [1.5], ["a"]):
        with pytest.raises(rds.InputError):
            model.predict(X, quantiles=wrong)
    with pytest.raises(rds.InputError, match="return_std or quantiles, not both"):
        model.predict(X, return_std=True, quantiles=levels)
    both = rows(100)
    two = fitted(rds.RDeepSenseRegressor(**SETTINGS), both[0], np.c_[both[1], -both[1]])
    assert two.predict(X, quantiles=levels).shape == (30, 3, 2)
    np.testing.assert_allclose(
        two.predict(X, quantiles=levels)[:, 0], two.predict_dist(X).quantile(0.1), rtol=1e-12
    )


def test_one_width_is_one_layer(tmp_path: Path) -> None:
    X, y = rows(100)
    one = rds.RDeepSenseRegressor(**{**SETTINGS, "hidden": 12}).fit(X, y)
    same = rds.RDeepSenseRegressor(**{**SETTINGS, "hidden": (12,)}).fit(X, y)
    np.testing.assert_array_equal(one.predict(X), same.predict(X))
    one.save(tmp_path / "m")
    again = rds.load(tmp_path / "m")
    assert again.get_params()["hidden"] == 12
    np.testing.assert_array_equal(again.predict(X), one.predict(X))
    for wrong in (0, -3, True, 2.5):
        with pytest.raises(rds.InputError, match="hidden"):
            rds.RDeepSenseRegressor(**{**SETTINGS, "hidden": wrong}).fit(X, y)
