"""`rdeepsense demo`: the simulated sensor and the page of live activities."""

from __future__ import annotations

import io
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from rdeepsense import __version__, metrics
from rdeepsense._records import Record
from rdeepsense.comparison.methods import completing
from rdeepsense.datasets import KnownTruth, kl_from_truth, simulate, truth_at
from rdeepsense.deploy.options import LabelledRows, Options
from rdeepsense.deploy.web.export import WebReport, export_web
from rdeepsense.distributions import Gaussian
from rdeepsense.estimators import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.networks import DeepSense
from rdeepsense.paper.cells import Machine
from rdeepsense.paper.tasks.hhar import LOG_CHANNELS as CHANNELS
from rdeepsense.paper.tasks.hhar import LOG_UNITS as UNITS
from rdeepsense.paper.tasks.hhar import SENSORS, Log, simulate_log
from rdeepsense.plot.figures import Slice
from rdeepsense.windowing import Windows, windows

# --------------------------------------------------------------------------------------------------
# A fit of the simulated sensor, compared with the known distribution
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# The page of `rdeepsense demo --web`: activities of simulated users
# --------------------------------------------------------------------------------------------------

USERS, TEST_USERS = 12, 6
NOTE = "Simulated people, and a simulated recording."
SECONDS, REPLAYED = 16.0, 10.0  # of each activity of a user
WINDOW, HOP = 2.4, 0.48
NETWORK = DeepSense((3, 3), filters=8, hidden=24, layers=1, rotation_std=0.1)
EPOCHS = 12
SHAKEN = 6.0  # seconds, at the recording's end, of a movement that nobody was trained on


@dataclass(frozen=True)
class ActivityPage:
    """The page, and the accuracy on users that the model was not trained on."""

    report: WebReport
    model: RDeepSenseClassifier
    accuracy: float
    users: int


def make_page(
    folder: Path, seed: int = 0, users: int = USERS, epochs: int = EPOCHS
) -> ActivityPage:
    """Train on simulated users and write the page, with the recording of another one."""
    train = cut(simulate_log(range(users), SECONDS, seed))
    test = cut(simulate_log(range(users, users + TEST_USERS), SECONDS, seed))
    model = RDeepSenseClassifier(
        network=NETWORK,
        epochs=epochs,
        batch_size=64,
        learning_rate=3e-3,
        drop_prob=0.1,
        alpha=0.5,
        effort="quick",
        random_state=seed,
        verbose=False,
    )
    assert train.y is not None
    assert test.y is not None
    model.fit(train, train.y)
    model.describe(target_names=["activity"], feature_units=list(UNITS))
    accuracy = float(np.mean(model.predict(test) == test.y))
    fitted = model.fitted_
    text = csv_text(recording(users + TEST_USERS, seed))
    rows = LabelledRows.of(fitted)
    options = Options(dtype="int8", max_nll_change=0.2, live=True)
    report = export_web(fitted, folder, options, rows, recording=text, note=NOTE)
    return ActivityPage(report, model, accuracy, TEST_USERS)


def cut(log: Log) -> Windows:
    """Cut windows as the page does."""
    sensors = {name: list(own) for name, own in SENSORS.items()}
    return windows(
        log,
        time="t",
        sensors=sensors,
        window=WINDOW,
        hop=HOP,
        rate=50,
        by=["user", "recording"],
        label="activity",
    )


def recording(user: int, seed: int) -> Log:
    """Return the log of one user who does everything, and in the end shakes the phone."""
    log = simulate_log([user], REPLAYED, seed, pause=0.0)
    count = int(SHAKEN * 50)
    rng = np.random.default_rng((seed, user, 1))
    t = log["t"][-1] + np.arange(1, count + 1) / 50
    swing = np.sin(2 * np.pi * 4.5 * t[:, None] + rng.uniform(0, 6, len(CHANNELS)))
    values = swing * np.array([60.0, 45.0, 50.0, 25.0, 30.0, 20.0])
    shaken = dict(zip(CHANNELS, values.T, strict=True)) | {"t": t}
    texts = {"activity": "shaken", "user": log["user"][0], "recording": log["recording"][-1] + 1}
    shaken |= {name: np.full(count, text) for name, text in texts.items()}
    return {name: np.concatenate([values, shaken[name]]) for name, values in log.items()}


def csv_text(log: Log) -> str:
    """Write a log as the page replays it; five digits are more than a phone has."""
    names = ["t", *CHANNELS, "activity"]
    out = io.StringIO()
    out.write(",".join(names) + "\n")
    for row in zip(*(log[name] for name in names), strict=True):
        out.write(",".join([f"{row[0]:.2f}", *(f"{v:.4g}" for v in row[1:-1]), row[-1]]) + "\n")
    return out.getvalue()
