"""Estimators on windows (rows, time, channels): DeepSense, and networks of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor, nn

import rdeepsense as rds
from rdeepsense.data.scaling import Scaler
from rdeepsense.fitting.trainer import default_learning_rate

SPEC = rds.networks.DeepSense(sensors=(2, 1), interval=8, filters=8, depth=1, hidden=12, layers=1)
SMALL: dict[str, Any] = {"verbose": False, "random_state": 0, "device": "cpu"}


def tones(rows: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Noisy windows of 32 samples, three channels of different units; y is the frequency."""
    rng = np.random.default_rng(seed)
    frequency = rng.choice([1.0, 2.0], rows)
    phase, time = rng.uniform(0, 2 * np.pi, (rows, 1)), np.arange(32) / 8
    wave = np.sin(2 * np.pi * frequency[:, None] * time + phase)
    X = rng.normal(0, 0.5, (rows, 32, 3))
    X[..., 1] += wave
    return X * [1.0, 100.0, 1e-3] + [5.0, -1000.0, 0.0], frequency


class Mine(nn.Module):
    """Windows go in as they are: (rows, time, channels)."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.look = nn.Conv1d(3, 8, 8, stride=4)
        self.turn = nn.LSTM(8, 8, batch_first=True, bidirectional=True)
        self.last = nn.Linear(16, outputs)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.look(x.transpose(1, 2))).transpose(1, 2)
        return self.last(self.turn(h)[0].mean(1))


@pytest.fixture(scope="module")
def classifier() -> rds.RDeepSenseClassifier:
    X, y = tones(400, 0)
    model = rds.RDeepSenseClassifier(
        network=SPEC, drop_prob=0.1, epochs=12, **SMALL, effort="quick"
    )
    return model.fit(X, np.array(["low", "high"])[(y > 1.5).astype(int)])


def test_deepsense_learns_and_knows(classifier: rds.RDeepSenseClassifier) -> None:
    X, y = tones(300, 1)
    truth = np.array(["low", "high"])[(y > 1.5).astype(int)]
    assert np.mean(classifier.predict(X) == truth) > 0.95
    assert classifier.n_features_in_ == 3
    assert classifier.fitted_.inputs.shape == (32, 3)
    assert classifier.fitted_.inputs.scaler.shift.shape == (3,)
    history = classifier.training_["history"]
    assert history[-1][0] < history[0][0]
    many = classifier.predict_dist(X, samples=20)
    assert many.mean.shape == (300, 2)
    assert np.mean(classifier.classes_[many.mode] == truth) > 0.95
    assert not np.array_equal(many.mean, classifier.predict_proba(X))
    assert np.array_equal(many.mean, classifier.predict_dist(X, samples=20).mean)


def test_rows_do_not_depend_on_their_batch(classifier: rds.RDeepSenseClassifier) -> None:
    X, _ = tones(50, 2)
    one = np.concatenate([classifier.predict_proba(X[k : k + 1]) for k in range(50)])
    np.testing.assert_allclose(classifier.predict_proba(X), one, atol=1e-12)


def test_a_file_needs_no_network(classifier: rds.RDeepSenseClassifier, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    classifier.save(path)
    again = rds.load(path)
    X, _ = tones(50, 2)
    assert np.array_equal(again.predict_proba(X), classifier.predict_proba(X))
    assert np.array_equal(
        again.predict_dist(X, samples=5).mean, classifier.predict_dist(X, samples=5).mean
    )
    assert again.network == SPEC
    assert again.fitted_.inputs.shape == (32, 3)
    assert again.fitted_.kept_rows[0].shape[1:] == (32, 3)
    with pytest.raises(rds.InputError, match="leave out network="):
        rds.load(path, network=SPEC.build((48, 6), 2, 0))


def test_regression_with_a_network_of_ones_own(tmp_path: Path) -> None:
    X, y = tones(400, 0)
    y = np.stack([y, X[:, :, 1].std(1)], 1)
    options: dict[str, Any] = {"epochs": 10, "batch_size": 32, "learning_rate": 1e-2, **SMALL}
    model = rds.RDeepSenseRegressor(network=Mine(2), **options, effort="quick").fit(X, y)
    X_new, y_new = tones(200, 1)
    mean, std = model.predict(X_new, return_std=True)
    assert np.sqrt(np.mean((mean[:, 0] - y_new) ** 2)) < 0.5 * y_new.std()
    assert (std > 0).all()
    model.save(tmp_path / "m.safetensors")
    again = rds.load(tmp_path / "m.safetensors", network=Mine(2))
    assert np.array_equal(again.predict(X_new), mean)
    with pytest.raises(rds.InputError, match="a network of your own .Mine."):
        rds.load(tmp_path / "m.safetensors")


def test_deepsense_for_regression_by_groups_and_with_members() -> None:
    X, y = tones(80, 0)
    groups = np.arange(80) // 8
    options: dict[str, Any] = {"network": SPEC, "epochs": 1, **SMALL}
    model = rds.RDeepSenseRegressor(**options, effort="quick").fit(X, y, groups=groups)
    assert model.predict_dist(X).mean.shape == (80,)
    model.fit(X, y, validation=tones(20, 1))
    ensemble = rds.SSPRegressor(members=2, **options).fit(X, y)
    first, second = (network.body.output.weight for network in ensemble.fitted_.networks.members)
    assert not torch.equal(first, second)
    assert rds.MCDropRegressor(**options).fit(X, y).predict_dist(X[:5]).std.shape == (5,)


def test_flattened_windows_are_accepted() -> None:
    X, y = tones(80, 0)
    model = rds.RDeepSenseRegressor(network=SPEC, epochs=1, **SMALL, effort="quick").fit(
        X.reshape(80, -1), y
    )
    assert model.n_features_in_ == 96
    assert model.predict(X.reshape(80, -1)).shape == (80,)


def test_a_spec_is_an_argument_like_others() -> None:
    model = rds.RDeepSenseClassifier(network=SPEC, effort="quick")
    copied = clone(model)
    assert copied.get_params()["network"] == SPEC
    assert copied.set_params(network=None).network is None
    assert "DeepSense" in repr(model)


def test_missing_values() -> None:
    X, y = tones(80, 0)
    X[3, 4, 2] = np.nan
    X[7, 0, 1] = np.nan
    model = rds.RDeepSenseRegressor(
        network=SPEC, epochs=1, missing="refuse", **SMALL, effort="quick"
    )
    with pytest.raises(
        rds.InputError, match="2 of 80 rows, first NaN in row 3, time 4, channel 2.*channel's mean"
    ):
        model.fit(X, y)
    model.set_params(missing="auto").fit(X, y)
    assert model.fitted_.inputs.missing == "mean"
    filled = np.where(np.isnan(X), model.fitted_.inputs.scaler.shift, X)
    np.testing.assert_allclose(model.predict(X), model.predict(filled), rtol=1e-12)
    X[:, :, 0] = np.nan
    with pytest.raises(rds.InputError, match="channel 0 of X has no value at all"):
        model.fit(X, y)
    X[5, 6, 0] = np.inf
    with pytest.raises(rds.InputError, match="first infinity in row 5, time 6, channel 0"):
        model.fit(X, y)


def test_shapes_that_do_not_fit_are_refused(classifier: rds.RDeepSenseClassifier) -> None:
    X, y = tones(40, 0)
    for wrong in (X[:, :24], X[..., :2], X[:, 0], X.reshape(40, -1)):
        with pytest.raises(rds.InputError, match=r"shape .*; the model was fitted.* \(32, 3\)"):
            classifier.predict(wrong)
    with pytest.raises(rds.InputError, match=r"X has 3 axes.*need network=.*DeepSense"):
        rds.RDeepSenseRegressor(**SMALL, effort="quick").fit(X, y)
    with pytest.raises(rds.InputError, match=r"\(30, 3\).*multiple of interval = 8"):
        rds.RDeepSenseRegressor(network=SPEC, **SMALL, effort="quick").fit(X[:, :30], y)
    with pytest.raises(ValueError, match="Found array with dim 4"):
        rds.RDeepSenseRegressor(network=SPEC, **SMALL, effort="quick").fit(X[..., None], y)
    with pytest.raises(rds.InputError, match="nn.Module or one of .*: Dense, DeepSense"):
        rds.RDeepSenseRegressor(network=rds.networks.DeepSense, **SMALL, effort="quick").fit(X, y)


def test_channels_are_scaled_over_all_times() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal([1.0, 50.0], [2.0, 0.1], (300, 7, 2)).astype(np.float32)
    index, weight = np.arange(250), rng.uniform(0, 2, 250)
    scaler = Scaler.standard(values, index, weight)
    flat, repeated = values[:250].reshape(-1, 2), np.repeat(weight, 7)
    np.testing.assert_allclose(scaler.shift, np.average(flat, 0, repeated), rtol=1e-5)
    var = np.average((flat - scaler.shift) ** 2, 0, repeated)
    np.testing.assert_allclose(scaler.scale, np.sqrt(var), rtol=1e-5)
    assert scaler.transform(values).shape == (300, 7, 2)


def test_learning_rates() -> None:
    assert default_learning_rate(SPEC.build((48, 6), 2, 0)) == 2e-3
    assert default_learning_rate(nn.Sequential(nn.Linear(4, 500), nn.Linear(500, 1))) == 1e-3
