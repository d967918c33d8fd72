"""Few rows: what is shrunk, to what, and by how much what is left is widened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import rdeepsense as rds
from rdeepsense import calibration
from rdeepsense.calibration.maps import inflation
from rdeepsense.data.splits import Part, distinct
from rdeepsense.dropout import convert
from rdeepsense.fitting.few_rows import Shrinkage, class_frequencies, freedom

pytestmark = pytest.mark.filterwarnings("ignore::rdeepsense.DataWarning")
QUICK: dict[str, Any] = {"hidden": (8,), "effort": "quick", "epochs": 20, "random_state": 0}


def network(likelihood: str, outputs: int = 1) -> Any:
    body = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, outputs))
    made = convert(body, likelihood=likelihood, drop_prob=0.1).eval().double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


@pytest.mark.parametrize(("likelihood", "outputs"), [("student", 2), ("gaussian", 1)])
def test_what_is_shrunk_to_nothing_is_a_constant_with_the_spread_of_the_start(
    likelihood: str, outputs: int
) -> None:
    center = np.array([0.25, -1.0][:outputs])
    shrunk = Shrinkage(0.0, 0.0).of(network(likelihood, outputs), center)
    with torch.no_grad():
        dist = shrunk(torch.randn(7, 3, dtype=torch.float64)).numpy()
    unit = 1.001 if likelihood == "student" else np.sqrt(1.0001)  # with the head's floor
    np.testing.assert_allclose(dist.mean, np.tile(center, (7, 1)), rtol=1e-12)
    if likelihood == "student":
        np.testing.assert_allclose(dist.df, 6.0 + 1e-3, rtol=1e-6)
        np.testing.assert_allclose(dist.scale, unit, rtol=1e-6)
    else:
        np.testing.assert_allclose(dist.std, unit, rtol=1e-6)


@pytest.mark.parametrize("likelihood", ["student", "gaussian"])
def test_a_shrunk_network_is_between_the_two(likelihood: str) -> None:
    made, x = network(likelihood), torch.randn(7, 3, dtype=torch.float64)
    center = np.array([0.5])
    with torch.no_grad():
        raw = made.body(x)
        whole, half = (
            Shrinkage(a, b).of(made, center).body(x) for a, b in ((1.0, 1.0), (0.5, 0.25))
        )
        predicted = Shrinkage(0.5, 0.25).predict(made.head, raw, center)
        actual = Shrinkage(0.5, 0.25).of(made, center)(x).numpy()
    torch.testing.assert_close(whole, raw)
    start = made.head.start[0]
    torch.testing.assert_close(half[:, 0], 0.5 * raw[:, 0] + 0.25)
    torch.testing.assert_close(half[:, 1], 0.25 * raw[:, 1] + 0.75 * start)
    for name in ("mean", "std"):
        np.testing.assert_allclose(getattr(predicted, name), getattr(actual, name), rtol=1e-12)


def test_classes_are_shrunk_to_their_frequencies() -> None:
    made, frequencies = network("categorical", 3), np.array([0.5, 0.3, 0.2])
    shrunk = Shrinkage(0.0, 0.0).of(made, np.log(frequencies))
    with torch.no_grad():
        probs = shrunk(torch.randn(4, 3, dtype=torch.float64)).numpy().probs
    np.testing.assert_allclose(probs, np.tile(frequencies, (4, 1)), rtol=1e-12)


def test_frequencies_that_chance_explains_are_equal() -> None:
    np.testing.assert_allclose(class_frequencies(np.array([7, 5]) / 12, 12), 0.5)  # chi^2 = 1/3
    # chi^2 = 12 * 2 * 2 * (1/3)^2 = 16/3, so 13/16 of 1/3 is kept; then one row more of each.
    more = (12 * (0.5 + 13 / 16 / 3) + 1) / 14
    np.testing.assert_allclose(class_frequencies(np.array([10, 2]) / 12, 12), [more, 1 - more])
    assert class_frequencies(np.array([1.0, 0.0, 0.0]), 1e6)[0] > 0.99999


def test_the_degrees_of_freedom_of_a_scale(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    assert freedom(distinct(X, y)) == pytest.approx(2 / 3 * 30 - 3)
    assert freedom(distinct(X[:6], y[:6])) == 3.0  # the least
    weighted = distinct(X, y, np.where(np.arange(30) < 15, 1.0, 1e-9))
    assert freedom(weighted) == pytest.approx(2 / 3 * 15 - 3)
    people = np.arange(1_000) // 100  # ten people with 100 rows each are ten
    many = rng.normal(size=(1_000, 2)), rng.normal(size=1_000)
    assert freedom(distinct(*many, groups=people)) == 9.0
    assert isinstance(distinct(*many, groups=people), Part)


def test_a_scale_of_few_rows_is_widened_and_not_believed(rng: np.random.Generator) -> None:
    y = 3.0 * rng.normal(size=12)
    stated = rds.Gaussian(np.zeros(12), 1.0)
    found = calibration.fit("scale", stated, y, freedom=9.0)
    assert inflation(9.0) == pytest.approx(1.8331129 / 1.6448536, rel=1e-6)
    assert found.summary() == pytest.approx(np.sqrt(np.mean(y**2)) * inflation(9.0))
    assert calibration.fit("auto", stated, y, freedom=9.0) == found


def test_few_rows_never_sharpen_classes() -> None:
    right = rds.Categorical(np.tile([0.7, 0.3], (12, 1)))
    found = calibration.fit("temperature", right, np.zeros(12, int), freedom=5.0)
    assert found.summary() == pytest.approx(inflation(5.0), rel=1e-4)
    wrong = calibration.fit("temperature", right, np.ones(12, int), freedom=5.0)
    assert wrong.summary() > 20


def test_a_model_without_noise_is_not_shrunk(rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 2))
    model = rds.RDeepSenseRegressor(effort="quick", random_state=0).fit(X, 3 * X[:, 0] + 7)
    assert model.fitted_.training.details["few_rows"]["location"] >= 0.8


def table(rng: np.random.Generator, rows: int = 24) -> tuple[Any, Any]:
    X = rng.normal(size=(rows, 2))
    return X, X[:, 0] + 0.5 * rng.normal(size=rows)


@pytest.mark.parametrize("to", ["folded", "onnx"])
def test_exports_predict_what_python_does(
    rng: np.random.Generator, tmp_path: Path, to: str
) -> None:
    X, y = table(rng)
    model = rds.RDeepSenseRegressor(**QUICK).fit(X, y)
    assert "few_rows" in model.fitted_.training.details
    rds.export(model, tmp_path / "m", to=to)
    fresh = rng.normal(size=(50, 2))
    mean, std = model.predict(fresh, return_std=True)
    if to == "folded":
        found = rds.deploy.load(tmp_path / "m").predict(fresh, return_std=True)
        np.testing.assert_allclose(found, (mean, std), rtol=1e-6, atol=1e-9)
        return
    onnxruntime = pytest.importorskip("onnxruntime")
    path = next((tmp_path / "m").rglob("*.onnx")) if (tmp_path / "m").is_dir() else tmp_path / "m"
    session = onnxruntime.InferenceSession(path)
    name = session.get_inputs()[0].name
    out = session.run(None, {name: fresh.astype(np.float32)})
    by_name = dict(zip([one.name for one in session.get_outputs()], out, strict=True))
    np.testing.assert_allclose(np.ravel(by_name["mean"]), mean, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(np.ravel(by_name["std"]), std, rtol=1e-4, atol=1e-4)


def test_a_model_file_keeps_it(rng: np.random.Generator, tmp_path: Path) -> None:
    X, y = table(rng)
    model = rds.RDeepSenseRegressor(**QUICK).fit(X, y)
    model.save(tmp_path / "m.safetensors")
    again = rds.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
    found = again.fitted_.training.details["few_rows"]
    assert found == model.fitted_.training.details["few_rows"]


def test_what_the_path_is_taken_for(rng: np.random.Generator) -> None:
    X, y = table(rng)

    def validated(model: Any, *rows: Any, **more: Any) -> tuple[str, bool]:
        report = model.fit(*(rows or (X, y)), **more).fitted_.training
        return report.validated, "few_rows" in report.details

    regressor = rds.RDeepSenseRegressor
    folded = ("5-fold cross-validation", True)
    assert validated(regressor(**QUICK)) == folded
    by_groups = validated(regressor(**QUICK), groups=np.arange(24) // 3)
    assert by_groups == ("5-fold cross-validation by groups", True)
    assert validated(regressor(**QUICK), sample_weight=rng.random(24)) == folded
    assert validated(rds.RDeepSenseClassifier(**QUICK), X, y > 0) == folded
    assert validated(regressor(**QUICK), X, y, time=np.arange(24))[1] is False
    assert validated(regressor(**QUICK), validation=(X + 1, y)) == ("validation rows given", False)
    assert validated(regressor(**QUICK, calibrate=False)) == ("validation rows", False)
    assert validated(rds.MCDropRegressor(hidden=(8,), epochs=2, samples=5))[1] is False
    wide = {"hidden": (8,), "effort": "quick", "epochs": 1, "random_state": 0}
    for rows, inputs, few in ((199, 2, True), (200, 2, False), (250, 20, True)):
        many = rng.normal(size=(rows, inputs)), rng.normal(size=rows)
        assert validated(regressor(**wide), *many)[1] is few


def test_groups_stay_together(rng: np.random.Generator) -> None:
    """A group's offset can be learned by none of the folds that judge it: intervals hold it."""
    group = np.repeat(np.arange(12), 5)
    X = np.c_[group == group[:, None]][:, ::5] + 0.01 * rng.normal(size=(60, 12))
    y = rng.normal(size=12)[group] + 0.05 * rng.normal(size=60)
    model = rds.RDeepSenseRegressor(effort="quick", random_state=0, check=False)
    low, high = model.fit(X, y, groups=group).predict_interval(X)
    assert np.mean(high - low) > 1.0
