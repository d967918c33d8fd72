"""Gaussian processes: against scikit-learn's, against known functions, one output and many."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.utils.estimator_checks import estimator_checks_generator

import rdeepsense as rds
from rdeepsense import GPClassifier, GPRegressor, metrics
from rdeepsense._progress import Silent
from rdeepsense.fitting.gp import GPSchedule, learn_exact
from rdeepsense.fitting.gp_fit import ProcessSpec
from rdeepsense.fitting.spec import AfterTraining

pytest.importorskip("gpytorch")


def table(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return inputs, what is true at them, and that with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (rows, 2))
    truth = 5 + 3 * np.sin(2 * X[:, 0]) + X[:, 1]
    return X, truth, truth + 0.4 * rng.standard_normal(rows)


X, TRUTH, Y = table(0, 250)
LABELS = np.array(["rest", "walk", "run"])[np.digitize(Y, [4.0, 6.5])]

CHECKED = [
    GPRegressor(device="cpu"),
    GPRegressor(method="variational", inducing=16, steps=25, learning_rate=0.2, device="cpu"),
    GPClassifier(inducing=16, steps=40, learning_rate=0.15, device="cpu"),
]
CHECKS = [
    pytest.param(estimator, check, id=f"{type(estimator).__name__}-{whole}-{i}")
    for whole in range(len(CHECKED))
    for i, (estimator, check) in enumerate(estimator_checks_generator(CHECKED[whole]))
]


def regressor(**options: Any) -> GPRegressor:
    return GPRegressor(**{"random_state": 0, "device": "cpu", **options})


def sparse(**options: Any) -> GPRegressor:
    return regressor(
        **{"method": "variational", "inducing": 40, "steps": 100, "learning_rate": 0.1, **options}
    )


def classifier(**options: Any) -> GPClassifier:
    settings = {"inducing": 30, "steps": 100, "learning_rate": 0.1, "random_state": 0}
    return GPClassifier(**{**settings, "device": "cpu", **options})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_check_estimator(estimator: Any, check: Any) -> None:
    check(estimator)


def scikit_learns(model: GPRegressor) -> GaussianProcessRegressor:
    """With the same hyper-parameters, on the same scaled rows."""
    learnt = model.fitted_.model.gp
    kernel = ConstantKernel(float(learnt.scale)) * RBF(learnt.lengths.numpy()) + WhiteKernel(
        float(learnt.noise)
    )
    return GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None)


@pytest.mark.parametrize("outputs", [1, 2])
def test_prediction_and_likelihood_are_scikit_learns(
    rng: np.random.Generator, outputs: int
) -> None:
    y = Y if outputs == 1 else np.column_stack([Y, np.cos(X[:, 1])])
    model = regressor(calibrate=False).fit(X, y, validation=(X[:50], y[:50]))
    shift, scale = model.fitted_.target_scaler.shift, model.fitted_.target_scaler.scale
    inputs = (X - model.fitted_.inputs.scaler.shift) / model.fitted_.inputs.scaler.scale
    targets = (y.reshape(250, -1) - shift) / scale
    other = scikit_learns(model).fit(inputs, targets)
    at = rng.uniform(-3, 3, (40, 2))
    mean, std = other.predict(
        (at - model.fitted_.inputs.scaler.shift) / model.fitted_.inputs.scaler.scale,
        return_std=True,
    )
    got = model.predict_dist(at)
    expected = mean.reshape(40, -1) * scale + shift
    np.testing.assert_allclose(got.mean.reshape(40, -1), expected, rtol=1e-6)
    np.testing.assert_allclose(got.std.reshape(40, -1), std.reshape(40, -1) * scale, rtol=1e-6)
    nll = -other.log_marginal_likelihood_value_ / targets.size
    assert model.training_["loss"] == pytest.approx(nll, abs=1e-6)


def test_no_better_hyper_parameters_are_found_by_scikit_learn() -> None:
    model = regressor().fit(X, Y, validation=(X, Y))
    inputs = (X - model.fitted_.inputs.scaler.shift) / model.fitted_.inputs.scaler.scale
    other = scikit_learns(model).set_params(optimizer="fmin_l_bfgs_b")
    other.fit(inputs, (Y - model.fitted_.target_scaler.shift) / model.fitted_.target_scaler.scale)
    assert model.training_["loss"] <= -other.log_marginal_likelihood_value_ / 250 + 1e-4


def test_a_weight_is_a_repetition_in_the_formulas(rng: np.random.Generator) -> None:
    """Not only because repeated rows are merged: the bound itself counts them so."""
    x, y = torch.from_numpy(X[:30]), torch.from_numpy(Y[:30, None] - Y[:30].mean())
    count = torch.from_numpy(rng.integers(1, 4, 30))
    plan = GPSchedule(30, 64, 0.03, 30, 0, Silent())
    weighted, a = learn_exact(x, y, count.double(), plan)
    ones = torch.ones(int(count.sum())).double()
    repeated, b = learn_exact(
        x.repeat_interleave(count, 0), y.repeat_interleave(count, 0), ones, plan
    )
    assert a["loss"] * 30 == pytest.approx(b["loss"] * len(ones), rel=1e-5)
    for one, other in zip(weighted.predict(x), repeated.predict(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("make", [regressor, sparse])
def test_a_known_function_and_its_noise_are_recovered(make: Any, fitted: Any) -> None:
    model = fitted(make(), X, Y)
    mean, std = model.predict(X, return_std=True)
    assert np.sqrt(np.mean((mean - TRUTH) ** 2)) < 0.2
    assert np.mean(std) == pytest.approx(0.42, abs=0.08)
    at, _, y = table(1, 2_000)
    assert metrics.deviation_area(model.predict_dist(at), y) < 0.04
    assert (model.predict(X + 50, return_std=True)[1] > 2 * std).all()


def test_exact_and_variational_agree(fitted: Any) -> None:
    exact, close = fitted(regressor(), X, Y), sparse(inducing=100).fit(X, Y)
    a, b = exact.predict_dist(X), close.predict_dist(X)
    assert np.abs(a.mean - b.mean).max() < 0.25
    np.testing.assert_allclose(a.std, b.std, rtol=0.15)


@pytest.mark.parametrize("make", [regressor, sparse])
def test_outputs_do_not_disturb_each_other(make: Any, fitted: Any) -> None:
    one = fitted(make(), X, Y).predict_dist(X)
    two = make().fit(X, np.column_stack([Y, 1_000 * Y + 7])).predict_dist(X)
    np.testing.assert_allclose(two.mean[:, 1], 1_000 * two.mean[:, 0] + 7, rtol=1e-6)
    np.testing.assert_allclose(two.std[:, 1], 1_000 * two.std[:, 0], rtol=1e-6)
    np.testing.assert_allclose(two.mean[:, 0], one.mean, atol=0.02)
    np.testing.assert_allclose(two.std[:, 0], one.std, rtol=0.02)


def test_the_method_follows_the_rows_and_can_be_forced(fitted: Any) -> None:
    assert fitted(regressor(), X, Y).fitted_.model.method == "exact"
    assert sparse().fit(X, Y).training_["method"] == "variational"
    assert sparse(method="exact").fit(X, Y).fitted_.model.method == "exact"


def test_beyond_3000_rows_the_method_is_variational() -> None:
    after, cpu = AfterTraining(None, False, 0), torch.device("cpu")

    def kind(asked: str, rows: int) -> str:
        spec = ProcessSpec("GPRegressor", asked, 512, None, None, None, after, cpu, False)
        return spec.kind_for(rows)

    assert (kind("auto", 3_000), kind("auto", 3_001)) == ("exact", "variational")
    assert (kind("exact", 9_999), kind("variational", 10)) == ("exact", "variational")


def test_classes() -> None:
    model = classifier().fit(X, LABELS)
    assert model.classes_.tolist() == ["rest", "run", "walk"]
    assert model.score(X, LABELS) > 0.8
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(1), 1.0)
    assert np.array_equal(proba, model.predict_proba(X))
    np.testing.assert_allclose(proba[:5], model.predict_proba(X[:5]), rtol=1e-9)
    far = model.predict_dist(X + 50).entropy()
    assert far.mean() > model.predict_dist(X).entropy().mean() + 0.2
    assert model.fitted_.model.method == "variational"


@pytest.mark.parametrize("make", [regressor, sparse, classifier])
def test_files_pickles_and_seeds(make: Any, tmp_path: Path) -> None:
    y = LABELS if make is classifier else np.column_stack([Y, -Y])
    state = torch.get_rng_state()
    model = make().fit(X, y)
    assert torch.equal(state, torch.get_rng_state())
    model.save(tmp_path / "gp.safetensors")
    copies = (rds.load(tmp_path / "gp.safetensors"), pickle.loads(pickle.dumps(model)))
    for copy in (*copies, make().fit(X, y)):
        assert copy.predict_dist(X) == model.predict_dist(X)
    assert copies[0].fitted_.model.method == model.fitted_.model.method
    assert copies[0].training_ == model.training_
    with pytest.raises(rds.InputError, match="no network"):
        rds.load(tmp_path / "gp.safetensors", network=torch.nn.Linear(2, 1))


def test_many_rows_are_predicted_in_chunks(fitted: Any) -> None:
    model = fitted(regressor(), X, Y).fitted_
    scaler, cpu = model.inputs.scaler, torch.device("cpu")
    whole = model.model.predict(X, scaler, cpu)
    np.testing.assert_allclose(model.model.predict(X, scaler, cpu, chunk=30).std, whole.std)


def test_refusals() -> None:
    with pytest.raises(rds.InputError, match="method = 'sparse' is unknown; accepted: auto, exact"):
        regressor(method="sparse").fit(X, Y)
    for bad in ({"inducing": 0}, {"steps": 0}, {"batch_size": 1.5}, {"learning_rate": -1.0}):
        with pytest.raises(rds.InputError, match=next(iter(bad))):
            regressor(**bad).fit(X, Y)
    with pytest.raises(rds.InputError, match="samples = 5: a Gaussian process has no passes"):
        regressor().fit(X, Y).predict_dist(X, samples=5)


def test_without_gpytorch_only_fit_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = regressor().fit(X, Y)
    model.save(tmp_path / "gp.safetensors")
    monkeypatch.setitem(sys.modules, "gpytorch", None)
    with pytest.raises(rds.MissingExtraError, match=r"rdeepsense\[gp\]"):
        regressor().fit(X, Y)
    assert rds.load(tmp_path / "gp.safetensors").predict_dist(X) == model.predict_dist(X)
