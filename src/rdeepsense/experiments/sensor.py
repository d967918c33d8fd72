"""A simulated sensor, fitted and compared with its known truth."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from rdeepsense import __version__, metrics
from rdeepsense.distributions import Gaussian
from rdeepsense.estimators import RDeepSenseRegressor
from rdeepsense.experiments.completing import completing
from rdeepsense.experiments.machine import Machine
from rdeepsense.experiments.records import Record
from rdeepsense.experiments.tasks.known_truth import KnownTruth, kl_from_truth, simulate, truth_at
from rdeepsense.plot.figures import Slice

PASSES = 10
COVERAGES = (50, 80, 90, 95)
FIGURES = ("kl_from_truth", "nll", "deviation_area", "deviation_area_signed", "rmse_log_std",
           "rmse_mean", *(f"coverage_{level}" for level in COVERAGES))  # fmt: skip


@dataclass(frozen=True)
class UsedMachine(Machine):
    """The machine, and how many threads of it were used."""

    threads_used: int = 1


@dataclass(frozen=True)
class SensorResults(Record):
    """The figures of each predictor of the sensor, the truth among them."""

    data: str
    simulated: bool
    seed: int
    rows: Mapping[str, int]  # by part
    deviation_floor: float
    predictors: Mapping[str, Mapping[str, float]]
    fit_seconds: float
    machine: UsedMachine
    versions: Mapping[str, str]


@dataclass(frozen=True)
class FittedSensor:
    """The model, its prediction of the test rows and along one input, and its results."""

    model: RDeepSenseRegressor
    test: KnownTruth
    predicted: Gaussian
    along: Slice
    results: SensorResults


def fit_sensor(seed: int, rows: int, test_rows: int) -> FittedSensor:
    """Simulate, fit and score the sensor: the truth, one pass, and sampled passes."""
    train, test = simulate(rows, 2 * seed), simulate(test_rows, 2 * seed + 1)
    begin = time.perf_counter()
    with completing():
        model = RDeepSenseRegressor(likelihood="gaussian", effort="quick", random_state=seed).fit(
            train.X, train.y
        )
    fit_seconds = time.perf_counter() - begin
    once, once_seconds = _timed(model, test, None)
    often, often_seconds = _timed(model, test, PASSES)
    predictors = {
        "truth": _compare(test.truth, test, passes=0, seconds=0.0),
        "RDeepSense": _compare(once, test, passes=1, seconds=once_seconds),
        f"RDeepSense-MC{PASSES}": _compare(often, test, passes=PASSES, seconds=often_seconds),
    }
    results = SensorResults(
        data="simulated: the known-truth task",
        simulated=True,
        seed=seed,
        rows={
            "train": model.training_["rows"],
            "validation": model.training_["validation_rows"],
            "test": len(test.y),
        },
        deviation_floor=metrics.deviation_floor(len(test.y)),
        predictors=predictors,
        fit_seconds=fit_seconds,
        machine=UsedMachine.this(),
        versions={
            "rdeepsense": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
    )
    return FittedSensor(model, test, once, _slice(model, seed), results)


def _timed(
    model: RDeepSenseRegressor, test: KnownTruth, samples: int | None
) -> tuple[Gaussian, float]:
    begin = time.perf_counter()
    dist = model.predict_dist(test.X, samples)
    assert isinstance(dist, Gaussian)
    return dist, time.perf_counter() - begin


def _compare(dist: Gaussian, test: KnownTruth, passes: int, seconds: float) -> dict[str, float]:
    """Return the figures of one predictor; mean and std are compared with those of y given x."""
    figures = metrics.evaluate(dist, test.y) | {
        "kl_from_truth": kl_from_truth(test.truth, dist),
        "rmse_log_std": float(np.sqrt(np.mean(np.log(dist.std / test.truth.std) ** 2))),
        "rmse_mean": float(np.sqrt(np.mean((dist.mean - test.truth.mean) ** 2))),
    }
    chosen = {key: figures[key] for key in FIGURES}
    return chosen | {"passes": passes, "seconds": seconds}


def _slice(model: RDeepSenseRegressor, seed: int) -> Slice:
    """Predict along x0 at x1 = x2 = 1, x3 = 0."""
    x0 = np.linspace(-2, 2, 300)
    X = np.column_stack([x0, np.ones_like(x0), np.ones_like(x0), np.zeros_like(x0)])
    truth = truth_at(X)
    return Slice(
        x=x0,
        truth=truth,
        predicted=model.predict_dist(X),
        drawn=truth.sample(1, np.random.default_rng(seed))[0],
        label="input x0, at x1 = x2 = 1 and x3 = 0",
    )
