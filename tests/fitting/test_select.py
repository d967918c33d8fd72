"""Choosing among heads, alphas and dropouts."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rdeepsense import (
    InterruptedTraining,
    RDeepSenseClassifier,
    RDeepSenseRegressor,
    load,
    metrics,
)
from rdeepsense.datasets import simulate
from rdeepsense.fitting import search
from rdeepsense.fitting.records import PAPER_ALPHAS
from rdeepsense.fitting.search import WORTH
from rdeepsense.training import Schedule, schedule

TASK = simulate(300, seed=0)
SMALL: dict[str, Any] = {"hidden": (16,), "epochs": 15, "random_state": 0, "device": "cpu"}


def test_few_rows_are_cross_validated_and_the_winner_trained_on_all(tmp_path: Path) -> None:
    model = RDeepSenseRegressor(**SMALL, alpha="auto", drop_prob="auto", likelihood="gaussian").fit(
        TASK.X, TASK.y
    )
    selection = model.selection_
    assert selection["how"] == "5-fold cross-validation"
    assert len(selection["trials"]) == 12
    nlls = [t["nll"] for t in selection["trials"]]
    assert selection["chosen"] == int(np.argmin(nlls))
    winner = selection["trials"][selection["chosen"]]
    assert (model.fitted_.networks.candidate.alpha, model.fitted_.networks.candidate.drop_prob) == (
        winner["alpha"],
        winner["drop_prob"],
    )
    # All folds of a candidate are judged at one step, which is one that was evaluated.
    schedule = Schedule.of(300, 300, 5e-3, 0, epochs=15)
    steps = {*range(0, schedule.steps, schedule.evaluate_every), schedule.steps}
    assert {t["best_step"] for t in selection["trials"]} <= steps
    assert model.training_["rows"] == 300
    assert model.training_["steps"] == winner["best_step"]
    assert model.validation_scores_["n"] == 300
    assert model.validation_scores_["nll"] == pytest.approx(winner["nll"])
    model.save(tmp_path / "m.safetensors")
    assert load(tmp_path / "m.safetensors").selection_ == selection


def test_out_of_fold_rows_are_not_trained_on() -> None:
    """Targets that are pure noise cannot be predicted out of fold, whatever is learnt by heart."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 3)), rng.standard_normal(200)
    model = RDeepSenseRegressor(
        hidden=(64,),
        epochs=60,
        random_state=0,
        device="cpu",
        drop_prob="auto",
        alpha=0.0,
        likelihood="gaussian",
    )
    model.fit(X, y)
    assert model.validation_scores_["rmse"] > 0.95
    assert model.validation_scores_["nll"] > 1.35


def test_fewer_groups_than_folds_are_judged_on_validation_rows() -> None:
    groups = np.arange(300) % 4
    model = RDeepSenseRegressor(**{**SMALL, "epochs": 1}).fit(TASK.X, TASK.y, groups=groups)
    assert model.selection_["how"] == "validation rows"
    assert model.training_["validated"] == "4-fold cross-validation by groups"


