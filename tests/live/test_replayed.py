"""A replayed stream: the record is what a hand-written loop finds, for numbers and classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rdeepsense as rds
from rdeepsense.adaptation.rates import Rates
from rdeepsense.errors import InputError
from rdeepsense.live.replay import FIGURES, WAYS, replay

SETTINGS: dict[str, Any] = {
    "effort": "quick",
    "hidden": (8,),
    "epochs": 10,
    "random_state": 0,
    "device": "cpu",
    "verbose": False,
}


def rows(count: int, seed: int, drift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 2))
    return X, X[:, 0] + drift + 0.3 * rng.normal(size=count)


@pytest.fixture(scope="module")
def model() -> rds.RDeepSenseRegressor:
    return rds.RDeepSenseRegressor(**SETTINGS).fit(*rows(400, 0))


def test_numbers_are_those_of_a_loop_by_hand(model: rds.RDeepSenseRegressor) -> None:
    X, y = rows(120, 1, drift=2.0)
    truth = y.copy()
    y[[1, 30, 31, 32]] = np.nan
    found = replay(model, X, y, every=3, live=model.live(0.8))
    known = np.flatnonzero(~np.isnan(y))
    assert found.labelled.tolist() == (~np.isnan(y)).tolist()
    assert np.flatnonzero(found.observed).tolist() == known[::3].tolist()

    live, alarm, log_q = model.live(0.8), None, 0.0
    for k in range(120):
        said = live.predict(X[k])
        own, low, high = said.distribution, *said.interval
        by_live, tracked = found.ways["live"], found.ways["tracked"]
        assert by_live.width[k] == pytest.approx(float(high - low))
        frozen = model.predict_dist(X[k : k + 1])
        bottom, top = (float(edge[0]) for edge in frozen.interval(0.8))
        assert tracked.width[k] == pytest.approx((top - bottom) * np.exp(log_q))
        if np.isnan(y[k]):
            assert np.isnan([by_live.error[k], by_live.held[k], by_live.nll[k]]).all()
            continue
        assert by_live.error[k] == pytest.approx(abs(float(own.quantile(0.5)) - truth[k]))
        assert by_live.held[k] == (low <= truth[k] <= high)
        assert by_live.nll[k] == pytest.approx(-float(own.log_prob(truth[k])))
        if found.observed[k]:
            live.observe(truth[k], said.ticket)
            log_q += Rates().eta * ((not tracked.held[k]) - 0.2)
        if alarm is None and live.drifting:
            alarm = k + 1
    assert found.alarm == alarm is not None

    dist = model.predict_dist(X[known])
    low, high = dist.interval(0.8)
    figures = found.ways["frozen"].figures()
    assert tuple(figures) == FIGURES
    assert figures["error"] == pytest.approx(np.abs(dist.quantile(0.5) - truth[known]).mean())
    assert figures["coverage"] == np.mean((low <= truth[known]) & (truth[known] <= high))
    assert figures["width"] == pytest.approx((high - low).mean())
    assert figures["nll"] == pytest.approx(-dist.log_prob(truth[known]).mean())
    assert found.ways["live"].figures()["error"] < 0.6 * figures["error"]
    own = found.ways["adapted"]
    assert own.error[known].tolist() == found.ways["live"].error[known].tolist()
    assert own.width.tolist() != found.ways["live"].width.tolist()


def test_several_outputs_are_averaged() -> None:
    X, y = rows(200, 0)
    wide = rds.RDeepSenseRegressor(**SETTINGS).fit(X, np.c_[y, -y])
    X, y = rows(20, 1)
    truth = np.c_[y, -y]
    truth[3, 1] = np.nan
    found = replay(wide, X, truth)
    assert np.flatnonzero(~found.labelled).tolist() == [3]
    low, high = wide.predict_dist(X).interval(0.9)
    inside = ((low <= truth) & (truth <= high)).mean(1)
    assert np.delete(found.ways["frozen"].held, 3).tolist() == np.delete(inside, 3).tolist()


def test_classes_have_sets() -> None:
    X, y = rows(400, 0)
    sorter = rds.RDeepSenseClassifier(**SETTINGS).fit(X, np.where(y > 0, "up", "down"))
    X, y = rows(60, 1)
    labels = np.where(y > 0.5, "up", "down").astype(object)
    labels[7] = None
    found = replay(sorter, X, labels, every=2)
    assert found.is_classes
    assert np.flatnonzero(~found.labelled).tolist() == [7]
    probs = sorter.predict_dist(X).probs
    numbers, known = (labels == "up").astype(int), labels != None  # noqa: E711
    frozen = found.ways["frozen"]
    assert frozen.width.tolist() == (probs >= 0.1).sum(1).tolist()
    wrong = probs.argmax(1) != numbers
    assert frozen.error[known].tolist() == wrong[known].tolist()
    held = probs[np.arange(60), numbers] >= 0.1
    assert frozen.held[known].tolist() == held[known].tolist()
    assert set(found.ways) == set(WAYS)
    live = sorter.live()
    first = live.predict(X[0])
    assert found.ways["live"].width[0] == np.sum(first.interval)


def test_what_is_refused(model: rds.RDeepSenseRegressor) -> None:
    X, y = rows(10, 1)
    with pytest.raises(InputError, match="every = 0; accepted: whole numbers from 1"):
        replay(model, X, y, every=0)
    with pytest.raises(InputError, match="10 rows and 9 labels"):
        replay(model, X, y[:-1])
    with pytest.raises(InputError, match="10 labels, 0 known"):
        replay(model, X, np.full(10, np.nan))
