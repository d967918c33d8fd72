"""The verdict: its rule on made-up distributions, where what is right is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rdeepsense.cli.by_group import by_group
from rdeepsense.cli.verdict import judged
from rdeepsense.distributions import Categorical, Gaussian
from rdeepsense.reporting.verdict import WORTH, held, judge, worth_of

ROWS = 4000
BETTER, NO_BETTER, WORSE = WORTH[1], WORTH[0], WORTH[-1]


def regression(stretch: float, seed: int = 0, rows: int = ROWS, signal: float = 1.0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    y = signal * x + rng.normal(size=rows)
    dist = Gaussian(signal * x, np.full(rows, stretch))
    return judge(dist, y, ["y"], rng.normal(size=rows) * np.sqrt(1 + signal**2))["y"]


def test_the_two_rules_at_their_bounds() -> None:
    assert [worth_of(g, 0.5) for g in (1.01, 0.99, -0.99, -1.01)] == [
        BETTER, NO_BETTER, NO_BETTER, WORSE
    ]  # fmt: skip
    assert worth_of(float("nan"), 0.1) == WORSE
    assert [held(s, 0.9, 0.01) for s in (0.8799, 0.8801, 0.9199, 0.9201)] == [-1, 0, 0, 1]


def test_a_true_model_holds_what_it_says() -> None:
    found = regression(1.0)
    assert (found.holds, found.worth) == ("hold", BETTER)
    assert found.factor == pytest.approx(1, abs=0.05)
    assert found.gain == pytest.approx(np.log(2) / 2, abs=0.05)


@pytest.mark.parametrize(
    ("stretch", "holds", "times"), [(0.5, "too narrow", 2), (2, "too wide", 0.5)]
)
def test_intervals_that_are_wrong_by_a_factor_of_two(
    stretch: float, holds: str, times: float
) -> None:
    found = regression(stretch)
    assert found.holds == holds
    assert found.factor == pytest.approx(times, rel=0.05)


def test_inputs_that_say_nothing() -> None:
    """A model that guesses beside the mean is worse; the constant itself is no better."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=ROWS)
    wrong = judge(Gaussian(rng.normal(size=ROWS), np.full(ROWS, 1.5)), y, ["speed"], y)["speed"]
    assert wrong.worth == WORSE
    same = judge(Gaussian(np.zeros(ROWS), np.ones(ROWS)), y, ["y"], y)["y"]
    assert same.worth == NO_BETTER


def test_a_true_model_is_seldom_blamed() -> None:
    """Two standard errors: about one in twenty of true models, whatever the number of rows."""
    for rows in (30, 300):
        found = [regression(1.0, seed, rows).holds for seed in range(200)]
        assert sum(holds.startswith(("too wide", "too narrow")) for holds in found) <= 20


def test_few_rows_can_blame_all_the_same() -> None:
    """Eight of twelve inside: 2.7 errors of a true model, though only 1.6 of the rows' own."""
    y = np.where(np.arange(12) < 8, 0.0, 3.0)
    found = judge(Gaussian(np.zeros(12), np.ones(12)), y, ["y"], y)["y"]
    assert (found.holds, found.share_error) == ("too narrow", pytest.approx(np.sqrt(0.09 / 12)))


def test_few_rows_that_are_all_inside_say_little() -> None:
    """Their share has no spread, and still is that of twenty rows: 2 sqrt(0.9 0.1 / 20) = 0.13."""
    y = np.linspace(-1, 1, 20)
    found = judge(Gaussian(np.zeros(20), np.ones(20)), y, ["y"], y)["y"]
    assert (found.share, found.holds) == (1.0, "too few rows")
    assert found.share_error == pytest.approx(np.sqrt(0.09 / 20))


def test_groups_count_as_often_as_they_are() -> None:
    """One user in ten whose intervals are too narrow: rows alone would be sure of it."""
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(10), 100)
    y = rng.normal(size=1000) * np.where(groups == 3, 3.0, 1.0)
    dist = Gaussian(np.zeros(1000), np.ones(1000))
    assert judge(dist, y, ["y"], y)["y"].holds == "too narrow"
    assert judge(dist, y, ["y"], y, groups)["y"].holds == "hold"
    worst = by_group(dist, y, ["y"], groups)["y"][0]
    assert (worst.group, worst.rows) == ("3", 100)
    assert worst.figures["coverage_90"] == np.mean(abs(y[groups == 3]) <= 1.6448536269514722)
    assert worst.figures["mae"] == pytest.approx(abs(y[groups == 3]).mean())


@pytest.mark.parametrize(
    ("sharp", "holds"), [(1.0, "hold"), (3.0, "too sure"), (0.3, "too modest")]
)
def test_classes(sharp: float, holds: str) -> None:
    rng = np.random.default_rng(3)
    p = 1 / (1 + np.exp(-2 * rng.normal(size=ROWS)))
    y = np.where(rng.random(ROWS) < p, "b", "a")
    odds = (p / (1 - p)) ** sharp
    stated = odds / (1 + odds)
    dist = Categorical(np.stack([1 - stated, stated], 1), np.array(["a", "b"]))
    found = judge(dist, y, ["y"], y)["y"]
    assert found.holds == holds
    assert found.factor is None
    if sharp == 1:
        assert found.worth == BETTER


def test_several_targets_one_verdict_each() -> None:
    rng = np.random.default_rng(4)
    y = rng.normal(size=(ROWS, 2))
    dist = Gaussian(np.zeros((ROWS, 2)), np.stack([np.ones(ROWS), np.full(ROWS, 3.0)], 1))
    found = judge(dist, y, ["u", "v"], y)
    assert [one.holds for one in found.values()] == ["hold", "too wide"]


def test_fit_and_evaluate_end_with_it(run: Any, csv: Path) -> None:
    quick = ("--epochs", 12, "--hidden", 16, "--ignore", "z")
    fitted = run("fit", csv, "--target", "y", "--groups", "user", *quick, "--json", "-")
    assert fitted.code == 0, fitted.err
    written = json.loads(fitted.out)  # nothing else is on stdout
    told = written["verdict"]["y"]
    assert told["worth"] == BETTER
    assert len(written["groups"]["y"]) == 4
    assert f"verdict   {told['word']}: {told['why']}\n" in fitted.err
    assert "\n          It is worth having: the NLL is " in fitted.err
    assert "drift" not in fitted.err  # its rows were drawn at random
    assert "Figures by user, the worst NLL first" in fitted.err
    evaluated = run("evaluate", "model.safetensors", csv, "--groups", "user")  # knows its target
    assert "90 % intervals hold " in evaluated.out
    assert "Whether it drifts cannot be told: no time was given." in evaluated.out
    assert "Figures by user, the worst NLL first" in evaluated.out
    whole = run("fit", csv, "--target", "y", *quick, "--test-fraction", 0, "-o", "m")
    assert "verdict   none: no row was kept for a test (--test-fraction)" in whole.out


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_handful_of_rows_has_a_verdict(rows: int, classes: bool) -> None:
    y: Any = np.arange(float(rows))
    dist: Any = Gaussian(np.zeros(rows), np.ones(rows))
    if classes:
        y = np.resize(["a", "b"], rows)
        dist = Categorical(np.full((rows, 2), 0.5), np.array(["a", "b"]))
    found = judged(dist, y, ["y"])["y"]
    assert found.word in ("useless", "too narrow", "too few rows")
    assert np.isfinite(found.gain)
