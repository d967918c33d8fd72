"""Smoothing of decisions on simulated recordings whose truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rdeepsense.calibration.decisions import Streams, fit_smoothing
from rdeepsense.distributions import Categorical
from rdeepsense.metrics import ece
from rdeepsense.windowing import Recipe
from rdeepsense.windowing.stream import Smoothing, prior_of

SAMPLES, HOP = 20, 5
PRIOR = np.array([0.5, 0.3, 0.2])
RECIPE = Recipe("t", {"s": ("x", "y")}, 2.0, 0.5, 10.0, 0.3)
NOISE = 3.0


def simulated(recordings: int, seed: int, lasts: float = 20.0) -> Streams:
    """A class that lasts some seconds, noise at each sample, and what its window alone says.

    Windows share three quarters of their samples with the next one. Where the class changes inside
    of a window, its last sample's counts.
    """
    rng = np.random.default_rng(seed)
    places = np.array([[1.0, 0.0], [-0.5, 0.8], [-0.5, -0.8]])
    probs, truth, runs = [], [], []
    for _ in range(recordings):
        n = 1_200
        anew = rng.random(n) < 1 / (lasts * 10)
        anew[0] = True
        drawn = rng.choice(3, size=n, p=PRIOR)
        kind = drawn[np.maximum.accumulate(np.where(anew, np.arange(n), 0))]
        x = places[kind] + NOISE * rng.normal(size=(n, 2))
        sums = np.concatenate([np.zeros((1, 2)), np.cumsum(x, 0)])
        ends = np.arange(SAMPLES, n + 1, HOP)
        mean = (sums[ends] - sums[ends - SAMPLES]) / SAMPLES
        far = ((mean[:, None] - places) ** 2).sum(2)
        odds = PRIOR * np.exp(-0.5 * far * SAMPLES / NOISE**2)
        runs.append(slice(len(truth), len(truth) + len(ends)))
        probs += list(odds / odds.sum(1, keepdims=True))
        truth += kind[ends - 1].tolist()
    kept = np.ones(len(truth), np.bool_)
    return Streams(np.array(probs), kept, np.array(truth), runs, PRIOR)


@pytest.fixture(scope="module")
def fitted() -> Smoothing:
    return fit_smoothing(simulated(12, 0), RECIPE)


@pytest.fixture(scope="module")
def fresh() -> Streams:
    return simulated(150, 1)


def calibration(streams: Streams, smoothing: Smoothing) -> float:
    """The expected calibration error of b."""
    return float(ece(Categorical(streams.beliefs(smoothing)), streams.truth[streams.rows]))


def test_what_is_found_is_what_was_simulated(fitted: Smoothing) -> None:
    # Drawn anew once in 20 s, which four windows speak of; windows come every 0.5 s.
    assert 0.5 / 20 < fitted.change < 4 * 0.5 / 20
    # A quarter of each window is new.
    assert fitted.evidence == pytest.approx(0.25, abs=0.1)


def test_the_probability_is_calibrated(fitted: Smoothing, fresh: Streams) -> None:
    assert calibration(fresh, fitted) < 0.015
    # Windows that were taken as independent would be far too sure.
    naive = Smoothing(1.0, fitted.change)
    assert calibration(fresh, naive) > 3 * calibration(fresh, fitted)
    assert fresh.nll(fitted) < fresh.nll(naive) - 0.02


def test_the_probability_of_the_label_is_how_often_it_is_right(
    fitted: Smoothing, fresh: Streams
) -> None:
    """Also where hysteresis holds a label that is no longer the most probable one."""
    labels, beliefs = fresh.labels(fitted), fresh.beliefs(fitted)
    truth = fresh.truth[fresh.rows]
    has = labels >= 0
    stated = beliefs[np.arange(len(labels)), labels]
    right = labels == truth
    assert has.mean() > 0.7
    for low, high in ((0.4, 0.6), (0.6, 0.8), (0.8, 0.95), (0.95, 1.0)):
        inside = has & (stated >= low) & (stated < high)
        assert inside.sum() > 300
        assert right[inside].mean() == pytest.approx(stated[inside].mean(), abs=0.05)


def test_smoothing_is_worth_it(fitted: Smoothing, fresh: Streams) -> None:
    truth, alone = fresh.truth[fresh.rows], fresh.probs[fresh.rows]
    beliefs, labels = fresh.beliefs(fitted), fresh.labels(fitted)
    nll = -np.log(alone[np.arange(len(truth)), truth]).mean()
    assert fresh.nll(fitted) < nll - 0.1
    assert (beliefs.argmax(1) == truth).mean() > (alone.argmax(1) == truth).mean() + 0.05
    # Hysteresis: labels change hardly more often than the truth, the windows' own far more.
    said = np.diff(labels[labels >= 0]) != 0
    flickers = np.diff(alone.argmax(1)) != 0
    assert said.sum() < 1.5 * fresh.changes < flickers.sum()


def test_few_windows_leave_the_belief() -> None:
    believed = Smoothing.unseen(RECIPE)
    assert believed == Smoothing(evidence=0.125, change=0.5 / 30)
    short = simulated(1, 0)
    few = Streams(short.probs[:10], short.trusted, short.truth, [slice(0, 10)], PRIOR)
    assert fit_smoothing(few, RECIPE) == believed
    # Recordings of one activity each never show a change.
    runs = [slice(a, a + 20) for a in range(0, 200, 20)]
    one = Streams(short.probs, short.trusted, np.arange(200) // 20 % 3, runs, PRIOR)
    assert one.changes == 0
    assert fit_smoothing(one, RECIPE).change == pytest.approx(believed.change)
    assert fit_smoothing(one, RECIPE).evidence != believed.evidence


def test_beliefs_are_those_of_one_run_after_the_other(fitted: Smoothing) -> None:
    streams = simulated(3, 2)
    streams.trusted[5:9] = False
    uneven = Streams(
        streams.probs, streams.trusted, streams.truth, [slice(0, 50), slice(60, 61), slice(70, 90)],
        PRIOR,
    )  # fmt: skip
    wanted: list[Any] = []
    for run in uneven.runs:
        belief = PRIOR
        for k in range(run.start, run.stop):
            probs = streams.probs[k] if streams.trusted[k] else None
            belief = fitted.next(belief, probs, PRIOR)
            wanted.append(belief)
    np.testing.assert_allclose(uneven.beliefs(fitted), wanted, rtol=1e-12)


def test_halves_share_no_window() -> None:
    streams = simulated(5, 3)
    first, second = streams.halves()
    assert (len(first.runs), len(second.runs)) == (3, 2)
    assert sorted([*first.rows, *second.rows]) == list(range(len(streams.truth)))
    alone = Streams(streams.probs, streams.trusted, streams.truth, [slice(10, 31)], PRIOR)
    assert [part.rows.tolist() for part in alone.halves()] == [
        list(range(10, 20)), list(range(20, 31))
    ]  # fmt: skip


def test_long_runs_are_cut() -> None:
    streams = simulated(1, 3)
    pieces = Streams(streams.probs, streams.trusted, streams.truth, [slice(3, 14)], PRIOR).pieces(5)
    assert list(pieces.runs) == [slice(3, 8), slice(8, 13), slice(13, 14)]


def test_priors_have_no_zero() -> None:
    found = prior_of(np.array([0.0, 1.0]), 2)
    assert found.sum() == pytest.approx(1)
    assert found[0] == pytest.approx(1e-6, rel=1e-3)
    assert prior_of(None, 4).tolist() == [0.25] * 4
