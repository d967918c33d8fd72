"""A model in a stream: what it promises of tickets, labels, intervals, alarms and its state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rdeepsense as rds
from rdeepsense.adaptation.rates import Rates
from rdeepsense.errors import InputError, ModelFileError
from rdeepsense.live.targets import Numbers

SETTINGS: dict[str, Any] = {
    "effort": "quick",
    "hidden": (16, 16),
    "random_state": 0,
    "device": "cpu",
    "verbose": False,
}


def rows(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=count)


@pytest.fixture(scope="module")
def model() -> rds.RDeepSenseRegressor:
    return rds.RDeepSenseRegressor(epochs=20, **SETTINGS).fit(*rows(600, 0))


@pytest.fixture(scope="module")
def wide() -> rds.RDeepSenseRegressor:
    X, y = rows(400, 0)
    return rds.RDeepSenseRegressor(epochs=8, **SETTINGS).fit(X, np.c_[y, 100 * y + X[:, 2]])


@pytest.fixture(scope="module")
def sorter() -> rds.RDeepSenseClassifier:
    X, y = rows(600, 0)
    labels = np.array(["low", "mid", "high"])[np.digitize(y, [-0.5, 0.5])]
    return rds.RDeepSenseClassifier(epochs=12, **SETTINGS).fit(X, labels)


def lived(live: rds.Live, X: np.ndarray, y: np.ndarray, every: int = 1) -> list[rds.Prediction]:
    said = []
    for k, (x, truth) in enumerate(zip(X, y, strict=True)):
        said.append(live.predict(x))
        if k % every == 0:
            live.observe(truth)
    return said


def test_first_row_is_nearly_the_models_own(model: rds.RDeepSenseRegressor) -> None:
    X, _ = rows(5, 1)
    said = model.live().predict(X[0])
    own = model.predict_dist(X[:1])
    assert said.ticket == 0
    assert said.status == rds.Status.OK
    assert said.distribution.shape == ()
    assert float(said.distribution.quantile(0.5)) == pytest.approx(
        float(own.quantile(0.5)[0]), rel=1e-12
    )
    assert float(said.distribution.std / own.std[0]) == pytest.approx(np.sqrt(1.24), rel=1e-9)
    low, high = said.distribution.interval(0.9)
    assert said.interval == (pytest.approx(low), pytest.approx(high))


def test_drift_is_followed_and_told(model: rds.RDeepSenseRegressor) -> None:
    X, y = rows(300, 2)
    y = y + 3.0 + X[:, 2]
    live = model.live()
    said = lived(live, X, y)
    errors = [abs(float(p.distribution.quantile(0.5)) - t) for p, t in zip(said, y, strict=True)]
    frozen = np.abs(model.predict_dist(X).quantile(0.5) - y)
    assert np.mean(errors[100:]) < 0.3 * frozen[100:].mean()
    held = [p.interval[0] <= t <= p.interval[1] for p, t in zip(said, y, strict=True)]
    assert 0.85 <= np.mean(held[50:]) <= 0.95
    assert live.drifting
    assert said[-1].status & rds.Status.DRIFTING
    assert not said[0].status & rds.Status.DRIFTING
    assert (live.rows, live.labels) == (300, 300)


def test_misses_obey_the_identity(model: rds.RDeepSenseRegressor) -> None:
    X, y = rows(150, 3)
    y = y * np.linspace(1, 5, 150)
    live = model.live(coverage=0.8)
    said = lived(live, X, y)
    misses = [not p.interval[0] <= t <= p.interval[1] for p, t in zip(said, y, strict=True)]
    last = live.predict(X[0])
    low, high = (float(edge) for edge in last.interval)
    plain = [float(edge) for edge in last.distribution.interval(0.8)]
    q = (high - low) / (plain[1] - plain[0])
    assert np.mean(misses) - 0.2 == pytest.approx(np.log(q) / (0.05 * 150), abs=1e-9)


def test_no_drift_costs_little(model: rds.RDeepSenseRegressor) -> None:
    X, y = rows(200, 4)
    live = model.live()
    said = lived(live, X, y)
    own = np.mean([-p.distribution.log_prob(t) for p, t in zip(said, y, strict=True)])
    assert own - np.mean(-model.predict_dist(X).log_prob(y)) < 0.02
    assert not live.drifting


def test_labels_late_in_any_order_or_never(model: rds.RDeepSenseRegressor) -> None:
    X, y = rows(8, 5)
    live = model.live(pending=4)
    tickets = [live.predict(x).ticket for x in X]
    live.observe(y[6], tickets[6])
    live.observe(y[4], np.int64(tickets[4]))
    live.observe(y[7])
    with pytest.raises(InputError, match="observed already"):
        live.observe(y[7])
    with pytest.raises(InputError, match="observed already"):
        live.observe(y[4], 4)
    with pytest.raises(InputError, match="has expired: .* 4 newer"):
        live.observe(y[3], 3)
    for unknown in (8, -1, "3", 2.0):
        with pytest.raises(InputError, match="is unknown; 8 rows"):
            live.observe(0.0, unknown)
    live.observe(y[5], 5)
    assert live.labels == 4
    with pytest.raises(InputError, match="predict one first"):
        model.live().observe(1.0)


def test_kinds_of_labels(model: rds.RDeepSenseRegressor) -> None:
    X, y = rows(3, 6)
    strict = model.live(labels="all")
    strict.predict(X[0])
    with pytest.raises(InputError, match="label of row 0 has not come"):
        strict.predict(X[1])
    strict.observe(y[0])
    strict.predict(X[1])
    blind = model.live(labels="none")
    blind.predict(X[0])
    with pytest.raises(InputError, match="takes no labels"):
        blind.observe(y[0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, "much", [1.0, 2.0], None, []])
def test_bad_labels_change_nothing(model: rds.RDeepSenseRegressor, bad: object) -> None:
    X, y = rows(2, 7)
    live, other = model.live(), model.live()
    for one in (live, other):
        one.predict(X[0])
    with pytest.raises(InputError, match="y = "):
        live.observe(bad)
    for one in (live, other):
        one.observe(y[0])
    assert live.predict(X[1]) == other.predict(X[1])


@pytest.mark.parametrize("hostile", [1e30, 1e300])
def test_hostile_labels_stay_bounded(model: rds.RDeepSenseRegressor, hostile: float) -> None:
    X, _ = rows(80, 8)
    live = model.live()
    for k, x in enumerate(X):
        live.predict(x)
        live.observe(hostile if k % 3 else -hostile)
    said = live.predict(X[0])
    assert np.isfinite([said.distribution.mean, said.distribution.std, *said.interval]).all()


@pytest.mark.parametrize("x", [[1.0, 2.0], [[1.0, 2.0, 3.0]] * 2, [1.0, np.nan, 0.0], ["a"] * 3])
def test_bad_rows_are_refused(model: rds.RDeepSenseRegressor, x: Any) -> None:
    live = model.live()
    with pytest.raises(InputError):
        live.predict(x)
    assert live.rows == 0


def test_a_row_of_a_table(model: rds.RDeepSenseRegressor) -> None:
    X, y = rows(300, 9)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(d=np.where(X[:, 2] > 0, "x", "y"))
    own = rds.RDeepSenseRegressor(epochs=2, **SETTINGS).fit(table, y)
    live = own.live()
    said = live.predict(table.iloc[:1])
    assert float(said.distribution.mean) == pytest.approx(own.predict(table.iloc[:1])[0])
    with pytest.raises(InputError, match="2 rows"):
        live.predict(table.iloc[:2])


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"coverage": 1.0}, "coverage"),
        ({"forget": 0.0}, "forget"),
        ({"forget": []}, "forget"),
        ({"labels": "few"}, "labels"),
        ({"alarm": 1.5}, "alarm"),
        ({"pending": 0}, "pending"),
    ],
)
def test_bad_arguments(model: rds.RDeepSenseRegressor, given: Any, named: str) -> None:
    with pytest.raises(InputError, match=named):
        model.live(**given)


def test_methods_of_several_passes_are_refused() -> None:
    own = rds.SSPRegressor(members=2, hidden=(4,), epochs=1, random_state=0, verbose=False)
    with pytest.raises(AttributeError):
        own.fit(*rows(60, 0)).live()


def test_alarm_without_labels(model: rds.RDeepSenseRegressor) -> None:
    watched = rds.RDeepSenseRegressor(epochs=2, **SETTINGS).fit(*rows(600, 0))
    watched.fit_novelty(rows(600, 0)[0])
    X, _ = rows(120, 10)
    calm, broken = watched.live(labels="none"), watched.live(labels="none")
    for x in X:
        calm.predict(x)
        broken.predict([x[0], x[1], 2.5])
    assert not calm.drifting
    assert broken.drifting
    quiet = model.live(alarm=False)
    lived(quiet, *(part + 5 for part in rows(50, 0)))
    assert not quiet.drifting


def test_several_outputs(wide: rds.RDeepSenseRegressor) -> None:
    X, y = rows(200, 11)
    Y = np.c_[y + 2, 100 * y + X[:, 2] - 150]
    live = wide.live(forget=(0.03, 0.003))
    said = lived(live, X, Y)
    assert said[0].distribution.shape == (2,)
    assert said[0].interval[0].shape == (2,)
    middles = np.array([p.distribution.quantile(0.5) for p in said])
    frozen = np.abs(wide.predict_dist(X).quantile(0.5) - Y)[50:].mean(0)
    assert (np.abs(middles - Y)[50:].mean(0) < 0.5 * frozen).all()
    held = np.array(
        [(p.interval[0] <= t) & (t <= p.interval[1]) for p, t in zip(said, Y, strict=True)]
    )
    assert (np.abs(held[50:].mean(0) - 0.9) < 0.06).all()


def test_classes(sorter: rds.RDeepSenseClassifier) -> None:
    X, y = rows(300, 12)
    labels = np.array(["low", "mid", "high"])[np.digitize(y + 1.2, [-0.5, 0.5])]
    live = sorter.live()
    said = lived(live, X, labels)
    own = np.array([p.distribution.classes[int(p.distribution.mode)] for p in said])
    frozen = sorter.predict(X)
    assert np.mean(own[100:] == labels[100:]) > np.mean(frozen[100:] == labels[100:]) + 0.1
    order = list(sorter.classes_)
    held = [p.interval[order.index(t)] for p, t in zip(said, labels, strict=True)]
    assert abs(np.mean(held[50:]) - 0.9) < 0.05
    assert live.drifting
    for bad in ("huge", ["low", "mid"], np.nan):
        live.predict(X[0])
        with pytest.raises(InputError):
            live.observe(bad)


@pytest.mark.parametrize("kind", ["model", "wide", "sorter"])
def test_goes_on_from_a_file_to_the_bit(kind: str, request: Any, tmp_path: Any) -> None:
    own = request.getfixturevalue(kind)
    X, y = rows(60, 13)
    Y: Any = {"model": y, "wide": np.c_[y, 90 * y]}.get(kind, np.where(y > 0, "high", "low"))
    live = own.live(pending=8)
    lived(live, X[:30], Y[:30], every=2)
    live.save(tmp_path / "state")
    again = own.live(state=tmp_path / "state")
    for one in (live, again):
        one.observe(Y[29], 29)  # of a row from before
    for x, truth in zip(X[30:], Y[30:], strict=True):
        a, b = live.predict(x), again.predict(x)
        assert a.distribution == b.distribution
        assert np.array_equal(np.array(a.interval), np.array(b.interval))
        assert (a.status, a.ticket) == (b.status, b.ticket)
        live.observe(truth)
        again.observe(truth)


def test_a_loaded_model_goes_on_too(model: rds.RDeepSenseRegressor, tmp_path: Any) -> None:
    X, y = rows(20, 14)
    live = model.live()
    lived(live, X, y)
    live.save(tmp_path / "state")
    model.save(tmp_path / "model")
    again = rds.load(tmp_path / "model").live(state=tmp_path / "state")
    assert again.predict(X[0]).distribution == live.predict(X[0]).distribution


def test_states_belong_to_their_model(
    model: rds.RDeepSenseRegressor, wide: rds.RDeepSenseRegressor, tmp_path: Any
) -> None:
    model.live().save(tmp_path / "state")
    with pytest.raises(ModelFileError, match="another model"):
        wide.live(state=tmp_path / "state")
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="is a model, not a live"):
        model.live(state=tmp_path / "model")
    with pytest.raises(ModelFileError, match="is a live, not a model"):
        rds.load(tmp_path / "state")


def test_recalibrated_spreads_are_those_of_the_distribution() -> None:

    X, y = rows(400, 15)
    own = rds.RDeepSenseRegressor(epochs=3, calibrate="isotonic", **SETTINGS).fit(X, np.exp(y))
    target = Numbers.of(own.fitted_, 0.9, Rates())
    assert target.recalibrated is not None
    dist = own.predict_dist(X[:20])
    assert (dist.base.width * target.recalibrated) == pytest.approx(dist.std, rel=1e-9)
    live = own.live()
    said = lived(live, X[:40], np.exp(y[:40]) + 5)
    assert said[-1].interval[0] < said[-1].distribution.quantile(0.5) < said[-1].interval[1]


def test_an_adapted_model_begins_where_it_was_adapted_to(
    model: rds.RDeepSenseRegressor, tmp_path: Path
) -> None:
    X, y = rows(6, 5)
    mine = model.adapt(X, y + 3)
    apart = mine.predict(X[:1])[0] - model.predict(X[:1])[0]
    first, frozen = (one.live().predict(X[0]).distribution.mean for one in (mine, model))
    assert apart > 0.5
    assert first - frozen == pytest.approx(apart, rel=1e-6)
    mine.live().save(tmp_path / "state")
    with pytest.raises(rds.RDeepSenseError, match="model"):  # it belongs to the adapted one
        model.live(state=tmp_path / "state")
