"""`rdeepsense.compare`: honest splits, a table that adds up, a plot that says what it shows."""

from __future__ import annotations

import json
import re
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rdeepsense as rds
from rdeepsense._progress import Silent
from rdeepsense.comparison import compare
from rdeepsense.comparison.compare import FIGURES
from rdeepsense.comparison.statistics import MethodScore
from rdeepsense.comparison.trial import FamilyTrial
from rdeepsense.errors import InputError


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return X, X[:, 0] + 0.3 * rng.normal(size=60)


X, Y = table()
FAST: dict[str, Any] = {"hidden": (4,), "epochs": 1, "verbose": False}
METHODS = ("RDeepSense", "RDeepSense-MC3", "MCDrop-3-paper")


@pytest.fixture(scope="module")
def table() -> rds.Comparison:
    return rds.compare(X, Y, METHODS, splits=2, **FAST)


def test_rows_follow_from_the_splits(table: rds.Comparison) -> None:
    assert [row.method for row in table.rows] == list(METHODS)
    assert [row.passes for row in table.rows] == [1, 3, 3]
    reference, sampled, _ = table.rows
    own = [table.scores["RDeepSense-MC3"][split].score.figures["nll"] for split in (0, 1)]
    single = [table.scores["RDeepSense"][split].score.figures["nll"] for split in (0, 1)]
    assert sampled.means["nll"].value == pytest.approx(np.mean(own))
    differences = np.subtract(own, single)
    assert sampled.differences["nll"].value == pytest.approx(differences.mean())
    assert sampled.differences["nll"].error == pytest.approx(abs(np.diff(differences)[0]) / 2)
    assert reference.differences["nll"].value == 0
    assert sampled.fit_seconds == reference.fit_seconds  # one fitted model
    assert reference.pooled is not None
    assert reference.pooled.pooled_rows == 12
    assert reference.pooled.pooled_floor == rds.metrics.deviation_floor(12)


def test_text_html_and_json(table: rds.Comparison) -> None:
    lines = str(table).splitlines()
    assert table.table() == str(table)
    assert lines[0].split()[:2] == ["method", "passes"]
    assert len({len(line) for line in lines[:4]}) == 1  # aligned
    assert "2 random test splits" in lines[-1]
    html = table._repr_html_()
    assert html.count("<tr") == 4
    assert "MCDrop-3-paper" in html
    assert not re.search(r"(src|href)=", html)
    assert json.loads(json.dumps(table.to_json(), allow_nan=False))["task"] == "regression"


def test_plot(table: rds.Comparison) -> None:
    left, right = table.plot().axes
    assert left.get_xlabel().startswith("NLL − RDeepSense, ± 2 s.e.")
    assert [text.get_text() for text in left.get_yticklabels()] == list(METHODS)
    assert right.get_xlabel() == "deviation area, pooled"
    assert [text.get_text() for text in right.texts] == [
        f"floor {rds.metrics.deviation_floor(12):.3f}"
    ]


@pytest.mark.slow
def test_equal_seeds_give_equal_figures(table: rds.Comparison) -> None:
    again = rds.compare(X, Y, METHODS, splits=2, **FAST)
    for name, by_split in table.scores.items():
        for split, own in by_split.items():
            assert own.score.figures == again.scores[name][split].score.figures
    other = rds.compare(X, Y, ["RDeepSense"], splits=1, random_state=5, **FAST)
    assert other.rows[0].means["nll"].value != table.scores["RDeepSense"][0].score.figures["nll"]


