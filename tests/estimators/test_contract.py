"""What every estimator promises, tested on every one of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rdeepsense as rds
from rdeepsense import metrics
from rdeepsense.datasets import simulate

TASK, TEST = simulate(300, seed=0), simulate(100, seed=1)
TWO = np.column_stack([TASK.y, -2 * TASK.y + TASK.X[:, 0]])
LABELS = np.array(["low", "middle", "high"])[np.digitize(TASK.y, [40.0, 60.0])]

SMALL: dict[str, Any] = {"hidden": (16,), "epochs": 60, "device": "cpu", "random_state": 0}
REGRESSORS: dict[str, Any] = {
    "RDeepSense": lambda **o: rds.RDeepSenseRegressor(**{**SMALL, **o}, effort="quick"),
    "RDeepSense student": lambda **o: rds.RDeepSenseRegressor(
        **{**SMALL, "likelihood": "student", **o}, effort="quick"
    ),
    "RDeepSense auto": lambda **o: rds.RDeepSenseRegressor(
        **{**SMALL, "likelihood": "auto", "drop_prob": "auto", "alpha": "auto", "epochs": 20, **o}
    ),
    "RDeepSense isotonic": lambda **o: rds.RDeepSenseRegressor(
        **{**SMALL, "calibrate": "isotonic", **o}, effort="quick"
    ),
    "RDeepSense conformal": lambda **o: rds.RDeepSenseRegressor(
        **{**SMALL, "calibrate": "conformal", **o}, effort="quick"
    ),
    "MCDrop": lambda **o: rds.MCDropRegressor(**{**SMALL, "samples": 5, **o}),
    "MCDrop paper": lambda **o: rds.MCDropRegressor(
        **{**SMALL, "samples": 5, "noise": "none", **o}
    ),
    "SSP": lambda **o: rds.SSPRegressor(**{**SMALL, "members": 3, **o}),
    "SSP student": lambda **o: rds.SSPRegressor(
        **{**SMALL, "members": 2, "likelihood": "student", **o}
    ),
    "SSP adversarial": lambda **o: rds.SSPRegressor(
        **{**SMALL, "members": 2, "adversarial": True, **o}
    ),
    "SSP isotonic": lambda **o: rds.SSPRegressor(
        **{**SMALL, "members": 2, "calibrate": "isotonic", **o}
    ),
}
CLASSIFIERS: dict[str, Any] = {
    "RDeepSense": lambda **o: rds.RDeepSenseClassifier(**{**SMALL, **o}, effort="quick"),
    "RDeepSense auto": lambda **o: rds.RDeepSenseClassifier(
        **{**SMALL, "drop_prob": "auto", "alpha": "auto", "epochs": 20, **o}
    ),
    "RDeepSense conformal": lambda **o: rds.RDeepSenseClassifier(
        **{**SMALL, "calibrate": "conformal", **o}, effort="quick"
    ),
    "MCDrop": lambda **o: rds.MCDropClassifier(**{**SMALL, "samples": 5, **o}),
    "SSP": lambda **o: rds.SSPClassifier(**{**SMALL, "members": 3, **o}),
}
if importlib.util.find_spec("gpytorch"):
    COMMON = {"device": "cpu", "random_state": 0}
    REGRESSORS["GP"] = lambda **o: rds.GPRegressor(**{**COMMON, **o})
    CLASSIFIERS["GP"] = lambda **o: rds.GPClassifier(
        **{**COMMON, "steps": 100, "inducing": 64, **o}
    )

regressors = pytest.mark.parametrize("make", REGRESSORS.values(), ids=REGRESSORS.keys())
classifiers = pytest.mark.parametrize("make", CLASSIFIERS.values(), ids=CLASSIFIERS.keys())
pytestmark = pytest.mark.filterwarnings("ignore:.*variances of the passes")


@pytest.mark.everyday(6, "slow")
@regressors
@pytest.mark.parametrize("y", [TASK.y, TWO], ids=["one output", "two outputs"])
def test_shapes_intervals_and_learning(make: Any, y: NDArray[np.float64]) -> None:
    model = make().fit(TASK.X, y)
    mean, std = model.predict(TASK.X, return_std=True)
    assert mean.shape == std.shape == y.shape
    assert (std > 0).all()
    narrow, wide = (model.predict_interval(TASK.X, coverage=c) for c in (0.5, 0.95))
    assert (wide[0] < narrow[0]).all()
    assert (wide[1] > narrow[1]).all()
    assert model.score(TASK.X, y) > 0.5
    assert set(model.validation_scores_) >= {"nll", "crps", "deviation_area", "coverage_90"}
    assert model.predict_dist(TASK.X[:0:-1])[3].mean.shape == y.shape[1:]


@pytest.mark.everyday(6, "slow")
@regressors
def test_regressors_round_trip_and_seeds(make: Any, tmp_path: Path) -> None:
    model, twin, other = (make(random_state=s).fit(TASK.X, TASK.y) for s in (1, 1, 2))
    dist = model.predict_dist(TEST.X)
    assert dist == twin.predict_dist(TEST.X)
    if not isinstance(model, getattr(rds, "GPRegressor", ())):
        assert dist != other.predict_dist(TEST.X)
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = rds.load(path)
    assert type(again) is type(model)
    assert again.predict_dist(TEST.X) == dist
    assert np.array_equal(again.predict(TEST.X), model.predict(TEST.X))
    for name, value in model.validation_scores_.items():
        assert again.validation_scores_[name] == pytest.approx(value, nan_ok=True)


@classifiers
def test_classifiers_round_trip_labels_and_probabilities(make: Any, tmp_path: Path) -> None:
    model = make().fit(TASK.X, LABELS)
    assert isinstance(model.predict_dist(TASK.X), rds.Categorical)
    proba = model.predict_proba(TASK.X)
    np.testing.assert_allclose(proba.sum(1), 1.0)
    assert np.array_equal(model.predict(TASK.X), model.classes_[proba.argmax(1)])
    assert model.score(TASK.X, LABELS) > 0.6
    path = tmp_path / "model.safetensors"
    model.save(path)
    assert np.array_equal(rds.load(path).predict_proba(TEST.X), model.predict_proba(TEST.X))


@regressors
def test_bad_input(make: Any) -> None:
    X = TASK.X.copy()
    X[4, 1] = np.nan
    with pytest.raises(rds.InputError, match="in 1 of 300 rows, first NaN in row 4, column 1"):
        make(missing="refuse").fit(X, TASK.y)
    with pytest.raises(rds.InputError, match="y is constant"):
        make().fit(TASK.X, np.ones(300))
    with pytest.raises(ValueError, match="not fitted yet"):
        make().predict(TASK.X)


@classifiers
def test_one_class(make: Any) -> None:
    with pytest.raises(rds.InputError, match="one class only"):
        make().fit(TASK.X, np.ones(300))


def test_mcdrop_serves_every_k_and_refuses_one() -> None:
    model = REGRESSORS["MCDrop"]().fit(TASK.X, TASK.y)
    assert model.predict_dist(TEST.X, samples=2) != model.predict_dist(TEST.X, samples=50)
    with pytest.raises(rds.InputError, match="variance of one pass is 0"):
        model.predict_dist(TEST.X, samples=1)
    with pytest.raises(rds.InputError, match="at least 2"):
        REGRESSORS["MCDrop"](samples=1).fit(TASK.X, TASK.y)
    with pytest.raises(rds.InputError, match="noise = 'some' is unknown; accepted: tuned, none"):
        REGRESSORS["MCDrop"](noise="some").fit(TASK.X, TASK.y)


def test_mcdrop_variance_by_brute_force_and_noise_on_top() -> None:
    """The passes one by one in float64, and tau by a fine search."""
    import torch

    tuned = REGRESSORS["MCDrop"](drop_prob=0.3).fit(TASK.X, TASK.y)
    paper = REGRESSORS["MCDrop paper"](drop_prob=0.3).fit(TASK.X, TASK.y)
    x = torch.from_numpy(
        (TEST.X - tuned.fitted_.inputs.scaler.shift) / tuned.fitted_.inputs.scaler.scale
    )
    network, scaler = tuned.network_.double(), tuned.fitted_.target_scaler
    with torch.random.fork_rng(devices=[]), torch.no_grad(), network.sampling():
        torch.manual_seed(tuned.training_["seed"])
        passes = network(x.repeat(5, 1)).mean.view(5, -1).numpy() * scaler.scale + scaler.shift
    plain = paper.predict_dist(TEST.X)
    np.testing.assert_allclose(plain.mean, passes.mean(0), rtol=1e-9)
    np.testing.assert_allclose(plain.var, passes.var(0), rtol=1e-6)
    total = tuned.predict_dist(TEST.X).var - plain.var
    np.testing.assert_allclose(total, tuned.fitted_.calibration.variance, rtol=1e-6)


def test_the_papers_mcdrop_says_when_it_uses_the_floor() -> None:
    model = rds.MCDropRegressor(**{**SMALL, "samples": 2, "noise": "none", "drop_prob": 0.0})
    with pytest.warns(UserWarning, match="variances of the passes are below 1e-06"):
        model.fit(TASK.X, TASK.y)


def test_ssp_k_is_the_first_k_members() -> None:
    model = REGRESSORS["SSP"](calibrate=False).fit(TASK.X, TASK.y)
    parts = [model.predict_dist(TEST.X).components[k] for k in range(3)]
    assert model.predict_dist(TEST.X, samples=2) == rds.Mixture(parts[:2])
    assert model.predict_dist(TEST.X, samples=1).components[0] == parts[0]
    means, variances = (np.array([getattr(p, n) for p in parts]) for n in ("mean", "var"))
    whole = model.predict_dist(TEST.X)
    np.testing.assert_allclose(whole.mean, means.mean(0))
    np.testing.assert_allclose(whole.var, variances.mean(0) + means.var(0), rtol=1e-9)
    with pytest.raises(rds.InputError, match="samples = 4, but the ensemble has 3 members"):
        model.predict_dist(TEST.X, samples=4)


def test_an_ensemble_beats_its_members() -> None:
    model = rds.SSPRegressor(members=5, epochs=100, **{k: SMALL[k] for k in ("device",)})
    model.set_params(random_state=0).fit(TASK.X, TASK.y)
    alone = metrics.nll(model.predict_dist(TEST.X, samples=1), TEST.y)
    assert metrics.nll(model.predict_dist(TEST.X), TEST.y) < alone


def test_members_of_a_network_of_ones_own_differ() -> None:
    from torch import nn

    network = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 1))
    model = rds.SSPRegressor(members=2, network=network, epochs=3, random_state=0, device="cpu")
    parts = model.fit(TASK.X, TASK.y).predict_dist(TEST.X).components
    assert parts[0] != parts[1]


def test_passes_follow_the_parameters_of_a_fitted_model() -> None:
    model = REGRESSORS["MCDrop"](samples=4).fit(TASK.X, TASK.y)
    again = model.predict_dist(TEST.X, samples=9)
    assert model.set_params(samples=9).predict_dist(TEST.X) == again


@pytest.mark.parametrize("kind", sorted(set(REGRESSORS) & {"RDeepSense", "MCDrop", "SSP", "GP"}))
@pytest.mark.parametrize("rows", [60, 1_000])
def test_a_constant_input_is_named_and_the_same_row_in_both_types(kind: str, rows: int) -> None:
    rng = np.random.default_rng(rows)
    constants = np.round(rng.normal(size=3) * 10.0 ** rng.integers(-2, 6, 3), 2)
    X = np.column_stack([rng.normal(size=rows), np.tile(constants, (rows, 1))])
    X[:, 3] += 1e-14 * abs(constants[2]) * rng.normal(size=rows)  # as good as constant
    y = X[:, 0] + 0.3 * rng.normal(size=rows)
    model = REGRESSORS[kind](random_state=0).fit(X, y)
    assert model.training_["constant_inputs"] == ["1", "2", "3"]
    X = X[:5]
    X[:, 0] = X[:, 0].astype(np.float32)
    mean, std = model.predict(X, return_std=True)
    assert np.abs(model.predict(X.astype(np.float32)) - mean).max() <= 1e-4 * std.min()
