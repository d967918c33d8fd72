"""Epistemic uncertainty behind the estimators: totals, parts, calibration, model files."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

import rdeepsense as rds
from rdeepsense import InputError, RDeepSenseClassifier, RDeepSenseRegressor, metrics
from rdeepsense.datasets import kl_from_truth, simulate
from rdeepsense.modelfile import tensors as model_file

TASK = simulate(400, seed=0)
TWO = np.column_stack([TASK.y, 1e-3 * TASK.X[:, 0] + 1e-4 * TASK.X[:, 1] ** 2])
LABELS = np.array(["low", "middle", "high"])[np.digitize(TASK.y, [40.0, 60.0])]
FAR = 10 * TASK.X


def regressor(**options: Any) -> RDeepSenseRegressor:
    fixed = {"hidden": (16, 16), "drop_prob": 0.05, "alpha": 0.5, "likelihood": "gaussian"}
    settings = {**fixed, "epochs": 20, "random_state": 0, "device": "cpu", **options}
    return RDeepSenseRegressor(**settings)


@pytest.fixture(scope="module")
def model() -> RDeepSenseRegressor:
    return regressor(drop_prob=0.1).fit(TASK.X, TASK.y)


@pytest.fixture(scope="module")
def classifier() -> RDeepSenseClassifier:
    settings = {"hidden": (16, 16), "epochs": 20, "random_state": 0, "device": "cpu"}
    return RDeepSenseClassifier(**settings, effort="quick").fit(TASK.X, LABELS)


@pytest.fixture(scope="module")
def large() -> tuple[RDeepSenseRegressor, Any]:
    train, test = simulate(3_000, 1), simulate(4_000, 2)
    model = RDeepSenseRegressor(
        drop_prob=0.2,
        likelihood="gaussian",
        epochs=20,
        random_state=0,
        device="cpu",
        effort="quick",
    )
    return model.fit(train.X, train.y), test


@pytest.mark.parametrize("epistemic", ["delta", "laplace"])
def test_the_total_is_no_further_from_the_truth(
    large: tuple[RDeepSenseRegressor, Any], epistemic: str
) -> None:
    """Drop 0.2, where the head's variance holds much of the masks': counting twice would show."""
    model, test = large
    plain = model.predict_dist(test.X)
    total = model.predict_dist(test.X, epistemic=epistemic)
    np.testing.assert_allclose(total.mean, plain.mean, rtol=1e-12)
    assert kl_from_truth(test.truth, total) <= kl_from_truth(test.truth, plain) + 0.005
    assert metrics.nll(total, test.y) <= metrics.nll(plain, test.y) + 0.005
    assert metrics.deviation_area(total, test.y) <= metrics.deviation_area(plain, test.y) + 0.005


def test_masks_explain_a_part_of_the_heads_variance(
    large: tuple[RDeepSenseRegressor, Any],
) -> None:
    model, _ = large
    assert model.fitted_.epistemic is not None
    assert 0.3 < model.fitted_.epistemic.noise_share[0] < 0.95


@pytest.mark.parametrize("epistemic", ["delta", "laplace"])
def test_the_part_lies_within_the_total(model: RDeepSenseRegressor, epistemic: str) -> None:
    total = model.predict_dist(TASK.X, epistemic=epistemic).std
    part = model.epistemic_std(TASK.X, method=epistemic)
    assert part.shape == total.shape == (400,)
    assert (part > 0).all()
    assert (part < total).all()


def test_formulas_by_hand(model: RDeepSenseRegressor) -> None:
    fitted = model.fitted_.epistemic
    assert fitted is not None
    head = model.predict_dist(TASK.X).var / model.fitted_.calibration.factor**2
    for epistemic in ("delta", "laplace"):
        scale = fitted.calibrations[epistemic].factor  # type: ignore[union-attr]
        part = (model.epistemic_std(TASK.X, epistemic) / scale) ** 2
        noise = (
            np.maximum(head - part, 0.05 * head)
            if epistemic == "delta"
            else fitted.noise_share * head
        )
        total = model.predict_dist(TASK.X, epistemic=epistemic).var
        np.testing.assert_allclose(total, scale**2 * (noise + part), rtol=1e-9)


def test_far_from_the_rows_doubt_rules(model: RDeepSenseRegressor) -> None:
    near, far = (model.epistemic_std(X) for X in (TASK.X, FAR))
    assert np.median(far) > 3 * np.median(near)  # at the ends of the ranges
    free = copy.copy(model)  # a guard clamps these inputs and widens both distributions
    free.fitted_ = replace(model.fitted_, guard=None, unlike=None)
    near, far = (free.epistemic_std(X) for X in (TASK.X, FAR))
    assert np.median(far) > 5 * np.median(near)
    wider = free.predict_dist(FAR, epistemic="laplace").std / free.predict_dist(FAR).std
    assert np.median(wider) > 1


def test_methods_of_the_masks_agree(model: RDeepSenseRegressor) -> None:
    delta, sampled = (model.epistemic_std(TASK.X, method) for method in ("delta", "sample"))
    assert np.median(delta / sampled) == pytest.approx(1, abs=0.15)
    moments = model.epistemic_std(TASK.X, "moments")
    assert (moments > 0).all()


def test_units_of_several_outputs() -> None:
    model = regressor().fit(TASK.X, TWO)
    for epistemic in ("delta", "laplace"):
        part = model.epistemic_std(TASK.X, epistemic)
        assert part.shape == TWO.shape
        assert 100 < np.median(part[:, 0]) / np.median(part[:, 1]) < 1e6
        assert model.predict_dist(TASK.X, epistemic=epistemic).shape == TWO.shape


def test_student_keeps_its_tail() -> None:
    model = regressor(likelihood="student").fit(TASK.X, TASK.y)
    total, plain = model.predict_dist(TASK.X, epistemic="laplace"), model.predict_dist(TASK.X)
    assert isinstance(total, rds.StudentT)
    np.testing.assert_array_equal(total.df, plain.df)


def test_isotonic_and_no_calibration() -> None:
    for calibrate in ("isotonic", False):
        model = regressor(calibrate=calibrate, epochs=5).fit(TASK.X, TASK.y)
        total = model.predict_dist(TASK.X, epistemic="laplace")
        assert metrics.nll(total, TASK.y) < metrics.nll(model.predict_dist(TASK.X), TASK.y) + 0.1


def test_cross_validated_models_too() -> None:
    model = regressor(drop_prob="auto", epochs=8).fit(TASK.X[:200], TASK.y[:200])
    assert model.training_["validated"] == "5-fold cross-validation"
    assert np.isfinite(metrics.nll(model.predict_dist(TASK.X, epistemic="laplace"), TASK.y))


@pytest.mark.parametrize("epistemic", ["delta", "laplace"])
def test_classes(classifier: RDeepSenseClassifier, epistemic: str) -> None:
    total, plain = (
        classifier.predict_dist(TASK.X, epistemic=epistemic),
        classifier.predict_dist(TASK.X),
    )
    assert metrics.nll(total, LABELS) < metrics.nll(plain, LABELS) + 0.02
    assert classifier.epistemic_std(TASK.X, epistemic).shape == (400, 3)
    doubt = classifier.mutual_information(TASK.X, epistemic)
    assert doubt.shape == (400,)
    assert (doubt >= 0).all()
    assert (doubt <= np.log(3)).all()
    assert doubt.max() > 0


def test_classes_far_from_the_rows(classifier: RDeepSenseClassifier) -> None:
    plain = classifier.predict_dist(FAR).entropy()
    assert (classifier.predict_dist(FAR, epistemic="laplace").entropy() > plain).mean() > 0.9


def test_round_trip_is_bit_identical(
    model: RDeepSenseRegressor, classifier: RDeepSenseClassifier, tmp_path: Path
) -> None:
    for number, fitted in enumerate(
        (model, classifier, regressor(calibrate="isotonic").fit(TASK.X, TWO))
    ):
        path = tmp_path / f"{number}.safetensors"
        fitted.save(path)
        loaded = rds.load(path)
        loaded.device = "cpu"
        for epistemic in ("delta", "laplace"):
            assert loaded.predict_dist(TASK.X, epistemic=epistemic) == fitted.predict_dist(
                TASK.X, epistemic=epistemic
            )
            np.testing.assert_array_equal(
                loaded.epistemic_std(TASK.X, epistemic), fitted.epistemic_std(TASK.X, epistemic)
            )
        loaded.save(tmp_path / "again.safetensors")
        assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_files_of_the_first_versions(model: RDeepSenseRegressor, tmp_path: Path) -> None:
    model.save(tmp_path / "model.safetensors")
    header, tensors = model_file.read(tmp_path / "model.safetensors")
    del header["epistemic"]
    kept = {name: value for name, value in tensors.items() if not name.startswith("epistemic.")}
    model_file.write(tmp_path / "old.safetensors", header, kept)
    old = rds.load(tmp_path / "old.safetensors")
    assert old.predict_dist(TASK.X[:5]) == model.predict_dist(TASK.X[:5])
    with pytest.raises(InputError, match="older than epistemic uncertainty; fit the model again"):
        old.predict_dist(TASK.X, epistemic="laplace")


def test_a_network_without_dropout_has_laplace_alone() -> None:
    model = regressor(drop_prob=0.0).fit(TASK.X, TASK.y)
    assert model.fitted_.epistemic is not None
    assert model.fitted_.epistemic.noise_share[0] == 1
    assert (model.epistemic_std(TASK.X) > 0).all()
    with pytest.raises(InputError, match="drops nothing"):
        model.predict_dist(TASK.X, epistemic="delta")


def test_refusals(model: RDeepSenseRegressor) -> None:
    with pytest.raises(
        InputError, match="epistemic = 'guess' is unknown; accepted: delta, laplace"
    ):
        model.predict_dist(TASK.X, epistemic="guess")
    with pytest.raises(InputError, match="samples or epistemic, not both"):
        model.predict_dist(TASK.X, samples=5, epistemic="delta")
    with pytest.raises(InputError, match="method = 'guess' is unknown"):
        model.epistemic_std(TASK.X, method="guess")


def test_windows_and_a_network_of_ones_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3, 8))
    y = X[:, 0].mean(1) + 0.1 * rng.normal(size=200)

    def network() -> nn.Module:
        return nn.Sequential(nn.Conv1d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24, 1))

    model = regressor(network=network(), drop_prob=0.1, epochs=5).fit(X, y)
    model.save(tmp_path / "model.safetensors")
    loaded = rds.load(tmp_path / "model.safetensors", network=network())
    loaded.device = "cpu"
    for epistemic in ("delta", "laplace"):
        assert loaded.predict_dist(X, epistemic=epistemic) == model.predict_dist(
            X, epistemic=epistemic
        )


def test_a_sample_of_the_rows_stands_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The matrix of a sample is that of the table but for chance, not that of a small table."""
    train = simulate(3_000, 1)
    whole = regressor(epochs=5).fit(train.X, train.y)
    monkeypatch.setattr("rdeepsense.fitting.epistemic.MOST_TRAINED", 300)
    sampled = regressor(epochs=5).fit(train.X, train.y)
    ratio = sampled.epistemic_std(TASK.X) / whole.epistemic_std(TASK.X)
    assert 0.8 < np.median(ratio) < 1.25  # a table of 300 rows would have about 2.8
