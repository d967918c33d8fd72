"""Fine-tuning for int8: it trains the network that the device runs, towards the fitted one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from deploy.folded_models import finished
from deploy.random_models import draw
from torch.distributions import Categorical, Normal, kl_divergence

from rdeepsense._progress import Silent
from rdeepsense.calibration import Scale
from rdeepsense.deploy import fine_tune
from rdeepsense.deploy import fine_tune as rounded
from rdeepsense.deploy import quantise as quantisation
from rdeepsense.deploy.fine_tune import CalibratedHead, Rounded, fine_tuned, quantise_or_tune
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.folded.model import DenseLayer
from rdeepsense.deploy.quality import FineTuning, Quality, quality
from rdeepsense.deploy.quantise import (
    NetworkRunner,
    best_units,
    integers,
    quantise,
    reach_of,
    standardised,
    to_bytes,
    together,
)
from rdeepsense.errors import InputError
from rdeepsense.estimators import RDeepSenseRegressor
from rdeepsense.estimators.base import fitted_model


def law(rows: int, seed: int) -> tuple[Any, Any]:
    """A wide range and hardly any noise: bytes are coarse beside the predicted std."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return X, 10 * np.tanh(3 * X[:, 0]) + X[:, 1] ** 3 + 0.01 * rng.normal(size=rows)


@pytest.fixture(scope="module")
def precise() -> RDeepSenseRegressor:
    settings: dict[str, Any] = {"hidden": (16, 16), "drop_prob": 0.0, "likelihood": "gaussian"}
    model = RDeepSenseRegressor(
        **settings, epochs=30, random_state=0, verbose=False, effort="quick"
    )
    return model.fit(*law(2000, 0))


