"""The choice of a network for windows by groups that were left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rdeepsense as rds
from rdeepsense.data.splits import Part
from rdeepsense.fitting import ladder, search
from rdeepsense.fitting import search as group_choice
from rdeepsense.fitting.records import Candidate, Trial, TriedArchitecture
from rdeepsense.fitting.search import SearchLimits
from rdeepsense.fitting.trainer import Judgement
from rdeepsense.networks import DeepSense

AUTO: dict[str, Any] = {
    "epochs": 4,
    "batch_size": 80,
    "learning_rate": 5e-3,
    "random_state": 0,
    "verbose": False,
    "device": "cpu",
}


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "SIZES", ((4, 6), (6, 12), (64, 128)))
    monkeypatch.setattr(ladder, "PLAINEST", ladder.Flattened((8,)))


@pytest.fixture
def fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer less, where it is not the choice that is tested."""
    monkeypatch.setattr(ladder, "ROTATIONS", (0.5, 0.0))
    monkeypatch.setattr(ladder, "SIZES", ((4, 6), (64, 128)))
    monkeypatch.setattr(group_choice, "OTHER_DROPS", (0.2,))


def worn(groups: int, each: int, angle: float, seed: int = 0) -> tuple[Any, Any, Any]:
    """Windows whose frequency is the class, at any phase, as each wearer has it turned."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), each)
    label = rng.integers(2, size=len(group))
    turns = np.outer(np.array([1, 3])[label], np.arange(24) / 12)
    wave = np.sin(2 * np.pi * (turns + rng.uniform(size=(len(group), 1))))
    turn = (angle * rng.normal(size=groups))[group, None]
    X = rng.normal(0, 0.3, (len(group), 24, 3))
    X[..., 0] += wave * np.cos(turn)
    X[..., 1] += wave * np.sin(turn)
    return X, label, group


def test_groups_choose_and_are_told(tmp_path: Path) -> None:
    X, y, groups = worn(6, 40, 0.6)
    model = rds.RDeepSenseClassifier(**AUTO).fit(X, y, groups=groups)
    selection = model.selection_
    assert selection["how"] == "5-fold cross-validation"
    told = selection["architectures"]
    turns = [one["arguments"].get("rotation_std") for one in told]
    # The usual size, then dense layers; 0.5 is clearly worse here, so 1.0 is not tried.
    assert turns[:4] == [0.5, 0.15, 0.0, None]
    assert len(told) == 5  # and the smaller size, with the rotation of the winner
    assert turns[4] in turns[:3]
    assert [one["chosen"] for one in told].count(True) == 1
    others = [one for one in told if not one["chosen"]]
    assert all(one["behind"]["standard_error"] > 0 for one in others)
    chosen = model.fitted_.networks.architecture
    assert isinstance(chosen, DeepSense)
    # Equal sizes that rows cannot tell apart: the more a window is turned, the better.
    behind = {one["arguments"].get("rotation_std"): one["behind"] for one in told[:3]}
    good = [t for t in turns[:3] if not behind[t] or behind[t]["difference"] <= 0]
    assert chosen.rotation_std >= max(good, default=0.0)
    model.save(tmp_path / "m")
    loaded = rds.load(tmp_path / "m")
    assert loaded.selection_ == selection
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_steps_enough_ask_for_dropout_and_larger_networks(
    fewer: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    clearly_best = group_choice.clearly_best

    def noted(usual: Judgement, others: list[Judgement]) -> Candidate:
        asked.extend(one.trial.candidate.drop_prob for one in [usual, *others])
        return clearly_best(usual, others)

    monkeypatch.setattr(group_choice, "clearly_best", noted)
    monkeypatch.setattr(group_choice, "CPU", SearchLimits(1_000, None, None, np.inf, True))
    monkeypatch.setattr(ladder, "MANY_WINDOWS", 200)
    monkeypatch.setattr(ladder, "SIZES", ((4, 6), (5, 6), (6, 8)))
    X, y, groups = worn(5, 42, 0.3)
    model = rds.RDeepSenseClassifier(**{**AUTO, "epochs": 1}).fit(X, y, groups=groups)
    sizes = [one["arguments"].get("filters") for one in model.selection_["architectures"]]
    assert sizes == [5, 5, None, 4, 6]
    assert asked == [0.1, 0.2]
    assert model.candidate_.drop_prob in asked


@pytest.mark.slow
def test_equal_seeds_give_equal_bits(fewer: None) -> None:
    X, y, groups = worn(5, 42, 0.3)
    options = {**AUTO, "epochs": 1}
    one, two = (rds.RDeepSenseClassifier(**options).fit(X, y, groups=groups) for _ in range(2))
    assert one.selection_ == two.selection_
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.slow
def test_numbers_have_their_heads_compared(fewer: None) -> None:
    X, y, groups = worn(5, 45, 0.3)
    target = y + 0.1 * np.random.default_rng(0).normal(size=len(y))
    model = rds.RDeepSenseRegressor(**{**AUTO, "epochs": 1}).fit(X, target, groups=groups)
    heads = {trial["likelihood"] for trial in model.selection_["trials"]}
    assert heads == {"gaussian", "student"}
    assert len({trial["drop_prob"] for trial in model.selection_["trials"]}) == 1


@pytest.mark.slow
def test_many_windows_are_chosen_for_on_a_sample(
    fewer: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SAMPLE", 330)
    X, y, groups = worn(20, 20, 0.3)
    model = rds.RDeepSenseClassifier(**{**AUTO, "epochs": 1}).fit(X, y, groups=groups)
    assert "5-fold cross-validation of a sample of" in model.selection_["how"]
    turns = [one["arguments"].get("rotation_std") for one in model.selection_["architectures"]]
    assert turns[:3] == [0.5, 0.0, None]


def test_too_few_groups_leave_the_choice_to_rows(fewer: None) -> None:
    X, y, groups = worn(4, 55, 0.3)
    model = rds.RDeepSenseClassifier(**{**AUTO, "epochs": 1}).fit(X, y, groups=groups)
    assert model.selection_["how"] == "validation rows"


def judged(drop: float, losses: list[float]) -> Judgement:
    trial = Trial(Candidate("categorical", 0.5, drop), float(np.mean(losses)), None, None, 1)
    return Judgement(trial, None, np.array(losses))


def test_less_dropout_must_win_by_more_than_its_error_between_groups() -> None:
    usual = judged(0.1, [1.0, 1.0, 1.0, 1.0])
    luck = judged(0.02, [0.2, 1.3, 1.1, 1.2])  # better on average, by one group alone
    skill = judged(0.02, [0.9, 0.95, 0.92, 0.9])
    choose = group_choice.clearly_best
    assert choose(usual, [luck]).drop_prob == 0.1
    assert choose(usual, [skill]).drop_prob == 0.02


@pytest.mark.parametrize(("last", "close"), [(0.19, True), (0.21, False), (-1.0, True)])
def test_close_is_within_two_standard_errors_of_the_best(last: float, close: bool) -> None:
    rows = [judged(0.1, [value] * 100) for value in (0.0, 5.0)]
    rows.append(judged(0.1, [last + 1.0, last - 1.0] * 50))  # a standard error of 0.1
    found = [(TriedArchitecture("DeepSense", {}, 1, one.trial.nll), one) for one in rows]
    assert group_choice.is_close(found) is close


def test_a_sample_takes_of_all_groups_alike() -> None:
    block = np.repeat([0, 1, 2], [100, 10, 50])
    part = Part(np.arange(160), np.ones(160), block)
    some = group_choice.spread(part, 70)
    assert np.bincount(some.block).tolist() == [30, 10, 30]
    assert group_choice.spread(part, 160) is part


@pytest.mark.slow
def test_what_a_choice_costs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows times networks of all trainings, counted where they are trained."""
    spent = []
    train = group_choice.Trainer.train

    def counted(self: Any, group: Any, folds: int, rows: Any, *more: Any, **options: Any) -> Any:
        done = train(self, group, folds, rows, *more, **options)
        schedule = done[2]
        spent.append(len(done[0]) * schedule.last_step * schedule.batch_size)
        return done

    monkeypatch.setattr(group_choice.Trainer, "train", counted)
    monkeypatch.setattr(group_choice, "CPU", SearchLimits(100, 4, 20, 6_000.0, False))
    X, y, groups = worn(6, 40, 0.3)
    options = {**AUTO, "epochs": None, "batch_size": None}
    model = rds.RDeepSenseClassifier(**options).fit(X, y, groups=groups)
    search, last = spent[:-2], spent[-2:]
    assert len(search) in (5, 6)  # three or four rotations, dense layers, a smaller size
    assert sum(search) <= 6 * 5 * 5 * 20
    assert sum(last) <= 1.3 * 6_000
    assert model.training_["validated"] == "5-fold cross-validation"
