"""Smoothing of decisions that a fit finds on people whom it left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streaming.sampled_models import CHANNELS, HOP, INTERVAL, RATE, SAMPLES, SENSORS, shaken

import rdeepsense as rds
from rdeepsense.deploy.fold import fold_graph
from rdeepsense.errors import ModelFileError
from rdeepsense.fitting.network_fit import unbroken


@pytest.fixture(scope="module")
def fitted() -> Any:
    """Six people, who change what they do every ten seconds."""
    rng, t = np.random.default_rng(0), np.arange(10 * RATE) / RATE
    parts: list[dict[str, Any]] = []
    for user in range(6):
        for k, activity in enumerate(["rest", "run", "rest", "run"]):
            values = dict(zip(CHANNELS, shaken(rng, t, activity).T, strict=True))
            names = {"user": np.full(len(t), user), "what": np.full(len(t), activity)}
            parts.append({"t": t + 10 * k, **values, **names})
    log = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    cut = rds.windows(
        log, "t", SENSORS, SAMPLES / RATE, HOP / RATE, rate=RATE, by="user", label="what"
    )
    model = rds.RDeepSenseClassifier(
        network=rds.networks.DeepSense((3, 2), INTERVAL, filters=4, hidden=8), epochs=4,
        effort="quick", random_state=0, verbose=False, device="cpu",
    )  # fmt: skip
    return model.fit(cut, cut.y, groups=cut.groups["user"])


@pytest.mark.slow
def test_a_fit_with_groups_finds_it(fitted: Any, tmp_path: Path) -> None:
    found = fitted.fitted_.smoothing
    believed = rds.Smoothing.unseen(fitted.recipe_)
    assert found.change > believed.change  # three changes in forty seconds
    assert found.evidence != believed.evidence
    fitted.save(tmp_path / "m.safetensors")
    loaded = rds.load(tmp_path / "m.safetensors")
    assert loaded.fitted_.smoothing == found
    assert fold_graph(loaded.fitted_).facts.smoothing == found
    assert rds.Stream(loaded).smoothing == found


def test_a_file_that_bends_it_is_refused(fitted: Any, tmp_path: Path) -> None:
    wrong = rds.Smoothing(0.5, 0.5)
    object.__setattr__(wrong, "change", 2.0)
    model = fitted.fitted_
    object.__setattr__(model, "smoothing", wrong)
    with pytest.raises((ModelFileError, rds.InputError), match=r"smoothing\.change = 2\.0"):
        fitted.save(tmp_path / "m.safetensors")


def test_runs_are_broken_where_rows_are_missing() -> None:
    run = np.array([0, 0, 0, 1, 1, 1, 1])
    found = unbroken(np.array([0, 1, 2, 3, 5, 6]), run)
    assert found == [slice(0, 3), slice(3, 4), slice(4, 6)]


def test_windows_know_which_follow_each_other() -> None:
    t = np.concatenate([np.arange(100), 130 + np.arange(60), np.arange(80)]) / 10
    log = {"t": t, "x": np.sin(t), "who": np.repeat(["a", "b"], [160, 80])}
    cut = rds.windows(log, "t", {"s": "x"}, 2.0, 1.0, rate=10, by="who")
    assert [run.stop - run.start for run in cut.runs] == [9, 5, 7]
    assert cut.runs[0].start == 0
    dates = {**log, "t": np.datetime64("2026-01-01") + (1e9 * t).astype("timedelta64[ns]")}
    cut = rds.windows(dates, "t", {"s": "x"}, 2.0, 1.0, rate=10, by="who")
    assert [run.stop - run.start for run in cut.runs] == [9, 5, 7]