def sine(rows: int, pace: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
    """A fast sine with little noise, which a network learns slowly."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (rows, 1))
    return X, np.sin(pace * X[:, 0]) + 0.01 * rng.standard_normal(rows)


@pytest.mark.slow
def test_many_rows_are_judged_on_validation_rows_and_trained_longer_while_it_pays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "ALLOWANCE", 3)  # one longer training is enough to see it
    X, y = sine(6_000, pace=6.0)
    model = RDeepSenseRegressor(
        hidden=(16,),
        batch_size=256,
        random_state=0,
        device="cpu",
        likelihood="auto",
        drop_prob=0.05,
        alpha=0.5,
    )
    model.fit(X, y)
    assert model.selection_["how"] == "validation rows"
    lengths = model.selection_["lengths"]
    # A batch size that is given is kept.
    assert [step["steps"] for step in lengths] == [2520, 7560]
    assert lengths[1]["nll"] < lengths[0]["nll"] - WORTH
    assert model.validation_scores_["nll"] == pytest.approx(lengths[1]["nll"])
    fixed = model.set_params(epochs=3).fit(X, y)
    assert "lengths" not in fixed.selection_


@pytest.mark.parametrize(("rows", "on_all"), [(2_500, True), (5_100, False)])
def test_a_winner_is_trained_on_its_validation_rows_where_they_are_many(
    rows: int, on_all: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fifth of the rows is held out up to 5,000, a tenth beyond."""
    monkeypatch.setattr(schedule, "STEPS", (100, 100))
    monkeypatch.setattr(search, "ALLOWANCE", 0)
    X, y = sine(rows, pace=1.0)
    fixed = {"hidden": (8,), "drop_prob": 0.0, "likelihood": "gaussian", "batch_size": 250}
    model = RDeepSenseRegressor(**fixed, random_state=0, device="cpu").fit(X, y)
    held = rows // 5 if on_all else rows // 10
    assert model.training_["validation_rows"] == held == model.validation_scores_["n"]
    assert model.training_["rows"] == (rows if on_all else rows - held)
    assert ("then trained on all" in model.training_["validated"]) is on_all
    if on_all:  # as many epochs as were best
        best = model.selection_["trials"][model.selection_["chosen"]]["best_step"]
        assert model.training_["steps"] == round(best * 10 / 8)


@pytest.mark.slow
def test_a_cross_validated_winner_is_trained_longer_too() -> None:
    X, y = sine(200)
    options = {"hidden": (16,), "batch_size": 100, "random_state": 0, "device": "cpu"}
    model = RDeepSenseRegressor(**options, alpha="auto", drop_prob=0.0, likelihood="gaussian").fit(
        X, y
    )
    lengths = model.selection_["lengths"]
    assert lengths[1]["nll"] < lengths[0]["nll"] - WORTH
    assert model.validation_scores_["nll"] == pytest.approx(min(step["nll"] for step in lengths))
    assert model.training_["steps"] > 0.5 * lengths[0]["steps"]


def test_a_second_head_is_tried_at_the_leaders_drop_probability_only() -> None:
    model = RDeepSenseRegressor(**SMALL, alpha="auto", drop_prob="auto", likelihood="auto")
    trials = model.fit(TASK.X, TASK.y).selection_["trials"]
    assert [t["likelihood"] for t in trials] == ["student"] * 12 + ["gaussian"] * 2
    leader = min(trials[:12], key=lambda t: t["nll"])
    assert {t["drop_prob"] for t in trials[12:]} == {leader["drop_prob"]}


def test_the_papers_rule_takes_the_least_deviation_area() -> None:
    model = RDeepSenseRegressor(**SMALL, alpha="paper", drop_prob=0.05, likelihood="gaussian").fit(
        TASK.X, TASK.y
    )
    areas = [t["deviation_area"] for t in model.selection_["trials"]]
    assert model.selection_["by"] == "deviation_area"
    assert model.selection_["chosen"] == int(np.argmin(areas))
    classes = RDeepSenseClassifier(**SMALL, alpha="paper", drop_prob=0.05).fit(TASK.X, TASK.y > 50)
    assert classes.selection_["by"] == "nll"
    assert [t["alpha"] for t in classes.selection_["trials"]] == list(PAPER_ALPHAS)


def test_head_is_chosen_in_the_targets_units() -> None:
    """Heavy tails call for the Student-t, whatever the units."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (400, 1))
    y = 1e4 * (np.sin(X[:, 0]) + 0.1 * rng.standard_t(2.1, 400))
    model = RDeepSenseRegressor(
        **{**SMALL, "epochs": 60}, likelihood="auto", drop_prob=0.05, alpha=0.5
    ).fit(X, y)
    assert model.fitted_.networks.candidate.likelihood == "student"


def test_the_student_learns_its_degrees_of_freedom_in_the_default_time() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (3_000, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_t(2.5, 3_000)
    model = RDeepSenseRegressor(
        likelihood="student", random_state=0, device="cpu", effort="quick"
    ).fit(X, y)
    assert model.predict_dist(X[:1]).df.item() == pytest.approx(2.7, abs=0.6)
    assert metrics.deviation_area(model.predict_dist(X), y) < 0.02


def test_ctrl_c_ends_the_search_and_the_trained_candidates_compete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rdeepsense._progress import Silent
    from rdeepsense.fitting import trainer

    class InterruptAtOnce(Silent):
        def update(self, done: int, note: str) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    shown = iter([InterruptAtOnce()])
    monkeypatch.setattr(trainer, "progress_for", lambda _: next(shown, Silent()))
    model = RDeepSenseRegressor(**SMALL, likelihood="auto", drop_prob=0.05, alpha=0.5)
    with pytest.warns(InterruptedTraining, match="training was interrupted"):
        model.fit(TASK.X, TASK.y)
    assert {t["likelihood"] for t in model.selection_["trials"]} == {"student"}
    assert model.predict(TASK.X).shape == (300,)
