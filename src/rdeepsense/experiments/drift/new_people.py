"""Groups never trained on: adapted by their first labels, and live in a stream of their own.

Whatever is labelled for the largest k is left out of the test for every k, so that figures compare.
How far adaptation may go, and the calibration, are chosen on the training groups alone: four
networks, each without a quarter of the groups (of the blocks), predict those that they left out.
The streams are all rows of each group in their order; a live model has its default rates there.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rdeepsense import calibration, metrics
from rdeepsense.distributions import AnyDistribution, concatenate
from rdeepsense.estimators.rdeepsense import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.experiments.drift.people import People, Rows, bpest_people, hapt_people
from rdeepsense.experiments.drift.trial import DriftTrial, Score, stream_scores
from rdeepsense.fitting.adaptation import prior_of, stream_of
from rdeepsense.live.replay import replay

FOLDS = 4
COVERAGE = 0.9
EVERY, EVERY_WORDS = 10, "1 in 10"


def activity(folder: Path, seed: int) -> DriftTrial:
    """Judge one seed of the users."""
    return study(hapt_people(folder), seed)


def pressure(folder: Path, seed: int) -> DriftTrial:
    """Judge one seed of the records, by blocks of them."""
    return study(bpest_people(folder), seed)


def pressure_by_record(folder: Path, seed: int) -> DriftTrial:
    """Judge one seed of the records, whose neighbours are trained on."""
    return study(bpest_people(folder, by_record=True), seed)


def study(people: People, seed: int) -> DriftTrial:
    """Fit once; judge each number of labels on the same rows, then replay each group."""
    begin = time.perf_counter()
    units = np.random.default_rng(seed).permutation(np.unique(people.unit))
    model = model_for(people, units[: -people.test], seed)
    prior = model.fitted_.adaptation
    dists: dict[int, list[AnyDistribution]] = {count: [] for count in people.labels}
    truths, taken, streams = [], [], []
    for group in np.unique(people.group[np.isin(people.unit, units[-people.test :])]):
        rows = people.group == group
        X, y = people.X[rows], people.y[rows]
        streams.append(replay(model, X, y, EVERY, live=model.live(COVERAGE)))
        rest = ~people.first(y, max(people.labels))
        if not rest.any():
            continue
        truths.append(y[rest])
        for count in people.labels:
            some = people.first(y, count)
            start = time.perf_counter()
            mine = model.adapt(X[some], y[some])
            taken.append(time.perf_counter() - start)
            dists[count].append(mine.predict_dist(X[rest]))
    truth = np.concatenate(truths)
    scores = [
        Score(
            "adapted" if count else "frozen",
            people.words.format(count) if count else "none",
            _figures(parts, truth),
        )
        for count, parts in dists.items()
    ]
    scores += stream_scores(streams, EVERY_WORDS)
    chosen = {"rows": prior.rows, "groups": prior.groups}
    chosen["adapt_milliseconds"] = 1e3 * float(np.median(taken))
    return DriftTrial(time.perf_counter() - begin, chosen, scores)


def model_for(people: People, units: Rows, seed: int) -> Any:
    """Fit; calibrate, and choose how far adaptation may go, on units that were left out."""
    model = _fitted_on(people, units, seed)
    parts = np.array_split(units, FOLDS)
    left = [(_fitted_on(people, units[~np.isin(units, own)], seed), own) for own in parts]
    dists, truths = [], []
    for one, own in left:
        rows = np.isin(people.unit, own)
        dists.append(one.fitted_.uncalibrated(people.X[rows].astype(float)))
        truths.append(people.y[rows])
    kind = "temperature" if people.is_classes else "scale"
    chosen = calibration.fit(kind, concatenate(dists), np.concatenate(truths))
    streams = []
    for one, own in left:
        fold = replace(one.fitted_, calibration=chosen)
        for group in np.unique(people.group[np.isin(people.unit, own)]):
            rows = people.group == group
            streams.append(stream_of(fold, people.X[rows].astype(float), people.y[rows]))
    prior = prior_of(streams)
    model.fitted_ = replace(model.fitted_, calibration=chosen, adaptation=prior)
    return model


def _fitted_on(people: People, units: Rows, seed: int) -> Any:
    """Fit on some units, of which the last few choose the step."""
    held = np.isin(people.unit_train, units[-people.validation :])
    train = np.isin(people.unit_train, units[: -people.validation])
    kind = RDeepSenseClassifier if people.is_classes else RDeepSenseRegressor
    model = kind(
        effort="quick",
        drop_prob=people.drop_prob,
        random_state=seed,
        device="cpu",
        keep_rows=0,
        verbose=False,
    )
    X, y = people.X_train, people.y_train
    return model.fit(X[train], y[train], validation=(X[held], y[held]))


def _figures(parts: list[AnyDistribution], truth: Rows) -> dict[str, float]:
    dist = concatenate(parts)
    figures = metrics.evaluate(dist, truth)
    if "mae" not in figures:
        return {name: float(figures[name]) for name in ("accuracy", "nll")}
    low, high = dist.interval(COVERAGE)
    return {
        "error": float(figures["mae"]),
        "coverage": float(np.mean((low <= truth) & (truth <= high))),
        "width": float(np.mean(high - low)),
        "nll": float(figures["nll"]),
    }
