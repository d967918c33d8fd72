"""The choice of a network for windows: what is offered, and whole fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rdeepsense as rds
from rdeepsense.fitting import ladder, search
from rdeepsense.fitting.ladder import interval_for, rotated, sensors_of
from rdeepsense.networks import DeepSense, Dense, Flattened

AUTO: dict[str, Any] = {
    "hidden": "auto",
    "epochs": 5,
    "batch_size": 80,
    "learning_rate": 5e-3,
    "random_state": 0,
    "verbose": False,
    "device": "cpu",
}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "SIZES", ((6, 12), (12, 16), (64, 128)))


def tones(rows: int, seed: int, channels: int = 3) -> tuple[Any, Any]:
    """Noisy windows whose frequency is the class, at any phase."""
    rng = np.random.default_rng(seed)
    label = rng.integers(2, size=rows)
    turns = np.outer(np.array([1, 3])[label], np.arange(24) / 12) + rng.uniform(size=(rows, 1))
    X = rng.normal(0, 0.4, (rows, 24, channels))
    X[..., 1] += np.sin(2 * np.pi * turns)
    return X, label


def levels(rows: int, seed: int) -> tuple[Any, Any]:
    """Noisy windows whose mean is the class."""
    rng = np.random.default_rng(seed)
    label = rng.integers(2, size=rows)
    return rng.normal(label[:, None, None] - 0.5, 1.5, (rows, 24, 3)), label


@pytest.mark.parametrize(
    ("length", "interval"),
    [(240, 12), (128, 16), (100, 10), (64, 16), (8, 8), (34, 17), (136, 8), (31, 31), (25, 25),
     (20, 10), (7, None), (1, None), (97, None), (134, None)],
)  # fmt: skip
def test_intervals_divide_the_window(length: int, interval: int | None) -> None:
    assert interval_for(length) == interval


def test_what_is_offered() -> None:
    assert sensors_of(6) == (3, 3)
    assert sensors_of(3) == (3,)
    assert sensors_of(4) == (4,)
    plain = Flattened((64, 64))
    few = ladder.window_ladder(200, (240, 6))
    assert few == (
        plain,
        DeepSense((3, 3), 12, filters=16, hidden=32),
        DeepSense((3, 3), 12, filters=32, hidden=64),
    )
    many = ladder.window_ladder(3_000, (240, 6))
    assert many == (*few, DeepSense((3, 3), 12, filters=64, hidden=128))
    assert ladder.window_ladder(199, (240, 6)) == (plain,)
    assert ladder.window_ladder(3_000, (7, 6)) == (plain,)
    assert rotated(few[1]) == (DeepSense((3, 3), 12, filters=16, hidden=32, rotation_std=0.3),)
    assert rotated(DeepSense((4,))) == rotated(plain) == ()


@pytest.mark.slow
def test_a_frequency_is_for_deepsense(tiny: None, tmp_path: Path) -> None:
    X, y = tones(400, 0)
    options = {**AUTO, "drop_prob": "auto", "alpha": "auto"}
    model = rds.RDeepSenseClassifier(**options).fit(X, y)
    chosen = model.fitted_.networks.architecture
    assert isinstance(chosen, DeepSense)
    assert (chosen.sensors, chosen.interval) == ((3,), 12)
    X_new, y_new = tones(300, 1)
    assert np.mean(model.predict(X_new) == y_new) > 0.95
    selection = model.selection_
    assert selection["how"] == "validation rows"  # folds of such networks would be dear
    told = selection["architectures"]
    assert [one["name"] for one in told] == ["Flattened", *["DeepSense"] * 3]
    assert [one["arguments"].get("rotation_std") for one in told] == [None, 0.0, 0.0, 0.3]
    # The chosen size alone is tried with rotation, and that is decided by the NLL.
    without = next(one for one in told[1:3] if one["parameters"] == told[3]["parameters"])
    assert told[3]["chosen"] == (told[3]["nll"] < without["nll"]) == (chosen.rotation_std == 0.3)
    assert [one["chosen"] for one in told].count(True) == 1
    # Head and knobs are chosen around it: three drop probabilities and the other alpha.
    assert 3 <= len(selection["trials"]) <= 4
    model.save(tmp_path / "m")
    loaded = rds.load(tmp_path / "m")
    assert loaded.selection_ == selection
    assert (loaded.hidden, loaded.network) == ("auto", None)
    np.testing.assert_array_equal(loaded.predict_proba(X_new), model.predict_proba(X_new))


@pytest.mark.slow
def test_equal_seeds_give_equal_bits(tiny: None) -> None:
    X, y = tones(220, 0)
    options = {**AUTO, "epochs": 2, "drop_prob": "auto"}
    first, second = (rds.RDeepSenseClassifier(**options).fit(X, y) for _ in range(2))
    assert first.selection_ == second.selection_
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))


def worn(rows: int, seed: int, angle: float) -> tuple[Any, Any]:
    """Windows whose class is how strong a pull along x is; y tells, too, until it is turned."""
    rng = np.random.default_rng(seed)
    label = rng.integers(2, size=rows)
    pull = 1.0 + 0.5 * label + rng.normal(0, 0.1, rows)
    X = rng.normal(0, 0.05, (rows, 24, 3))
    turn = angle * rng.normal(size=rows)
    side = 0.05 * (2 * label - 1)
    X[..., 0] += (pull * np.cos(turn) - side * np.sin(turn))[:, None]
    X[..., 1] += (pull * np.sin(turn) + side * np.cos(turn))[:, None]
    return X, label


def test_a_rotation_that_helps_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "SIZES", ((6, 12), (64, 128)))
    monkeypatch.setattr(ladder, "PLAINEST", DeepSense((3,), 12, 6, hidden=11))
    model = rds.RDeepSenseClassifier(**AUTO, drop_prob=0.0)
    model.fit(*worn(400, 0, 0.0), validation=worn(200, 1, 0.3))
    told = model.selection_["architectures"]
    assert [one["arguments"]["rotation_std"] for one in told] == [0.0, 0.0, 0.3]
    assert told[2]["nll"] < min(one["nll"] for one in told[:2]) - 0.05
    assert [one["chosen"] for one in told] == [False, False, True]
    assert model.fitted_.networks.architecture.rotation_std == 0.3


def test_a_mean_is_for_the_plainest(tiny: None, tmp_path: Path) -> None:
    X, y = levels(400, 0)
    model = rds.RDeepSenseClassifier(**AUTO).fit(X, y)
    assert model.fitted_.networks.architecture == Flattened((64, 64))
    assert not any(
        one["arguments"].get("rotation_std") for one in model.selection_["architectures"]
    )
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(rds.load(tmp_path / "m").predict(X), model.predict(X))
    rds.export(model, tmp_path / "f")
    found = rds.deploy.load(tmp_path / "f").predict_proba(X)
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-9)


def test_numbers_may_be_the_target_too(tiny: None) -> None:
    X, y = tones(300, 0, channels=4)
    target = y + 0.1 * np.random.default_rng(0).normal(size=300)
    model = rds.RDeepSenseRegressor(**{**AUTO, "epochs": 2}, likelihood="auto").fit(X, target)
    told = model.selection_["architectures"]
    assert [one["arguments"].get("sensors") for one in told] == [None, [4], [4]]
    assert model.epistemic_std(X[:5]).shape == (5,)


@pytest.mark.parametrize("length", [1, 7])
def test_short_windows_have_dense_layers(length: int) -> None:
    X, y = levels(220, 0)
    options = {**AUTO, "drop_prob": "auto", "epochs": 1}
    model = rds.RDeepSenseClassifier(**options).fit(X[:, :length], y)
    assert model.fitted_.networks.architecture == Flattened((64, 64))
    assert model.selection_["how"] == "5-fold cross-validation"


def test_what_is_given_stays(tiny: None) -> None:
    X, y = tones(100, 0)
    given = DeepSense((3,), 8, filters=4, hidden=6, depth=1, layers=1)
    options = {**AUTO, "epochs": 1}
    model = rds.RDeepSenseClassifier(network=given, alpha="auto", **options).fit(X, y)
    assert model.fitted_.networks.architecture == given
    assert "architectures" not in model.selection_
    flat = rds.RDeepSenseClassifier(**options).fit(X.reshape(100, -1), y)
    assert flat.fitted_.networks.architecture == Dense((64, 64))
    with pytest.raises(rds.InputError, match=r"shape \(72,\); Flattened takes windows"):
        rds.RDeepSenseClassifier(network=Flattened(), **options).fit(X.reshape(100, -1), y)


def test_no_time_is_the_plainest(tiny: None, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = tones(220, 0)
    model = rds.RDeepSenseClassifier(**{**AUTO, "epochs": 1}, max_seconds=0).fit(X, y)
    assert [one["name"] for one in model.selection_["architectures"]] == ["Flattened"]
    # And no rotation, where time is over by then.
    monkeypatch.setattr(search, "rotated", lambda architecture: (architecture,))
    model.fit(X, y)
    assert len(model.selection_["architectures"]) == 1
