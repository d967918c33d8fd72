"""Importance and dependence, of models whose answer is known: formulas in place of networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from rdeepsense.data.columns import Moments, value_of
from rdeepsense.data.scaling import Scaler
from rdeepsense.distributions import Categorical, Gaussian
from rdeepsense.fitting.fitted import Inputs
from rdeepsense.reporting.inputs import InputNames, dependence, importances, sample


@dataclass
class Formula:
    """y ~ N(2 x0 + x1, 1); x2 plays no part."""

    def predict_rows(self, rows: Any) -> Gaussian:
        mean = 2 * rows[..., 0] + rows[..., 1]
        mean = mean if mean.ndim == 1 else mean.mean(1)  # of windows
        return Gaussian(mean, np.ones(len(rows)))


class Two:
    """Two targets, of which each goes by one input."""

    def predict_rows(self, rows: Any) -> Gaussian:
        return Gaussian(rows[:, :2], np.ones((len(rows), 2)))


class Sign:
    def predict_rows(self, rows: Any) -> Categorical:
        return Categorical(np.where(rows[:, :1] > 0, [0.2, 0.8], [0.9, 0.1]))


def table(rows: int = 1500) -> Any:
    return np.random.default_rng(0).normal(size=(rows, 3))


def test_importance_is_what_the_formula_says() -> None:
    """Shuffling x0 adds (2 x0 - 2 x0')^2 / 2 to the NLL: 4 on average, of x1 1, of x2 exactly 0."""
    X = table()
    truth = 2 * X[:, 0] + X[:, 1] + np.random.default_rng(1).normal(size=len(X))
    (found,) = importances(Formula(), X, truth)  # type: ignore[arg-type]
    assert [one.column for one in found] == [0, 1, 2]
    assert found[0].increase == pytest.approx(4, abs=3 * found[0].error)
    assert found[1].increase == pytest.approx(1, abs=3 * found[1].error)
    assert (found[2].increase, found[2].error) == (0, 0)
    assert 0 < found[1].error < 0.1
    again = importances(Formula(), X, truth)  # type: ignore[arg-type]
    assert again == [found]


def test_each_target_has_its_own() -> None:
    X = table()
    first, second = importances(Two(), X, X[:, :2])  # type: ignore[arg-type]
    assert first[0].column == 0
    assert second[0].column == 1
    assert second[-1].increase == 0


def test_a_channel_of_windows_is_shuffled_as_a_whole() -> None:
    windows = np.random.default_rng(0).normal(size=(300, 1, 3)) * np.ones((1, 8, 1))
    truth = Formula().predict_rows(windows).mean
    (found,) = importances(Formula(), windows, truth)  # type: ignore[arg-type]
    assert [one.column for one in found] == [0, 1, 2]
    assert found[0].increase == pytest.approx(4, rel=0.3)


def test_errors_are_between_groups() -> None:
    X = np.repeat(table(40), 30, axis=0)
    truth = 2 * X[:, 0] + X[:, 1]
    groups = np.repeat(np.arange(40), 30)
    (alone,) = importances(Formula(), X, truth)  # type: ignore[arg-type]
    (together,) = importances(Formula(), X, truth, groups)  # type: ignore[arg-type]
    assert together[0].error > 2 * alone[0].error


def test_predictions_along_an_input() -> None:
    X = table()
    found = dependence(Formula(), X, 0, is_level=False)  # type: ignore[arg-type]
    assert found is not None
    assert found.low is not None
    slope = np.diff(found.mean[:, 0]) / np.diff(found.values)
    np.testing.assert_allclose(slope, 2)
    np.testing.assert_allclose(found.mean - found.low, 1.6448536269514722)
    assert (found.values[0], found.values[-1]) == tuple(np.quantile(X[:, 0], (0.02, 0.98)))
    flat = dependence(Formula(), X, 2, is_level=False)  # type: ignore[arg-type]
    assert flat is not None
    assert np.ptp(flat.mean) == 0


def test_levels_holes_and_inputs_that_do_not_vary() -> None:
    X = table(100)
    X[:, 1], X[:, 2] = np.arange(100) % 3, np.nan
    X[:4, 1] = [np.nan, -1, np.nan, -1]  # missing and never seen
    found = dependence(Formula(), X, 1, is_level=True)  # type: ignore[arg-type]
    assert found is not None
    assert found.values.tolist() == [0, 1, 2]
    np.testing.assert_allclose(np.diff(found.mean[:, 0]), 1)
    assert dependence(Formula(), X, 2, is_level=False) is None  # type: ignore[arg-type]


def test_classes_have_a_line_each() -> None:
    found = dependence(Sign(), table(), 0, is_level=False)  # type: ignore[arg-type]
    assert found is not None
    assert found.mean[0].tolist() == pytest.approx([0.9, 0.1])
    assert found.mean[-1].tolist() == pytest.approx([0.2, 0.8])


def test_values_in_words() -> None:
    names = InputNames(("a", "b"), ("°C", ""), {1: ("north", "south")})
    assert (names.named(0), names.named(1)) == ("a (°C)", "b")
    said = [names.words(k, v) for k, v in ((0, -1.5), (0, np.nan), (1, 1.0), (1, -1.0))]
    assert said == ["−1.5", "missing", "south", "a level never seen"]


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    assert np.array_equal(sample(1000, 10, 3), sample(1000, 10, 3))
    assert np.array_equal(sample(5, 10, 3), np.arange(5))


@dataclass
class Season:
    """y ~ N(3 sin(2 pi (day - 1) / 365.25) + weekday, 1), of the inputs that encode these."""

    def predict_rows(self, rows: Any) -> Gaussian:
        weekday = value_of(rows[:, 2], rows[:, 3], "weekday")
        return Gaussian(3 * rows[:, 0] + np.round(weekday), np.ones(len(rows)))


def season() -> tuple[Any, InputNames, Moments]:
    moments = Moments(np.arange("2021-01-01", "2023-12-31", dtype="datetime64[D]").astype("M8[s]"))
    made = moments.inputs("t", ["yearday", "weekday"])
    rows = np.column_stack([*made.values(), np.zeros(len(moments.values))])
    names = (*made, "b")
    scaler = Scaler(np.zeros(5), np.ones(5))
    return rows, InputNames.of(Inputs((5,), names, "refuse", scaler, dated=("t",))), moments


def test_dates_are_one_input() -> None:
    rows, names, _ = season()
    assert names.groups == [(0, 1, 2, 3), (4,)]
    assert names.named(0) == "t"
    truth = Season().predict_rows(rows).mean
    (found,) = importances(Season(), rows, truth, together=names.groups)  # type: ignore[arg-type]
    assert [one.column for one in found] == [0, 4]
    # The NLL of N(m, 1) rises by (m - m')^2 / 2 for a row m' in its place: by the variance of m.
    assert found[0].increase == pytest.approx(truth.var(), rel=0.1)
    assert found[1].increase == 0


def test_dependence_goes_along_the_day_of_the_year() -> None:
    rows, names, moments = season()
    yearday, weekday = names.dates[0]
    assert yearday.named == "t: day of the year"
    assert np.array_equal(yearday.decoded(rows), moments.value("yearday"))
    found = dependence(Season(), rows, 0, is_level=False, part=yearday)  # type: ignore[arg-type]
    assert found is not None
    assert found.values.min() > 0
    assert found.values.max() < 365
    along = found.mean[:, 0] - found.mean[:, 0].mean()
    wave = 3 * np.sin(2 * np.pi * found.values / 365.25)
    assert along == pytest.approx(wave - wave.mean(), abs=1e-9)
    week = dependence(Season(), rows, 0, is_level=True, part=weekday)  # type: ignore[arg-type]
    assert week is not None
    assert [weekday.words(value) for value in week.values][:2] == ["Monday", "Tuesday"]
    assert np.diff(week.mean[:, 0]) == pytest.approx(np.ones(6), abs=1e-9)
    assert names.said(0, rows[59]) == "day 60, Monday"  # 1 March 2021
