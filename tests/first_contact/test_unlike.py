"""Rows unlike the known ones: flagged after every fit, and as unsure as they are far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy.c_models import COMPILERS
from numpy.random import Generator, default_rng

import rdeepsense as rds
from rdeepsense.deploy import load
from rdeepsense.fitting.epistemic import FEWEST_FITTED, quantile
from rdeepsense.status import Status

FIT: dict[str, Any] = {"effort": "quick", "hidden": (32,), "epochs": 25, "random_state": 0}
Draw = Callable[[Generator, int], Any]


def diagonal(rng: Generator, rows: int) -> Any:
    """Draw two inputs that are nearly one."""
    z = rng.uniform(-2, 2, rows)
    return np.c_[z, z + 0.05 * rng.normal(size=rows)]


def square(rng: Generator, rows: int) -> Any:
    """Draw the same inputs by themselves."""
    return rng.uniform(-2, 2, (rows, 2))


def two_sides(rng: Generator, rows: int) -> Any:
    """Draw an input that has a hole in the middle of its range."""
    return (rng.uniform(1, 3, rows) * rng.choice([-1, 1], rows))[:, None]


def hole(rng: Generator, rows: int) -> Any:
    """Draw rows in that hole."""
    return rng.uniform(-1, 1, (rows, 1))


def blobs(rng: Generator, rows: int) -> Any:
    """Draw two clusters."""
    centre = np.c_[2 * rng.choice([-1, 1], rows), np.zeros(rows)]
    return centre + 0.3 * rng.normal(size=(rows, 2))


def between(rng: Generator, rows: int) -> Any:
    """Draw rows between the clusters, in range."""
    return np.c_[rng.uniform(-1, 1, rows), rng.uniform(-0.9, 0.9, rows)]


def target(X: Any) -> Any:
    return np.sin(3 * X[:, 0]) + X[:, -1]


CASES = {
    "off the diagonal": (diagonal, square),
    "in a hole": (two_sides, hole),
    "between classes": (blobs, between),
}


def model_of(fitted: Callable[..., Any], name: str) -> Any:
    """Fit a case: 1,000 rows, of classes where there are clusters."""
    X = CASES[name][0](default_rng(1), 1_000)
    if name == "between classes":
        labels = np.where(X[:, 0] > 0, "right", "left")
        return fitted(rds.RDeepSenseClassifier(**FIT), X, labels)
    y = target(X) + 0.1 * default_rng(2).normal(size=1_000)
    return fitted(rds.RDeepSenseRegressor(**FIT), X, y)


def unlike(model: Any, X: Any) -> Any:
    return model.status(X) & Status.UNLIKE > 0


@pytest.mark.parametrize("name", CASES)
def test_strange_rows_are_flagged_and_healthy_ones_are_not(
    name: str, fitted: Callable[..., Any], rng: Generator
) -> None:
    healthy, strange = CASES[name]
    model = model_of(fitted, name)
    assert unlike(model, strange(rng, 2_000)).mean() > 0.75
    # The threshold is one of about 200 held-out rows: of 1 % it has a standard error of 0.7 %.
    assert unlike(model, healthy(rng, 4_000)).mean() < 0.01 + 5 * 0.007


def test_as_many_healthy_rows_are_flagged_as_promised(rng: Generator) -> None:
    """Over many fits; each has 1 % in the mean, with a standard error of about 0.7 %."""
    shares = []
    for seed in range(12):
        mixing = rng.normal(size=(3, 3))
        X, fresh = (np.exp(rng.normal(size=(rows, 3))) @ mixing for rows in (500, 2_000))
        model = rds.RDeepSenseRegressor(effort="quick", hidden=(), epochs=1, random_state=seed)
        shares.append(unlike(model.fit(X, X[:, 0]), fresh).mean())
    assert np.mean(shares) < 0.01 + 5 * 0.007 / np.sqrt(12)
    assert np.mean(shares) > 0.001


def test_rows_of_new_groups_are_not_unlike(rng: Generator) -> None:
    """Each group has a place of its own, where held-out rows of known groups would be at home."""
    places = rng.normal(size=(60, 2))
    group = np.repeat(np.arange(30), 20)
    X = places[group] + 0.1 * rng.normal(size=(600, 2))
    model = rds.RDeepSenseRegressor(effort="quick", hidden=(), epochs=1, random_state=0)
    model.fit(X, X[:, 0], groups=group)
    new = places[30:].repeat(20, 0) + 0.1 * rng.normal(size=(600, 2))
    ok = new[model.status(new) & Status.OUT_OF_RANGE == 0]
    # Groups are flagged as a whole, and 30 of them tell a share of 2 % to 2.6 %.
    assert unlike(model, ok).mean() < 0.02 + 5 * 0.026


def test_the_spread_of_a_flagged_row_grows_to_that_of_the_targets(
    fitted: Callable[..., Any],
) -> None:
    model = model_of(fitted, "off the diagonal")
    sure = replace(model.fitted_, unlike=None)
    away = np.linspace(0, 2, 201)
    X = np.c_[np.full(201, 1.0) - away / 2, np.full(201, 1.0) + away / 2]
    flagged, own = unlike(model, X), sure.distribution(X).std
    std = model.predict_dist(X).std
    novelty = model.fitted_.compact_novelty
    doubt = novelty.doubt(novelty.surprise(X))
    np.testing.assert_array_equal(std[~flagged], own[~flagged])
    spread = np.ravel(model.fitted_.guard.fallback)
    assert (std[doubt == 1] >= spread * (1 - 1e-12)).all()
    assert (doubt == 1).any()
    assert ((doubt > 0) & (doubt < 1)).any()
    assert (std >= own * (1 - 1e-12)).all()
    # The doubt rises with the distance, without a jump where the flag begins.
    assert (np.diff(doubt) >= 0).all()
    just = novelty.threshold + novelty.width * np.array([0.0, 0.01, 0.5, 1.0, 9.0])
    np.testing.assert_allclose(novelty.doubt(just), [0, 1e-4, 0.25, 1, 1], atol=1e-6)
    np.testing.assert_allclose(model.predict(X), sure.distribution(X).mean, rtol=1e-12)


def test_flagged_rows_are_covered(fitted: Callable[..., Any], rng: Generator) -> None:
    for name in ("off the diagonal", "in a hole"):
        model, X = model_of(fitted, name), CASES[name][1](rng, 2_000)
        y = target(X) + 0.1 * rng.normal(size=2_000)
        low, high = model.predict_interval(X, 0.9)
        flagged = unlike(model, X)
        assert ((low <= y) & (y <= high))[flagged].mean() > 0.86, name


def test_probabilities_of_flagged_rows_go_towards_the_frequencies(
    fitted: Callable[..., Any], rng: Generator
) -> None:
    model = model_of(fitted, "between classes")
    X = CASES["between classes"][1](rng, 500)
    sure = replace(model.fitted_, unlike=None).distribution(X).probs
    novelty = model.fitted_.compact_novelty
    share = novelty.doubt(novelty.surprise(X))[:, None] / 2
    wanted = (1 - share) * sure + share * model.fitted_.guard.fallback
    np.testing.assert_allclose(model.predict_proba(X), wanted, atol=1e-12)
    assert (share == 0.5).any()


@pytest.mark.everyday(1, "compilers")
@pytest.mark.parametrize("name", CASES)
def test_a_copy_a_live_model_and_exports_say_the_same(
    name: str, fitted: Callable[..., Any], rng: Generator, tmp_path: Path
) -> None:
    model = model_of(fitted, name)
    X = CASES[name][1](rng, 300).astype(np.float32)
    status = model.status(X)
    assert (status == Status.UNLIKE).mean() > 0.5

    def told(dist: Any) -> Any:
        return dist.probs if dist.is_categorical else dist.std.reshape(len(dist), -1)

    wanted = told(model.predict_dist(X))
    model.save(tmp_path / "model")
    again = rds.load(tmp_path / "model")
    np.testing.assert_array_equal(again.status(X), status)
    np.testing.assert_array_equal(told(again.predict_dist(X)), wanted)
    live = model.live()
    for row in range(3):
        said = live.predict(X[row])
        assert said.status == status[row]
    rds.export(model, tmp_path / "folded", novelty=True)
    ways: list[Any] = [(load(tmp_path / "folded"), 1e-9)]
    if COMPILERS:
        ways.append((load(tmp_path / "folded", compile=True), 1e-3))
    for deployed, bound in ways:
        found = deployed.runner.run(X)
        assert (found.status == status).mean() > 0.99
        own = found.probs if hasattr(found, "probs") else found.std
        np.testing.assert_allclose(own, wanted, rtol=bound, atol=bound)
    rds.export(model, tmp_path / "plain")
    assert (load(tmp_path / "plain").status(X) == 0).all()


def test_few_rows_have_no_flag(rng: Generator) -> None:
    X = diagonal(rng, FEWEST_FITTED - 1)
    with pytest.warns(rds.DataWarning, match="are few"):
        model = rds.RDeepSenseRegressor(effort="quick", hidden=(), epochs=1).fit(X, X[:, 0])
    assert model.fitted_.compact_novelty is None
    assert model.status([[2.0, -2.0]]).tolist() == [0]


def test_the_tail_of_few_rows_is_continued() -> None:
    """Of 49 exponential quantiles the 0.99 one lies log(2) of the mean excess beyond the last."""
    ordered = -np.log(1 - np.arange(1, 50) / 50)
    excess = (ordered[39:] - ordered[39]).mean()
    assert quantile(ordered, 0.99) == pytest.approx(ordered[-1] + np.log(2) * excess)
    assert quantile(np.arange(99.0), 0.99) == 98
    assert quantile(np.arange(199.0), 0.99) == 197