@pytest.mark.slow
def test_a_coarse_network_comes_back_within_reach(
    precise: RDeepSenseRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five bits instead of eight."""
    for module in (rounded, quantisation):
        monkeypatch.setattr(module, "BYTE", 31)
    folded, (X, y) = fold(precise), precise.fitted_.kept_rows
    test = law(4000, 1)
    fitted = fitted_model(precise)
    before = quality(NetworkRunner(folded, quantise(folded, X)), fitted, *test)
    tuned = fine_tuned(fitted, folded, X, y, Silent())
    after = quality(NetworkRunner(folded, tuned), fitted, *test)
    assert before.nll_change > 0.2
    assert after.nll_change < 0.7 * before.nll_change
    assert after.after["coverage_90"] > 0.9


@pytest.mark.parametrize("seed", range(8))
def test_training_sees_what_the_device_computes(seed: int) -> None:
    """Layer by layer the same bytes; the device rounds its inputs and biases a little as well."""
    drawn = draw(seed, widest=40, most=6)
    folded, X = fold(drawn.estimator), drawn.X.astype(np.float32)
    ready = standardised(folded.layers)
    units = best_units(folded, X, ready)
    network = integers(X, ready, units, 8.0, corrected=False)
    student = Rounded(ready.dense, units)
    q, step = network.inputs(X), np.ones((len(X), 1), np.float32)
    h = torch.from_numpy((X - ready.centre) * ready.per_scale)
    with torch.no_grad():
        for k, layer in enumerate(network.layers[:-1]):
            (q, step), h = to_bytes(layer, q, step), student.hidden(k, h)
            counts = np.rint(h.numpy() / step)
            assert np.abs(counts - q).max() <= 1
            assert np.mean(counts != q) < 0.05
            h = torch.from_numpy(q * step).float()
        found = student.last(h).double().numpy()
    np.testing.assert_allclose(found, network.raw(X), rtol=1e-3, atol=1e-3 * np.abs(found).max())


@pytest.mark.parametrize("seed", range(6))
def test_nothing_learnt_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scaling of targets goes out and in again: with a rate of 0 the same integers come out."""
    monkeypatch.setattr(fine_tune, "LEARNING_RATE", 0.0)
    monkeypatch.setattr(fine_tune, "STEPS", 2)
    drawn = draw(seed, widest=40, most=6)
    folded, X = fold(drawn.estimator), drawn.X
    facts = folded.facts
    y = np.zeros(len(X) if facts.is_classifier else (len(X), facts.outputs))
    tuned = fine_tuned(fitted_model(drawn.estimator), folded, X, y, Silent())
    ready = standardised(folded.layers)
    units, reach = best_units(folded, X, ready), reach_of(folded, X, ready)
    plain = together(integers(X, ready, units, reach, corrected=False), X)
    wanted, found = finished(folded, plain.raw(X)), finished(folded, tuned.raw(X))
    apart = np.abs(found - wanted) / (1.0 if facts.is_classifier else wanted[1])
    assert np.median(apart) < 1e-5  # float32 may move a weight at a half
    assert apart.max() < 0.1


@pytest.mark.parametrize("factor", [None, 1.7])
def test_divergence_and_nll_are_those_of_the_calibrated_distribution(
    precise: RDeepSenseRegressor, factor: float | None
) -> None:
    chosen = None if factor is None else Scale(factor)
    fitted = replace(fitted_model(precise), calibration=chosen, unlike=None)
    task = CalibratedHead(fitted)
    raw = torch.randn(2, 50, 2, generator=torch.Generator().manual_seed(0))
    P, Q = (task.head(one) for one in raw)
    widths = [(factor or 1.0) * params.var.sqrt() for params in (P, Q)]
    normals = [Normal(params.mean, width) for params, width in zip((P, Q), widths, strict=True)]
    torch.testing.assert_close(task.divergence(P, Q), kl_divergence(*normals).mean())
    # The NLL in the network's units: of the model that is exported, less log(factor).
    X, y = law(50, 3)
    z = torch.from_numpy(precise.fitted_.inputs.scaler.transform(X, torch.float32).numpy())
    with torch.no_grad():
        mine = task.nll(task.head(precise.network_.cpu().body(z)), task.labels(y))
    target = precise.fitted_.target_scaler
    assert target is not None
    dist = fitted.distribution(X)
    std, mean = dist.std / target.scale, (dist.mean - target.shift) / target.scale
    labels = (y - target.shift) / target.scale
    wanted = np.mean(0.5 * np.log(2 * np.pi * std**2) + 0.5 * ((labels - mean) / std) ** 2)
    assert float(mine) == pytest.approx(wanted - math.log(factor or 1.0), abs=1e-4)
    assert task.head.outputs == 1


def test_divergence_of_classes() -> None:
    drawn = draw(2, widest=10, most=5)
    task = CalibratedHead(fitted_model(drawn.estimator))
    raw = torch.randn(2, 20, task.head.columns, generator=torch.Generator().manual_seed(0))
    P, Q = (Categorical(logits=one) for one in raw)
    found = task.divergence(task.head(raw[0]), task.head(raw[1]))
    torch.testing.assert_close(found, kl_divergence(P, Q).mean())


def test_the_gradient_goes_straight_through_the_rounding() -> None:
    layers = [
        DenseLayer(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([0.3, 0.0])),
        DenseLayer(np.array([[1.0, 0.0]]), np.zeros(1)),
    ]
    student = Rounded(layers, [np.array([0.5, 0.5])])
    # The second unit has 51 / 0.5 = 102 units, so that a step is 102 / 255 = 0.4 of them or 0.2.
    for x, counts, slope in ((0.13, 3, 2.0), (1.02, 12, 2.0), (1.23, 14, 2.0), (-1.0, 0, 0.0)):
        z = torch.tensor([[x, 51.0]], requires_grad=True)
        raw = student(z)
        assert float(raw.detach()) == pytest.approx(0.2 * counts)
        (gradient,) = torch.autograd.grad(raw, z)
        assert float(gradient[0, 0]) == pytest.approx(slope)


def test_what_is_good_enough_is_left_alone(precise: RDeepSenseRegressor) -> None:
    folded = fold(precise)
    X, _ = precise.fitted_.kept_rows
    network, made = quantise_or_tune(
        fitted_model(precise), folded, precise.fitted_.kept_rows, most=10.0
    )
    assert made is None
    plain = quantise(folded, X[::2])
    assert np.array_equal(network.raw(X), plain.raw(X))


def test_what_is_not_says_what_was_done(
    precise: RDeepSenseRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fine_tune, "STEPS", 3)
    folded, (X, y) = fold(precise), precise.fitted_.kept_rows
    told: list[int] = []

    class Told(Silent):
        def start(self, title: str, total: int, done: int) -> None:
            told.append(total)

    fitted = fitted_model(precise)
    network, made = quantise_or_tune(fitted, folded, (X, y), -1.0, Told())
    plain = quantise(folded, X[::2])
    rise = quality(NetworkRunner(folded, plain), fitted, X[1::2], y[1::2]).nll_change
    assert made == FineTuning(rows=200, steps=3, nll_change_without=rise)
    assert told == [3]
    assert not np.array_equal(network.raw(X), plain.raw(X))


def test_rows_that_judge_are_not_learnt_from(
    precise: RDeepSenseRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(fine_tune, "STEPS", 1)
    monkeypatch.setattr(
        fine_tune, "quantise", lambda *given: seen.append(given[1]) or quantise(*given)
    )
    monkeypatch.setattr(fine_tune, "fine_tuned", lambda *given: seen.extend(given[2:4]) or None)
    worse = Quality(1, {"nll": 0.0}, {"nll": 1.0})
    monkeypatch.setattr(fine_tune, "quality", lambda *given: seen.extend(given[2:]) or worse)
    X, y = law(30, 4)
    quantise_or_tune(fitted_model(precise), fold(precise), (X, y), 0.02)
    for found, wanted in zip(seen, (X[::2], X[1::2], y[1::2], X[::2], y[::2]), strict=True):
        assert np.array_equal(found, wanted)


def test_missing_inputs_count_as_their_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fine_tune, "STEPS", 5)
    X, y = law(400, 0)
    X[::3, 1] = np.nan
    model = RDeepSenseRegressor(
        hidden=(8,), epochs=3, missing="mean", verbose=False, effort="quick"
    ).fit(X, y)
    tuned = fine_tuned(fitted_model(model), fold(model), X, y, Silent())
    assert np.isfinite(tuned.raw(X)).all()


def test_needs_labelled_rows(precise: RDeepSenseRegressor) -> None:
    with pytest.raises(InputError, match="two labelled rows or more; give rows="):
        quantise_or_tune(fitted_model(precise), fold(precise), law(1, 0), 0.02)
