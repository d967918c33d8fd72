"""Causes of wrong verdicts on public tables, each on a small simulated one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import rdeepsense as rds
from rdeepsense.data.check_table import Likeness, is_crossed, is_regular
from rdeepsense.distributions import Categorical, Gaussian
from rdeepsense.reporting.subject import Subject
from rdeepsense.reporting.verdict import Score, _Between, _skill_word, judge

Run = Callable[..., tuple[str, str]]


def codes(X: Any, y: Any) -> set[str]:
    return {one.code for one in rds.check(X, y).warnings}


# Entities


def test_a_quantity_of_many_levels_is_no_entity(rng: np.random.Generator) -> None:
    """Five rows a level hide the order of the level means; a trend over all rows shows it."""
    for _ in range(10):
        age = rng.integers(25, 81, 300)
        x = rng.normal(size=(300, 2))
        y = x[:, 0] - 0.06 * age + 0.7 * rng.normal(size=300)
        assert "entities" not in codes(pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "age": age}), y)
        left_open = (y - x[:, 0])[:, None]
        assert Likeness.of(age, left_open).intraclass < 0.3  # without the trend 0.6
        shuffled = rng.permutation(56)[age - 25]
        assert Likeness.of(shuffled, left_open).intraclass > 0.3


def towns(rng: np.random.Generator, count: int = 16, rows: int = 50) -> tuple[Any, Any]:
    """Towns whose size and place tell them apart; what they have in common is not in the table."""
    town = np.repeat(rng.permutation(count), rows)
    marks = rng.normal(size=(count, 2))[town] + 0.01 * rng.normal(size=(count * rows, 2))
    y = rng.normal(size=count)[town] + 0.4 * rng.normal(size=count * rows)
    X = pd.DataFrame({"size": marks[:, 0], "place": marks[:, 1], "x": rng.normal(size=len(y))})
    return X.assign(town=[f"T{k}" for k in town]), y


def test_entities_that_other_inputs_mark_are_found(rng: np.random.Generator) -> None:
    X, y = towns(rng)
    [found] = [one for one in rds.check(X, y).warnings if one.code == "entities"]
    assert found.columns == ("town",)
    assert "can be told by the other inputs" in found.message


def test_marks_without_an_effect_are_no_entities(rng: np.random.Generator) -> None:
    X, _ = towns(rng)
    y = X["x"] + X["size"] + 0.4 * rng.normal(size=len(X))
    assert "entities" not in codes(X, y)


@pytest.mark.parametrize(
    ("levels", "crossed", "found"), [(10, True, False), (10, False, True), (24, True, True)]
)
@pytest.mark.parametrize("named", [True, False])
def test_a_factor_of_a_design_is_no_entity(
    rng: np.random.Generator, levels: int, crossed: bool, found: bool, named: bool
) -> None:
    """Ten kinds of pads, each with each mask; ten boards, each with one mask; 24 states."""
    kind, mask, opening = (one.ravel() for one in np.indices((levels, 4, 3)).repeat(5, axis=1))
    if not crossed:
        mask = kind % 4
    y = rng.normal(size=levels)[kind] + 0.5 * mask + 0.3 * rng.normal(size=len(kind))
    X = pd.DataFrame({"mask": mask, "opening": opening})
    number = rng.permutation(levels)
    X["kind"] = (np.array([f"K{k}" for k in number]) if named else number)[kind]
    assert ("entities" in codes(X, y)) is found


def test_crossed_means_as_frequent_in_each_level() -> None:
    level = np.repeat(np.arange(8), 12)
    assert is_crossed(level, np.tile(np.arange(3.0), 32))
    assert not is_crossed(level, level % 3.0)


# Time


def test_regular_dates_are_a_time_series(rng: np.random.Generator) -> None:
    """Weekdays decide, so that rows are not like the one before; workdays have gaps."""
    day = np.arange("2021-01-01", "2021-12-31", dtype="datetime64[D]")
    day = day[np.is_busday(day)]
    y = 3.0 * (day.astype(int) % 7) + rng.normal(size=len(day))
    X = pd.DataFrame({"date": day.astype(str), "x": rng.normal(size=len(day))})
    [found] = [one for one in rds.check(X, y) if one.code == "time-order"]
    assert "follow in regular steps" in found.message
    assert found.severity == "info"
    assert is_regular(np.cumsum([1.0, 1, 1, 3, 1, 1, 1, 1]))
    assert not is_regular(np.cumsum(rng.exponential(size=200)))
    assert not is_regular(np.array([0.0, 1, 2, 2, 3]))


def test_what_only_grows_with_time_is_left_out(rng: np.random.Generator) -> None:
    """The month of one year: the months to come are beyond all that were trained on."""
    day = np.arange("2021-01-01", "2021-10-01", dtype="datetime64[D]")
    month = (day.astype("datetime64[M]") - day[0].astype("datetime64[M]")).astype(int) + 1
    X = pd.DataFrame({"date": day.astype(str), "month": month, "weekday": day.astype(int) % 7})
    y = X["weekday"] + 0.1 * month + rng.normal(size=len(day))
    assert rds.check(X, y).leave_out == ("month",)


# Words


def clustered(rng: np.random.Generator, groups: int, rows: int, alike: float) -> Subject:
    """Standard normal errors, a share `alike` of whose variance is that of their group."""
    group = np.repeat(np.arange(groups), rows)
    own = np.sqrt(alike) * rng.normal(size=groups)[group]
    error = own + np.sqrt(1 - alike) * rng.normal(size=len(group))
    x = 2 * rng.normal(size=len(group))
    return Subject("y", "", Gaussian(x, np.ones(len(x))), x + error, group)


def test_two_groups_cannot_tell(rng: np.random.Generator) -> None:
    """Of t with one degree of freedom the quantile is 12.7, not 1.96."""
    values = np.repeat([0.0, 1.0], 100)  # means of two groups, 0.5 from their mean
    two = _Between.of(clustered(rng, 2, 100, 0.0))
    assert two.error(values) == pytest.approx(0.5 * 12.706 / 1.960, rel=1e-3)
    assert _Between.of(clustered(rng, 1, 200, 0.0)).error(values) == pytest.approx(0.5)
    assert judge(clustered(rng, 1, 200, 0.0)).calibration == "cannot be told"
    assert judge(clustered(rng, 40, 5, 0.0)).calibration == "right"


def test_groups_that_are_alike_are_few_rows(rng: np.random.Generator) -> None:
    """All 8 groups are contained as a whole: 160 rows of which 8 are independent."""
    subject = clustered(rng, 8, 20, 0.95)
    subject = replace(subject, y=subject.dist.mean + 0.5 * (subject.y - subject.dist.mean))
    found = judge(subject)
    assert found.share.value > 0.97
    assert found.calibration == "cannot be told"
    assert judge(replace(subject, groups=None)).calibration == "too wide"


def test_errors_that_last_need_long_blocks(rng: np.random.Generator) -> None:
    """Coverage of a calibrated model whose errors last: seldom blamed, by time or not too often."""
    blamed = []
    for _ in range(60):
        error = np.zeros(150)
        for k in range(1, 150):
            error[k] = 0.95 * error[k - 1] + np.sqrt(1 - 0.95**2) * rng.normal()
        x = 3 * rng.normal(size=150)
        subject = Subject("y", "", Gaussian(x, np.ones(150)), x + error)
        timed = replace(subject, time=np.arange(150))
        blamed.append([judge(one).calibration.startswith("too") for one in (subject, timed)])
    rows, time = np.mean(blamed, axis=0)
    assert rows > 0.3
    assert time < 0.15


@pytest.mark.parametrize(
    ("score", "error", "word"),
    [
        (0.30, 0.05, "fair"),
        (0.20, 0.10, "weak"),  # 0 to 0.4
        (0.45, 0.18, "fair"),  # 0.09 to 0.81
        (0.60, 0.25, "fair"),  # 0.1 to 1.1
        (0.05, 0.08, "none"),
        (0.05, 0.20, "cannot be told"),  # -0.35 to 0.45
        (0.30, 0.20, "cannot be told"),  # -0.1 to 0.7
    ],
)
def test_a_wide_interval_gives_the_word_in_its_middle(
    score: float, error: float, word: str
) -> None:
    assert _skill_word(Score(score, error), Score(0.0, 1.0), 100) == word


def test_predicted_classes_out_of_their_bands_count(rng: np.random.Generator) -> None:
    """One class is stated too surely, another not enough: right on average."""
    truth_of_a, truth_of_b = rng.random(1000) < 0.6, rng.random(1000) < 0.9
    probs = np.tile([[0.75, 0.25]], (1000, 1))
    dist = Categorical(np.concatenate([probs, probs[:, ::-1]]), np.array(["a", "b"]))
    y = np.concatenate([np.where(truth_of_a, "a", "b"), np.where(truth_of_b, "b", "a")])
    found = judge(Subject("y", "", dist, y))
    assert found.calibration == "right on average"
    assert any("2 of 2 predicted classes" in remark for remark in found.remarks)


# Where it is said


def test_evaluate_has_the_verdict(rng: np.random.Generator) -> None:
    X = rng.normal(size=(400, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=400)
    settings: dict[str, Any] = {"effort": "quick", "hidden": (16,), "epochs": 40, "device": "cpu"}
    model = rds.RDeepSenseRegressor(random_state=0, **settings).fit(X[:200], y[:200])
    found = model.evaluate(X[200:], y[200:], time=np.arange(200))
    assert dict(found) == found
    assert found["mae"] == pytest.approx(found.verdict.figures["MAE"])
    assert found.verdict.skill == "strong"
    assert found.verdict.headline == next(iter(found.verdicts.values())).headline
    page = rds.report(model, X[200:], y[200:], time=np.arange(200))
    [same] = page.verdicts.values()
    assert (same.headline, same.sentences) == (found.verdict.headline, found.verdict.sentences)


@pytest.mark.slow
def test_few_entities_are_tested_by_more_of_them(run: Run, rng: np.random.Generator) -> None:
    firm = np.repeat(np.arange(20), 15)
    x = rng.normal(size=(300, 2))
    y = x[:, 0] + 1.5 * rng.normal(size=20)[firm] + 0.3 * rng.normal(size=300)
    names = [f"F{k}" for k in firm]
    table = pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "firm": names, "y": y})
    table.write_csv("t.csv")
    quick = ("--quick", "--epochs", 5, "--hidden", 8, "-o", "m.st", "--overwrite", "--json", "-")
    for options, groups in (((), 6), (("--test-fraction", 0.2), 4)):
        out, _ = run("fit", "t.csv", "--target", "y", *quick, *options)
        assert len(json.loads(out)["groups"]["y"]) == groups
