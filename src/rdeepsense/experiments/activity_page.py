"""The page that `rdeepsense demo --web` shows: activities of simulated users, live."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rdeepsense.deploy.labelled_rows import LabelledRows
from rdeepsense.deploy.options import Options
from rdeepsense.deploy.web.export import export_web
from rdeepsense.deploy.web.report import WebReport
from rdeepsense.estimators import RDeepSenseClassifier
from rdeepsense.experiments.tasks.simulate.hhar_log import (
    CHANNELS,
    SENSORS,
    UNITS,
    Log,
    simulate_log,
)
from rdeepsense.networks import DeepSense
from rdeepsense.windowing import Windows, windows

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
