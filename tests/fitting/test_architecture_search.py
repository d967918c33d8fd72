"""The choice of the network: its stages by hand, and whole fits."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rdeepsense as rds
from rdeepsense.fitting.ladder import VERY_MANY_ROWS, ladder, wider
from rdeepsense.fitting.records import Candidate, Trial, TriedArchitecture, candidates
from rdeepsense.fitting.search import (
    Leaderboard,
    around,
    choose_architecture,
    coarse_grid,
    smallest_good,
)
from rdeepsense.fitting.trainer import Judgement
from rdeepsense.networks import Dense, Flattened, Periodic

AUTO: dict[str, Any] = {
    "hidden": "auto",
    "drop_prob": 0.05,
    "alpha": 0.5,
    "random_state": 0,
    "verbose": False,
    "device": "cpu",
}


def bent(rows: int, seed: int = 0) -> tuple[Any, Any]:
    """A target that bends sharply along one input."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (rows, 2))
    return X, np.sin(9 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=rows)


def test_the_ladder_grows_with_the_rows() -> None:
    assert ladder(199, (3,)) == (Dense((64, 64)),)
    assert ladder(1_000, (4, 3)) == (Flattened((64, 64)),)  # windows
    assert [type(a) for a in ladder(1_000, (3,))] == [Dense, Dense, Periodic, Periodic]
    assert Dense((256, 256, 256)) in ladder(3_000, (3,))
    assert Dense((500, 500, 500)) in ladder(20_000, (3,))
    assert not any(isinstance(a, Periodic) for a in ladder(1_000, (65,)))


def test_the_grid_of_each_stage() -> None:
    grid = candidates(("student", "gaussian"), "auto", "auto")
    assert [(c.likelihood, c.alpha, c.drop_prob) for c in coarse_grid(grid)] == [
        ("student", 0.5, 0.01),
        ("student", 0.5, 0.05),
        ("student", 0.5, 0.2),
    ]
    left = around(grid, Candidate("student", 0.5, 0.05))
    assert [(c.alpha, c.drop_prob) for c in left if c.likelihood == "student"] == [
        (0.0, 0.05),
        (0.5, 0.02),
        (0.5, 0.05),
        (0.5, 0.1),
    ]
    assert {c.drop_prob for c in left if c.likelihood == "gaussian"} == {0.02, 0.05, 0.1}
    one = candidates(("student",), 0.3, 0.1)
    assert tuple(coarse_grid(one)) == around(one, one[0]) == one


def tried(size: int, losses: list[float]) -> tuple[TriedArchitecture, Judgement]:
    values = np.array(losses)
    trial = Trial(Candidate("student", 0.5, 0.1), float(values.mean()), None, None, 1)
    return TriedArchitecture("Dense", {}, size, trial.nll), Judgement(trial, None, values)


def test_a_smaller_network_wins_where_rows_cannot_tell() -> None:
    large = tried(100, [0.0, 0.0, 0.0, 0.0])
    noisy = tried(10, [1.0, -1.0, 1.2, -0.8])  # worse by 0.1, with an error of 0.5
    worse = tried(1, [0.5, 0.6, 0.5, 0.6])
    assert smallest_good([large, noisy, worse]) == 1
    assert smallest_good([worse, large]) == 1
    assert smallest_good([large]) == 0


@pytest.mark.slow
# Cross-validated, and on validation rows.
@pytest.mark.parametrize(("rows", "epochs"), [(260, 80), (2_600, 12)])
def test_it_finds_periodic_embeddings_where_they_help(
    rows: int, epochs: int, tmp_path: Path
) -> None:
    X, y = bent(rows)
    model = rds.RDeepSenseRegressor(**AUTO, likelihood="student", epochs=epochs).fit(X, y)
    architecture = model.fitted_.networks.architecture
    assert isinstance(architecture, Periodic)
    told = model.selection_["architectures"]
    assert [one["chosen"] for one in told].count(True) == 1
    chosen = next(one for one in told if one["chosen"])
    assert (chosen["name"], chosen["arguments"]["std"]) == ("Periodic", architecture.std)
    dense = min(one["nll"] for one in told if one["name"] == "Dense")
    assert chosen["nll"] < dense - 0.2
    again = rds.RDeepSenseRegressor(**AUTO, likelihood="student", epochs=epochs).fit(X, y)
    assert again.predict_dist(X) == model.predict_dist(X)
    model.save(tmp_path / "m")
    loaded = rds.load(tmp_path / "m")
    assert (loaded.hidden, loaded.network) == ("auto", None)
    assert loaded.fitted_.networks.architecture == architecture
    assert loaded.selection_ == model.selection_
    assert loaded.predict_dist(X) == model.predict_dist(X)


@pytest.mark.slow
def test_everything_may_be_open() -> None:
    X, y = bent(220)
    arguments = {**AUTO, "alpha": "auto", "drop_prob": "auto", "epochs": 2}
    model = rds.RDeepSenseRegressor(**arguments, likelihood="auto").fit(X, y)
    assert len(model.selection_["architectures"]) == 4
    # Three drop probabilities and the other alpha, then both alphas of the other head; at the end
    # of the grid there is one neighbour less.
    assert len(model.selection_["trials"]) == (5 if model.candidate_.drop_prob >= 0.1 else 6)
    classes = rds.RDeepSenseClassifier(**arguments).fit(X, y > 0)
    assert len(classes.selection_["architectures"]) == 4


def test_few_rows_have_one_small_network() -> None:
    X, y = bent(60)
    model = rds.RDeepSenseRegressor(**AUTO, epochs=1).fit(X, y)
    assert model.fitted_.networks.architecture == Dense((64, 64))


