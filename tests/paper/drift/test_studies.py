"""The studies on small simulated tables: what is judged, and on which rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rdeepsense as rds
from rdeepsense.errors import InputError
from rdeepsense.live.replay import WAYS, replay
from rdeepsense.paper import drift
from rdeepsense.paper.drift import (
    DriftTrial,
    People,
    columns,
    digest,
    hapt_recordings,
    pressure_windows,
)


def small(kind: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **given: kind(**{**given, "hidden": (6,), "epochs": 2})


@pytest.mark.slow
def test_gas_is_the_replay_of_later_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    batch = np.repeat([1, 2, 3, 4, 5, 6, 8, 9], 30)
    sensors = rng.normal(1, 0.3, (240, 3))
    table = {"batch": batch, "gas": rng.integers(1, 7, 240)}
    table |= {"ppm": 50 * sensors[:, 0] + 10 * (batch > 6)}
    table |= {f"s0{k + 1}_dr": sensors[:, k] for k in range(3)}
    (tmp_path / "gassen").mkdir()
    pl.DataFrame(table).write_parquet(tmp_path / "gassen" / "uci270_drift.parquet")
    monkeypatch.setattr(drift, "RDeepSenseRegressor", small(rds.RDeepSenseRegressor))
    trial = drift.study_gas(tmp_path, 3)
    found = {(score.way, score.labels): score.figures for score in trial.scores}
    both = [(way, words) for words in ("all", "1 in 10") for way in WAYS]
    assert list(found) == [*both, ("live", "none")]

    read = drift.Gas.read(tmp_path)
    model, X = read.fit((1, 2, 3, 4, 5, 6), 3)
    rows = read.stream((8, 9), 3)
    assert sorted(rows[:30]) == list(range(180, 210))
    error = np.abs(model.predict_dist(X[rows]).quantile(0.5) - read.y[rows])
    assert found["frozen", "all"]["error"] == pytest.approx(error.mean())
    assert trial.stream is not None
    drawn = trial.stream.replayed()
    np.testing.assert_allclose(drawn.ways["frozen"].error, error)
    assert np.flatnonzero(drawn.observed).tolist() == list(range(0, 60, 10))
    assert drawn.ways["live"].figures()["nll"] == found["live", "1 in 10"]["nll"]
    again = DriftTrial.from_json(trial.to_json())
    assert again.scores == trial.scores
    assert again.stream is not None
    assert again.stream.to_json() == trial.stream.to_json()


def test_people_are_judged_on_rows_that_no_number_of_labels_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(drift, "RDeepSenseRegressor", small(rds.RDeepSenseRegressor))
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(12), 15)
    X = rng.normal(size=(180, 2)).astype(np.float32)
    y = (X[:, 0] + 3 * rng.normal(size=12)[group] + 0.1 * rng.normal(size=180)).astype(np.float32)
    first = lambda y, count: np.arange(len(y)) < count  # noqa: E731
    people = People(X, y, group, group, X, y, group, (0, 4), first, 3, 2, 0.1, "first {}")
    trial = drift.study(people, 0)
    found = {(score.way, score.labels): score.figures for score in trial.scores}
    assert list(found) == [
        ("frozen", "none"), ("adapted", "first 4"), *((w, "1 in 10") for w in WAYS)
    ]  # fmt: skip
    units = np.random.default_rng(0).permutation(12)
    model = drift.model_for(people, units[:-3], 0)
    test = np.isin(group, units[-3:])
    rest = test & (np.arange(180) % 15 >= 4)
    mae = np.abs(model.predict_dist(X[rest]).mean - y[rest]).mean()
    assert found["frozen", "none"]["error"] == pytest.approx(mae)
    assert found["adapted", "first 4"]["error"] < 0.7 * mae
    pooled = [
        replay(model, X[group == one], y[group == one], 10).ways["live"].nll
        for one in np.unique(units[-3:])
    ]
    live = found["live", "1 in 10"]
    assert live["nll"] == pytest.approx(np.concatenate(pooled).mean())


def test_files(tmp_path: Path) -> None:
    for name in ("har", "bpest"):
        (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=r"hapt\.parquet: there is no such file"):
        hapt_recordings(tmp_path)
    with pytest.raises(InputError, match=r"there is no har/hapt\.parquet"):
        digest(tmp_path, ("har/hapt.parquet",))
    (tmp_path / "har" / "hapt.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match="cannot be read"):
        columns(tmp_path / "har" / "hapt.parquet")
    table = {"user": [1, 1, 2], "experiment": [1, 1, 1], "segment": [1, 1, 1], "label": [0, 0, 5]}
    table |= {f"{kind}{axis}": [720, 0, -720] for kind in "ag" for axis in "xyz"}
    pl.DataFrame(table).write_parquet(tmp_path / "har" / "hapt.parquet")
    signal, recordings, _ = hapt_recordings(tmp_path)
    assert signal[:, 0].tolist() == [1.0, 0.0, -1.0]
    assert [part.tolist() for part in recordings] == [[0, 1], [2]]
    ones = {name: np.ones(500, np.int16) for name in ("ppg_diff", "abp_diff")}
    pl.DataFrame(ones).write_parquet(tmp_path / "bpest" / "waves.parquet")
    about = {"record": [7, 8], "abp_gain": [0.5, 2.0]}
    pl.DataFrame(about).write_parquet(tmp_path / "bpest" / "windows.parquet")
    ppg, pressure, record = pressure_windows(tmp_path)
    assert ppg[1, -1] == pytest.approx(250 / 1023)
    assert pressure[:, 9].tolist() == [5.0, 20.0]
    assert record.tolist() == [7, 8]
