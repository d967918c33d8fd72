"""Ranges of inputs: the stated rule by hand, healthy rows, absurd ones, and rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rdeepsense.guard import LARGEST, Guard
from rdeepsense.paper.uci import find, load
from rdeepsense.status import Status

ONE = np.ones(1)


def test_half_the_distance_beyond_either_end() -> None:
    guard = Guard.fit(np.array([[0.0], [2.0], [4.0]]), ONE)
    assert guard.low.item() == pytest.approx(-2, abs=1e-5)
    assert guard.high.item() == pytest.approx(6, abs=1e-5)
    rows = np.array([[-2.1], [-2.0], [6.0], [6.1], [np.nan]])
    assert guard.status(rows).tolist() == [2, 0, 0, 2, 1]
    assert guard.beyond(rows)[:, 0].tolist() == [True, False, False, True, True]


@pytest.mark.parametrize(("rows", "absurd"), [(200, 1), (2_000, 2), (20_000, 10)])
def test_absurd_rows_do_not_blind_it(rows: int, absurd: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3))
    X[:absurd, 1] = 1e6
    guard = Guard.fit(X, ONE)
    assert guard.high.max() < 12
    assert guard.status(np.array([[0, 20.0, 0], [0, 0, 0]])).tolist() == [2, 0]


@given(st.floats(-1e6, 1e6), st.integers(1, 3_000))
@example(0.1, 3)  # whose mean and float32 are other numbers
@example(-0.0, 1)
@example(1e6 - 0.1, 3_000)
def test_a_constant_is_itself_and_nothing_else(value: float, rows: int) -> None:
    guard = Guard.fit(np.full((rows, 1), value), ONE)
    held = np.array([[value], [np.float32(value)]])
    assert guard.status(held).tolist() == [0, 0]
    assert guard.status(held + 1e-3 * max(1.0, abs(value))).tolist() == [2, 2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30, 1e200])
def test_training_rows_are_in_range_in_both_types(size: float, dtype: type) -> None:
    if dtype is np.float32 and size > LARGEST:
        return
    X = (size * np.random.default_rng(0).standard_cauchy((300, 4))).astype(dtype)
    guard = Guard.fit(X, ONE)
    for rows in (X.astype(np.float64), X.astype(np.float32) if size < LARGEST else X):
        assert (guard.status(rows) > 0).sum() <= 1  # the one row in 300 that is left out
    if size < LARGEST:
        assert np.array_equal(guard.low, guard.low.astype(np.float32))
        assert np.array_equal(guard.high, guard.high.astype(np.float32))


@pytest.mark.parametrize(
    "draw", ["normal", "uniform", "laplace", "lognormal", "standard_exponential"]
)
def test_healthy_rows_are_hardly_ever_flagged(draw: str) -> None:
    rng = np.random.default_rng(0)
    flagged = [
        (Guard.fit(drawn[:rows], ONE).status(drawn[rows:]) > 0).mean()
        for rows in (300, 1_000, 10_000)
        for drawn in (getattr(rng, draw)(size=(rows + 4_000, 10)) for _ in range(4))
    ]
    assert np.mean(flagged) <= 0.005


def test_windows_have_ranges_by_channel() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (50, 8, 2)) * [1.0, 100.0]
    guard = Guard.fit(X, ONE)
    assert guard.low.shape == (2,)
    X[0, 3, 0], X[1, 7, 1] = 50.0, np.nan
    assert guard.status(X)[:3].tolist() == [2, 1, 0]
    assert guard.beyond(X)[:3].tolist() == [[True, False], [False, True], [False, False]]


def test_what_was_missing_may_be_missing() -> None:
    X = np.array([[1.0, 1.0], [2.0, np.nan], [3.0, 3.0]])
    guard = Guard.fit(X, ONE)
    assert guard.status(np.array([[np.nan, 1.0], [1.0, np.nan]])).tolist() == [Status.MISSING, 0]


def test_what_a_flagged_row_is_told() -> None:
    guard = Guard(np.zeros(1), np.ones(1), np.zeros(1), np.array([2.0, 3.0]))
    std = guard.widened(np.array([[1.0, 5.0], [1.0, 5.0]]), np.array([0, 2], np.uint8))
    assert std.tolist() == [[1.0, 5.0], [2.0, 5.0]]
    guard = Guard(np.zeros(1), np.ones(1), np.zeros(1), np.array([0.2, 0.8]))
    probs = guard.mixed(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1], np.uint8))
    np.testing.assert_allclose(probs, [[1.0, 0.0], [0.6, 0.4]])


def test_real_tables(data_dir: Path) -> None:
    """On the splits of six public tables, at most one healthy row in 200 is flagged."""
    for path in find(data_dir / "uci"):
        data = load(path)
        flagged = [
            (Guard.fit(data.x[~test], ONE).status(data.x[test]) > 0).mean() for test in data.test
        ]
        assert np.mean(flagged) <= 0.005, path.stem
