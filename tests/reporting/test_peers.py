"""A constant and boosted trees beside a model: their figures, and what a file keeps of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rdeepsense as rds
from rdeepsense import InputError
from rdeepsense.comparison.baselines import HistBoosted
from rdeepsense.distributions import Gaussian
from rdeepsense.fitting.fitted import BaselineScores, check_peers
from rdeepsense.reporting.baselines import (
    CONSTANT,
    OWN,
    TREES,
    compare,
    features,
    peers_table,
    simple_models,
)
from rdeepsense.reporting.baselines import peers_words as words_of


@pytest.fixture(scope="module")
def peers(model: Any, rows: Any) -> BaselineScores:
    train, test = slice(0, 600), slice(600, 900)
    simple = simple_models(model, (rows.X[train], rows.y[train]), rows.X[test])
    return compare(model, simple, (rows.X[test], rows.y[test]))


def test_the_constant_is_the_gaussian_of_the_training_targets(
    peers: BaselineScores, rows: Any
) -> None:
    found = {one.method: one for one in peers.records}
    assert list(found) == [OWN, CONSTANT, TREES]
    before, y = rows.y[:600], rows.y[600:]
    constant = Gaussian(np.full(300, before.mean()), np.full(300, before.std()))
    figures = found[CONSTANT].figures
    assert figures["nll"] == pytest.approx(-constant.log_prob(y).mean())
    assert figures["mae"] == pytest.approx(np.abs(y - before.mean()).mean())
    assert found[CONSTANT].behind == pytest.approx(figures["nll"] - found[OWN].figures["nll"])
    assert found[OWN].behind is None


def test_trees_learn_and_hold(peers: BaselineScores) -> None:
    trees, constant = (
        next(one for one in peers.records if one.method == method) for method in (TREES, CONSTANT)
    )
    assert trees.figures["mae"] < 0.6 * constant.figures["mae"]
    assert trees.figures["coverage_90"] == pytest.approx(0.9, abs=0.06)
    words = words_of(peers, "heat", "held out")
    assert words.startswith(f"On {peers.rows:,} rows held out: by NLL, the model ")
    table = peers_table(peers, "heat", "here")
    assert [row[0] for row in table.rows] == [OWN, CONSTANT, TREES]


def test_trees_take_holes_and_categories() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=400), rng.integers(0, 3, 400)])
    y = X[:, 0] + np.array([0.0, 9.0, -5.0])[X[:, 1].astype(int)]
    X[::7, 0] = np.nan
    found = HistBoosted("regression", categories=[1]).fit(X, y)
    assert np.abs(found.predict_dist(X).mean - y)[1:7].max() < 2
    labels = np.where(X[:, 1] > 1, "c", "ab")
    assert HistBoosted("classification").fit(X, labels).predict_dist(X).probs.shape == (400, 2)


def test_what_trees_read_of_windows() -> None:
    window = np.array([[[0.0, 1.0], [2.0, 1.0], [4.0, 4.0]]])
    assert features(window).tolist() == [
        [2, 2, np.sqrt(8 / 3), np.sqrt(2), 0, 1, 4, 4, 2, 1.5]
    ]  # mean, std, least, most, mean step of each channel


def test_a_round_trip(peers: BaselineScores, model: Any, tmp_path: Path) -> None:
    assert BaselineScores.from_json(json.loads(json.dumps(peers.to_json()))) == peers
    kept = model.fitted_
    try:
        model.fitted_ = replace(kept, peers=peers)
        model.save(tmp_path / "m.safetensors")
    finally:
        model.fitted_ = kept
    assert rds.load(tmp_path / "m.safetensors").fitted_.peers == peers


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("rows", 0, "peers.rows = 0 is garbled"),
        ("records", [], "peers.records"),
        ("records", [{}], r"peers.records\[0\].target"),
    ],
)
def test_garbled_records_are_refused(
    peers: BaselineScores, place: str, value: Any, words: str
) -> None:
    told = {**peers.to_json(), place: value}
    with pytest.raises(InputError, match=words):
        check_peers(told)


def test_unknown_and_odd_fields_of_a_record_are_refused(peers: BaselineScores) -> None:
    told = json.loads(json.dumps(peers.to_json()))
    told["records"][0]["more"] = 1
    with pytest.raises(InputError, match=r"records\[0\].more is unknown here"):
        check_peers(told)
    del told["records"][0]["more"]
    told["records"][1]["figures"]["nll"] = "low"
    with pytest.raises(InputError, match=r"figures.nll = 'low' is garbled"):
        check_peers(told)
