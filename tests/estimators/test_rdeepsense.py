"""The estimators: shapes, tables, labels, weights, seeds, Monte Carlo, networks of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import rdeepsense as rds
from rdeepsense import RDeepSenseClassifier, RDeepSenseRegressor, metrics
from rdeepsense.datasets import simulate

TASK = simulate(400, seed=0)
TWO = np.column_stack([TASK.y, 1e-3 * TASK.X[:, 0] + 1e-4 * TASK.X[:, 1] ** 2])
LABELS = np.array(["low", "middle", "high"])[np.digitize(TASK.y, [40.0, 60.0])]


def regressor(**options: Any) -> RDeepSenseRegressor:
    settings = {"hidden": (16,), "epochs": 40, "random_state": 0, "device": "cpu"}
    return RDeepSenseRegressor(**{**settings, "likelihood": "gaussian", **options}, effort="quick")


def classifier(**options: Any) -> RDeepSenseClassifier:
    settings = {"hidden": (16,), "epochs": 40, "random_state": 0, "device": "cpu", **options}
    return RDeepSenseClassifier(**settings, effort="quick")


@pytest.mark.parametrize("likelihood", ["gaussian", "student"])
@pytest.mark.parametrize("y", [TASK.y, TWO], ids=["one output", "two outputs"])
def test_shapes_follow_y(y: NDArray[np.float64], likelihood: str) -> None:
    model = regressor(likelihood=likelihood).fit(TASK.X, y)
    mean, std = model.predict(TASK.X[:7], return_std=True)
    assert mean.shape == std.shape == y[:7].shape
    low, high = model.predict_interval(TASK.X[:7], coverage=0.8)
    assert (low < mean).all()
    assert (mean < high).all()
    wider = model.predict_interval(TASK.X[:7], coverage=0.95)
    assert (wider[0] < low).all()
    assert (wider[1] > high).all()
    assert isinstance(
        model.predict_dist(TASK.X), rds.Gaussian if likelihood == "gaussian" else rds.StudentT
    )
    assert model.score(TASK.X, y) > 0.5


def test_outputs_of_very_different_units_are_both_learnt() -> None:
    model = regressor(epochs=150).fit(TASK.X, TWO)
    error = np.abs(model.predict(TASK.X) - TWO).mean(0) / TWO.std(0)
    assert (error < 0.45).all()


def test_units_do_not_matter() -> None:
    """Undoing the standardisation multiplies the variance by the squared scale."""
    # Given validation rows leave the training rows in the order of the table.
    plain = regressor().fit(TASK.X, TASK.y, validation=(TASK.X, TASK.y)).predict_dist(TASK.X)
    X, y = 128 * TASK.X, 1024 * TASK.y - 4096
    other = regressor().fit(X, y, validation=(X, y)).predict_dist(X)
    np.testing.assert_allclose(other.mean, 1024 * plain.mean - 4096, rtol=1e-3)
    np.testing.assert_allclose(other.std, 1024 * plain.std, rtol=1e-3)
    shift = metrics.nll(other, y) - metrics.nll(plain, TASK.y)
    assert shift == pytest.approx(np.log(1024), abs=1e-3)


def test_string_labels_and_probabilities() -> None:
    model = classifier().fit(TASK.X, LABELS)
    assert model.classes_.tolist() == ["high", "low", "middle"]
    assert set(model.predict(TASK.X)) <= set(LABELS)
    proba = model.predict_proba(TASK.X)
    np.testing.assert_allclose(proba.sum(1), 1.0)
    assert np.array_equal(model.predict(TASK.X), model.classes_[proba.argmax(1)])
    assert model.score(TASK.X, LABELS) > 0.6
    assert isinstance(model.predict_dist(TASK.X), rds.Categorical)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_feature_names_are_kept_and_checked(frame: Any, fitted: Any) -> None:
    names = ["ppg", "ecg", "temp", "hum"]
    table = frame(dict(zip(names, TASK.X.T, strict=True)))
    model = regressor().fit(table, TASK.y)
    assert model.feature_names_in_.tolist() == names
    plain = fitted(regressor(), TASK.X, TASK.y)
    np.testing.assert_array_equal(model.predict(table), plain.predict(TASK.X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame(dict(zip(["a", *names[1:]], TASK.X.T, strict=True))))


def test_targets_may_be_series(fitted: Any) -> None:
    expected = fitted(regressor(), TASK.X, TASK.y).predict(TASK.X)
    for y in (pd.Series(TASK.y), pl.Series(TASK.y), TASK.y.tolist()):
        np.testing.assert_array_equal(regressor().fit(TASK.X, y).predict(TASK.X), expected)


def test_same_seed_same_bits_other_seed_other_network() -> None:
    a, b, c = (regressor(random_state=s).fit(TASK.X, TASK.y).predict(TASK.X) for s in (1, 1, 2))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


def test_the_order_of_rows_does_not_matter(fitted: Any) -> None:
    order = np.random.default_rng(0).permutation(400)
    a = fitted(regressor(), TASK.X, TASK.y).predict(TASK.X)
    b = regressor().fit(TASK.X[order], TASK.y[order]).predict(TASK.X)
    assert np.array_equal(a, b)


def test_a_weight_is_a_repetition() -> None:
    weight = np.random.default_rng(0).integers(0, 4, 400)
    weighted = regressor().fit(TASK.X, TASK.y, sample_weight=weight)
    repeated = regressor().fit(np.repeat(TASK.X, weight, 0), np.repeat(TASK.y, weight))
    assert np.array_equal(weighted.predict(TASK.X), repeated.predict(TASK.X))


def test_a_row_does_not_depend_on_its_batch(fitted: Any) -> None:
    model = fitted(regressor(), TASK.X, TASK.y)
    alone = np.array([model.predict(row[None])[0] for row in TASK.X[:20]])
    np.testing.assert_allclose(alone, model.predict(TASK.X)[:20], rtol=1e-12)


def test_monte_carlo_is_the_moment_matched_mixture_of_passes() -> None:
    model = regressor(drop_prob=0.3, calibrate=False).fit(TASK.X, TASK.y)
    k, X = 3, TASK.X[:5]
    got = model.predict_dist(X, samples=k)
    network = model.network_.double()
    x = torch.from_numpy(
        (X - model.fitted_.inputs.scaler.shift) / model.fitted_.inputs.scaler.scale
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad(), network.sampling():
        torch.manual_seed(model.training_["seed"])
        params = network(x.repeat(k, 1))
    means, variances = (t.view(k, 5).numpy() for t in params)
    scale, shift = model.fitted_.target_scaler.scale, model.fitted_.target_scaler.shift
    np.testing.assert_allclose(got.mean, means.mean(0) * scale + shift, rtol=1e-6)
    expected = variances.mean(0) + means.var(0, ddof=0)
    np.testing.assert_allclose(got.var, expected * scale**2, rtol=1e-6)


def test_monte_carlo_with_no_dropout_is_the_single_pass_and_repeats_itself() -> None:
    still = regressor(drop_prob=0.0).fit(TASK.X, TASK.y)
    np.testing.assert_allclose(
        still.predict_dist(TASK.X, samples=4).std, still.predict_dist(TASK.X).std, rtol=1e-9
    )
    model = classifier(drop_prob=0.3).fit(TASK.X, LABELS)
    a, b = (model.predict_dist(TASK.X, samples=5) for _ in range(2))
    assert a == b
    assert a != model.predict_dist(TASK.X)


class OwnNetwork(nn.Module):
    """Two branches, a skip, layers registered out of order: nothing a Sequential could do."""

    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.out = nn.Linear(16, outputs)
        self.fast, self.slow = nn.Linear(2, 8), nn.Linear(2, 8)
        self.norm = nn.LayerNorm(16)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.cat([torch.relu(self.fast(x[:, :2])), torch.tanh(self.slow(x[:, 2:]))], 1)
        return self.out(self.norm(h))


def test_a_network_of_ones_own_trains_through_the_same_estimators() -> None:
    torch.manual_seed(0)
    network = OwnNetwork()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    model = regressor(network=network, epochs=150).fit(TASK.X, TASK.y)
    assert model.score(TASK.X, TASK.y) > 0.6
    assert all(torch.equal(before[n], v) for n, v in network.state_dict().items())
    labels = classifier(network=OwnNetwork(3), epochs=150).fit(TASK.X, LABELS)
    assert labels.score(TASK.X, LABELS) > 0.6


def test_a_network_that_does_not_fit_the_targets_is_refused() -> None:
    with pytest.raises(rds.InputError, match="last layer has 2 outputs, the targets need 1"):
        regressor(network=OwnNetwork(2)).fit(TASK.X, TASK.y)
    with pytest.raises(rds.InputError, match="network is a str, not a torch"):
        regressor(network="resnet").fit(TASK.X, TASK.y)


def test_given_validation_rows_are_the_ones_used() -> None:
    model = regressor().fit(TASK.X, TASK.y, validation=(TASK.X[:50], TASK.y[:50]))
    assert model.training_["rows"] == 400
    assert model.training_["validation_rows"] == 50
    assert model.validation_scores_["n"] == 50
    assert np.array_equal(model.fitted_.kept_rows[0], TASK.X[:50])


def test_groups_stay_on_one_side() -> None:
    users = np.repeat(np.arange(20), 20)
    X = np.column_stack([TASK.X, users])
    model = regressor(keep_rows=400, calibrate=False).fit(X, TASK.y, groups=users)
    held = np.unique(model.fitted_.kept_rows[0][:, -1])
    assert len(held) == 4
    assert model.training_["validation_rows"] == 80
    assert len(model.fitted_.kept_rows[0]) == 80


def test_with_groups_every_row_is_held_out_once() -> None:
    users = np.repeat(np.arange(20), 20)
    model = regressor(keep_rows=400).fit(TASK.X, TASK.y, groups=users)
    assert model.training_["validated"] == "8-fold cross-validation by groups"
    assert model.training_["rows"] == model.training_["validation_rows"] == 400
    assert np.array_equal(np.sort(model.fitted_.kept_rows[1]), np.sort(TASK.y))


def test_keep_rows(fitted: Any) -> None:
    assert len(fitted(regressor(), TASK.X, TASK.y).fitted_.kept_rows[0]) == 80
    model = regressor(keep_rows=10).fit(TASK.X, TASK.y)
    assert model.fitted_.kept_rows[0].shape == (10, 4)
    assert all(row in TASK.X for row in model.fitted_.kept_rows[0])
    assert len(regressor(keep_rows=0).fit(TASK.X, TASK.y).fitted_.kept_rows[0]) == 0


def test_a_constant_column_is_handled() -> None:
    X = np.column_stack([TASK.X, np.full(400, 3.3e8), np.zeros(400)])
    model = regressor().fit(X, TASK.y)
    assert model.score(X, TASK.y) > 0.5
    assert model.fitted_.inputs.scaler.flat == (4, 5)
    assert model.fitted_.training.constant_inputs == ("4", "5")


def test_missing_values_are_filled_with_the_mean_when_asked() -> None:
    X = TASK.X.copy()
    X[::7, 1] = np.nan
    model = regressor(missing="mean").fit(X, TASK.y)
    assert model.score(X, TASK.y) > 0.5
    filled = TASK.X[:5].copy()
    filled[:, 1] = model.fitted_.inputs.scaler.shift[1]
    hollow = TASK.X[:5].copy()
    hollow[:, 1] = np.nan
    np.testing.assert_allclose(model.predict(hollow), model.predict(filled))


def test_heavy_tails_do_not_spoil_the_student_head() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (2_000, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(2_000)
    y[rng.choice(2_000, 20, replace=False)] += 500.0
    student, gaussian = (
        regressor(likelihood=name, epochs=60).fit(X, y) for name in ("student", "gaussian")
    )
    clean = np.sin(X[:, 0])
    assert np.abs(student.predict(X) - clean).mean() < 0.05
    assert metrics.nll(student.predict_dist(X), y) < metrics.nll(gaussian.predict_dist(X), y) - 2


def test_beta_is_offered(fitted: Any) -> None:
    plain = fitted(regressor(), TASK.X, TASK.y).predict(TASK.X)
    assert not np.array_equal(regressor(beta=0.5).fit(TASK.X, TASK.y).predict(TASK.X), plain)


def test_calibration_moves_the_std_and_not_the_mean() -> None:
    plain, scaled = (
        regressor(calibrate=c, drop_prob=0.3).fit(TASK.X, TASK.y) for c in (False, True)
    )
    assert np.array_equal(plain.predict(TASK.X), scaled.predict(TASK.X))
    ratio = scaled.predict_dist(TASK.X).std / plain.predict_dist(TASK.X).std
    np.testing.assert_allclose(ratio, scaled.fitted_.calibration.factor)
    assert scaled.fitted_.calibration.factor != 1


def test_integer_timestamps_keep_their_precision() -> None:
    X = TASK.X.copy()
    stamps = 1_700_000_000 + 3_600 * np.arange(400)
    X[:, 3] = stamps
    model = regressor().fit(X, TASK.y)
    assert model.fitted_.inputs.scaler.scale[3] == pytest.approx(stamps.std(), rel=0.1)
    stamps = X[:, 3] = 1_700_000_000_000 + np.arange(400)  # which as float32 would be one number
    scale = regressor().fit(X, TASK.y).fitted_.inputs.scaler.scale[3]
    assert scale == pytest.approx(stamps.std(), rel=0.1)