def test_no_row_is_on_both_sides(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal inputs and groups stay together, and every fit knows the groups of its rows."""
    seen = []

    def fake(family: Any, task: str, train: Any, test: Any, *rest: Any) -> Any:
        seen.append((train, test, rest[2]))
        figures = {"n": len(test[1])} | dict.fromkeys(FIGURES["classification"], 1.0)
        score = MethodScore(figures, None, 0.0)
        return FamilyTrial(0.0, None, [], {method.name: score for method in family})

    monkeypatch.setattr(compare, "run_trial", fake)
    labels = np.repeat(["a", "b"], 300)
    inputs = np.repeat(rng.normal(size=(200, 2)), 3, axis=0)
    rds.compare(inputs, labels, ["SSP-1"], splits=3, verbose=False)
    for train, test, groups in seen:
        assert not set(map(bytes, train[0])) & set(map(bytes, test[0]))
        assert np.unique(test[1], return_counts=True)[1].tolist() == [30, 30]  # each its share
        assert groups is None
    tests = [set(map(bytes, test[0])) for _, test, _ in seen]
    assert tests[0] != tests[1]

    seen.clear()
    users = np.tile(np.arange(20), 30)
    rds.compare(rng.normal(size=(600, 2)), labels, ["SSP-1"], splits=1, groups=users, verbose=False)
    ((train, test, groups),) = seen
    assert len(test[1]) == 60  # two users of twenty
    assert len(groups) == len(train[1]) == 540
    assert len(set(groups)) == 18


def test_classes() -> None:
    labels = np.where(Y > 0, "high", "low")
    table = rds.compare(X, labels, ["RDeepSense", "SSP-2"], splits=1, test_fraction=0.2, **FAST)
    assert table.task == "classification"
    assert {"accuracy", "brier", "ece"} <= set(table.rows[0].means)
    assert 0 <= (table.rows[1].means["accuracy"].value or 0) <= 1
    assert len(table.plot().axes) == 1
    assert "deviation" not in str(table)


def test_without_the_single_pass_there_are_no_differences() -> None:
    table = rds.compare(X, Y, ["SSP-1"], splits=1, **FAST)
    assert not table.rows[0].differences
    assert "NLL -" not in str(table).splitlines()[0]
    assert table.plot().axes[0].get_xlabel() == "NLL, ± 2 s.e."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["Forest"]}, "'Forest' is unknown"),
        ({"splits": 0}, "splits = 0"),
        ({"test_fraction": 1.0}, "test_fraction = 1.0"),
        ({"task": "ranking"}, "task = 'ranking'"),
        ({"groups": [1, 2]}, "groups has 2 rows"),
        ({"y": Y[:9]}, "y has 9 rows"),
        ({"X": np.full((60, 2), np.nan)}, "NaN"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rds.compare(**({"X": X, "y": Y} | FAST | options))


def test_a_class_that_only_tests_is_refused() -> None:
    groups = np.repeat([0, 1], 30)
    labels = np.where(groups == 0, "u", "v")
    with pytest.raises(InputError, match="in the test groups only"):
        rds.compare(X, labels, ["SSP-1"], groups=groups, test_fraction=0.5, **FAST)


class Fixed:
    """A model that never changes its mind: y is 0 to 1 for sure."""

    def fit(self, X: Any, y: Any) -> None:
        assert X.shape[1] == 2

    def predict_interval(self, X: Any, coverage: float) -> Any:
        return np.zeros(len(X)), np.ones(len(X))


class Normal(Fixed):
    """A standard normal, in the way of NGBoost."""

    def pred_dist(self, X: Any) -> Any:
        return SimpleNamespace(params={"loc": np.zeros(len(X)), "scale": np.ones(len(X))})


@pytest.mark.slow
def test_objects_of_ones_own() -> None:
    methods = [Fixed(), "RDeepSense", ("<i>$x$", Normal())]
    table = rds.compare(X, Y, methods, splits=2, **FAST)
    fixed, _, normal = table.rows
    assert [row.method for row in table.rows] == ["Fixed", "RDeepSense", "<i>$x$"]
    assert (fixed.passes, fixed.means["nll"].value, fixed.means["crps"].value) == (None,) * 3
    assert fixed.differences["nll"].value is None
    tests = [compare._test_rows(X, Y, 0.1, split, None, "regression") for split in (0, 1)]  # noqa: SLF001
    inside = [np.mean((Y[test] >= 0) & (Y[test] <= 1)) for test in tests]
    assert fixed.means["coverage_90"].value == pytest.approx(np.mean(inside))
    by_hand = [0.5 * np.log(2 * np.pi) + 0.5 * np.mean(Y[test] ** 2) for test in tests]
    assert normal.means["nll"].value == pytest.approx(np.mean(by_hand))
    assert normal.differences["nll"].value is not None
    assert "not known, for want of a density" in str(table)
    assert str(table).splitlines()[1].split()[:4] == ["Fixed", "-", "-", "-"]
    # The first row has no NLL, the picture is of differences all the same.
    assert table.plot().axes[0].get_xlabel().startswith("NLL − RDeepSense")
    page = table.html("<b>")
    assert "<i>" not in page
    assert "<b>" not in page
    assert "&lt;i&gt;$x$" in page
    assert json.loads(json.dumps(table.to_json(), allow_nan=False))["methods"]["Fixed"] == {
        "passes": None,
        "about": "an object of your own, Fixed, as it is",
    }


def test_what_cannot_take_part_is_refused_before_any_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "run_trial", lambda *_: pytest.fail("was fitted"))
    with pytest.raises(InputError, match="says nothing about its uncertainty; for classification"):
        rds.compare(X, Y > 0, ["RDeepSense", Fixed()], **FAST)


def test_warnings_of_fits_are_kept() -> None:
    class Warns(Normal):
        def fit(self, X: Any, y: Any) -> None:
            warnings.warn("few rows", UserWarning, stacklevel=1)

    table = rds.compare(X, Y, {"mine": Warns()}, splits=2, **FAST)
    assert table.warnings == {"mine": ("few rows",)}
    assert "mine: few rows" in table.html()


def test_progress_names_each_fit_before_it_begins() -> None:
    notes = []

    class Display(Silent):
        def update(self, done: int, note: str) -> None:
            notes.append((done, note))

    rds.compare(X, Y, [Fixed(), ("two", Fixed())], splits=2, progress=Display(), **FAST)
    assert notes == [
        (0, "split 1 of 2, fitting Fixed"),
        (0, "split 1 of 2, fitting two"),  # how long a split takes is not known yet
        (2, "split 2 of 2, fitting Fixed"),
        (3, "split 2 of 2, fitting two"),
        (4, "all methods fitted"),
    ]
