"""Live models: threads, absurd labels, masked values, and rows as people have them."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import rdeepsense as rds

SETTINGS: dict[str, Any] = {
    "effort": "quick",
    "hidden": (16,),
    "epochs": 15,
    "random_state": 0,
    "device": "cpu",
    "verbose": False,
}


def rows(count: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3))
    return X, 20 + 3 * X[:, 0] + rng.normal(size=count)


@pytest.fixture
def model(fitted: Callable[..., Any]) -> Any:
    return fitted(rds.RDeepSenseRegressor(**SETTINGS), *rows(400))


@pytest.fixture
def named(fitted: Callable[..., Any]) -> Any:
    X, y = rows(400)
    return fitted(rds.RDeepSenseRegressor(**SETTINGS), pd.DataFrame(X, columns=["a", "b", "c"]), y)


def width(live: Any) -> float:
    low, high = copy.deepcopy(live).predict([0.0, 0.0, 0.0]).interval
    return float(high - low)


def test_threads_share_a_live_model(model: Any) -> None:
    live = model.live()
    tickets: list[int] = []
    failed: list[BaseException] = []
    start = threading.Barrier(4)

    def work(seed: int) -> None:
        X, y = rows(60, seed)
        start.wait()
        try:
            for x, truth in zip(X, y, strict=True):
                said = live.predict(x)
                tickets.append(said.ticket)
                live.observe(truth, said.ticket)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(tickets) == list(range(240))
    assert (live.rows, live.labels) == (240, 240)


def test_a_live_model_is_copied(model: Any) -> None:
    live = model.live()
    live.predict([0.0, 1.0, 2.0])
    assert copy.deepcopy(live).rows == 1
    assert copy.copy(live).predict([0.0, 1.0, 2.0]).ticket == 1
    assert live.rows == 1


def test_absurd_labels_are_set_aside(model: Any, tmp_path: Path) -> None:
    X, y = rows(400, 1)
    live = model.live()
    for x, truth in zip(X[:40], y[:40], strict=True):
        live.predict(x)
        live.observe(truth)
    before, learnt = width(live), live.labels
    for k in range(700):
        live.predict(X[k % 400])
        live.observe([1e30, -9999.0, 1e300][k % 3])
    assert (live.labels, live.set_aside) == (learnt, 700)
    assert width(live) == before
    assert live.drifting
    live.save(tmp_path / "state")
    again = model.live(state=tmp_path / "state")
    assert (again.labels, again.set_aside) == (learnt, 700)


def test_drift_of_many_standard_deviations_is_learnt(model: Any) -> None:
    X, y = rows(300, 2)
    live = model.live()
    errors = []
    for x, truth in zip(X, y + 60, strict=True):  # 20 times the spread of the targets
        errors.append(abs(float(live.predict(x).distribution.mean) - truth))
        live.observe(truth)
    assert live.set_aside == 0
    assert np.mean(errors[-50:]) < 0.3 * errors[0]


MASKED: Any = np.ma.masked


@pytest.mark.parametrize(
    "label",
    [
        MASKED,
        np.ma.array([3.0], mask=[True]),
        np.datetime64("2024-01-01"),
        np.datetime64("NaT"),
        np.timedelta64(3, "s"),
        pd.NaT,
        pd.NA,
        np.void(b"12345678"),
        10**400,
    ],
    ids=repr,
)
def test_labels_that_are_no_numbers_are_refused(model: Any, label: Any) -> None:
    live = model.live()
    live.predict([0.0, 0.0, 0.0])
    with pytest.raises(rds.InputError, match="^y"):
        live.observe(label)
    assert live.labels == 0
    live.observe(np.ma.array([20.0], mask=[False]))
    assert live.labels == 1


def test_masked_values_are_missing(model: Any) -> None:
    X, y = rows(100)
    hidden = np.ma.array(X, mask=np.arange(300).reshape(100, 3) == 4)
    with pytest.raises(rds.InputError, match="row 1, column 1"):
        model.predict(hidden)
    with pytest.raises(rds.InputError, match="NaN"):
        model.live().predict(hidden[1])
    np.testing.assert_array_equal(model.predict(hidden[5:]), model.predict(X[5:]))
    masked = np.ma.array(np.where(np.arange(100) == 7, 1e20, y), mask=np.arange(100) == 7)
    with pytest.raises(rds.InputError, match="NaN in row 7"):
        rds.RDeepSenseRegressor(**SETTINGS).fit(X, masked)
    label = np.ma.array((y > 20).astype(int), mask=np.arange(100) == 7)
    with pytest.raises(rds.InputError, match="no value in row 7"):
        rds.RDeepSenseClassifier(**SETTINGS).fit(X, label)
    filled = rds.RDeepSenseRegressor(**SETTINGS).fit(hidden, y)
    assert filled.fitted_.guard.missing.tolist() == [0, 1, 0]


@pytest.mark.parametrize("kind", ["dict", "Series", "frame", "polars"])
def test_a_row_by_name(named: Any, kind: str) -> None:
    wanted = named.live().predict([0.5, -1.0, 2.0]).distribution.mean
    row = {"c": 2.0, "a": 0.5, "b": -1.0}
    given: Any = {
        "dict": lambda: row,
        "Series": lambda: pd.Series(row),
        "frame": lambda: pd.DataFrame([row])[["a", "b", "c"]],
        "polars": lambda: pl.DataFrame([row]).select("a", "b", "c"),
    }[kind]()
    assert named.live().predict(given).distribution.mean == wanted


def test_a_row_by_other_names_is_refused(named: Any, model: Any) -> None:
    with pytest.raises(rds.InputError, match="x lacks 'c' and has 'd', .*; the inputs are a, b, c"):
        named.live().predict({"a": 1.0, "b": 2.0, "d": 3.0})
    with pytest.raises(rds.InputError, match="x has 'd', which is no input"):
        named.live().predict({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0})
    with pytest.raises(rds.InputError, match="does not know the names of its inputs"):
        model.live().predict({"a": 1.0, "b": 2.0, "c": 3.0})
    for values in (pd.Series([0.5, -1.0, 2.0]), pl.Series([0.5, -1.0, 2.0])):
        assert model.live().predict(values).ticket == 0