def test_a_network_that_is_given_stays() -> None:
    X, y = bent(220)
    fixed = {**AUTO, "likelihood": "student"}
    model = rds.RDeepSenseRegressor(network=Dense((5,)), epochs=1, **fixed).fit(X, y)
    assert model.fitted_.networks.architecture == Dense((5,))
    assert model.selection_ is None


def test_no_time_is_one_architecture_and_one_candidate() -> None:
    X, y = bent(220)
    arguments = {**AUTO, "drop_prob": "auto", "epochs": 1, "max_seconds": 0}
    model = rds.RDeepSenseRegressor(likelihood="auto", **arguments).fit(X, y)
    assert len(model.selection_["architectures"]) == 1
    assert {trial["likelihood"] for trial in model.selection_["trials"]} == {"student"}
    with pytest.raises(rds.InputError, match="max_seconds"):
        rds.RDeepSenseRegressor(max_seconds=-1).fit(X, y)


@pytest.mark.parametrize("kind", [rds.MCDropRegressor, rds.SSPRegressor])
def test_other_methods_may_leave_it_open_too(kind: type) -> None:
    X, y = bent(220)
    model = kind(hidden="auto", epochs=1, random_state=0, device="cpu").fit(X, y)
    assert len(model.selection_["architectures"]) == 4


def test_a_word_that_is_none_is_refused() -> None:
    X, y = bent(30)
    with pytest.raises(rds.InputError, match="hidden = 'large' is not a sequence"):
        rds.RDeepSenseRegressor(hidden="large").fit(X, y)


def test_what_the_clock_cut_can_be_taken_up(tmp_path: Path) -> None:
    X, y = bent(220)
    arguments = {**AUTO, "likelihood": "student", "epochs": 1}
    whole = rds.RDeepSenseRegressor(**arguments).fit(X, y)
    own = {**arguments, "checkpoint": tmp_path / "run"}
    cut = rds.RDeepSenseRegressor(max_seconds=0, **own).fit(X, y)
    assert cut.selection_["cut"]
    assert len(cut.selection_["architectures"]) == 1
    resumed = rds.RDeepSenseRegressor(**own).fit(X, y)
    assert "cut" not in resumed.selection_
    assert resumed.selection_ == whole.selection_
    assert resumed.predict_dist(X) == whole.predict_dist(X)


@pytest.mark.slow
def test_an_ensemble_has_the_network_that_a_single_one_has() -> None:
    """Both choose by the same trials, so their networks differ in nothing but chance."""
    X, y = bent(220)
    common = {"hidden": "auto", "likelihood": "auto", "epochs": 2, "random_state": 0}
    single = rds.RDeepSenseRegressor(**common, device="cpu").fit(X, y)
    ensemble = rds.SSPRegressor(**common, members=2, device="cpu").fit(X, y)
    assert ensemble.selection_["architectures"] == single.selection_["architectures"]
    assert {trial["drop_prob"] for trial in ensemble.selection_["trials"]} == {0.0}


def test_the_second_is_what_would_have_been_chosen_otherwise() -> None:
    def judged(drop_prob: float, losses: list[float]) -> Judgement:
        own = Candidate("student", 0.5, drop_prob)
        trial = Trial(own, float(np.mean(losses)), 0.1, None, 1)
        return Judgement(trial, None, np.array(losses))

    board = Leaderboard("nll", [judged(0.2, [5, 5]), judged(0.0, [1, 2]), judged(0.1, [2, 5])])
    second = board.selection("rows").second
    assert second is not None
    assert second.trial == 2
    assert second.behind.difference == 2.0
    assert second.behind.standard_error == pytest.approx(1 / np.sqrt(2))
    assert Leaderboard("nll", [judged(0.2, [5, 5])]).selection("rows").second is None


@pytest.mark.parametrize(
    ("gain", "chosen"), [([0.4, 0.5, 0.3], (32, 32)), ([0.4, 0.5, -0.9], (16, 16))]
)
def test_of_many_rows_a_larger_network_may_overtake_after_all_steps(
    monkeypatch: pytest.MonkeyPatch, gain: list[float], chosen: tuple[int, ...]
) -> None:
    level = {(8, 8): 0.9, (16, 16): 0.4, (32, 32): 0.4}
    asked = []

    def judged(trainer: Any, group: Any, folded: bool, whole: bool = False) -> Any:
        hidden = trainer.spec.architecture.hidden
        asked.append((hidden, whole))
        losses = np.full(3, level[hidden])
        if whole and hidden == (32, 32):  # the second case: better by less than a standard error
            losses = losses - gain
        trial = Trial(group[0], float(losses.mean()), None, None, 1)
        return [Judgement(trial, None, losses)], sum(hidden)

    monkeypatch.setattr("rdeepsense.fitting.search._judged", judged)
    training: Any = rds.RDeepSenseRegressor(verbose=False)._training()  # noqa: SLF001
    spec = training.args[0]
    for rows in (VERY_MANY_ROWS, VERY_MANY_ROWS - 1):
        asked.clear()
        trainer: Any = SimpleNamespace(
            spec=spec,
            has_time=lambda: True,
            interrupted=False,
            row_count=rows,
        )
        choose_architecture(trainer, [Dense(hidden) for hidden in level], False)
        many = rows == VERY_MANY_ROWS
        assert trainer.spec.architecture == Dense(chosen if many else (16, 16))
        assert asked[3:] == ([((16, 16), True), ((32, 32), True)] if many else [])


def test_the_widest_layers_are_tried_on_the_embeddings_that_lead() -> None:
    leader = Periodic((256, 256, 256), std=0.1)
    assert wider(leader, VERY_MANY_ROWS) == (Periodic((500, 500, 500), std=0.1),)
    assert wider(leader, VERY_MANY_ROWS - 1) == wider(Dense((500, 500)), VERY_MANY_ROWS) == ()
