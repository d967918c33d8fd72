"""Thresholds of a compact novelty: by hand, and rows that cannot have one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rdeepsense.data.scaling import Scaler
from rdeepsense.errors import InputError
from rdeepsense.fitting.epistemic import Reading, compact, judging, quantile
from rdeepsense.uncertainty.novelty import Novelty


def test_a_quantile_by_hand() -> None:
    assert quantile(np.arange(1.0, 100.0), 0.99) == 99
    assert quantile(np.arange(1.0, 200.0), 0.99) == 198
    assert quantile(np.array([3.0, 1.0, 2.0]), 0.99) == 3


def test_what_has_no_novelty_is_named() -> None:
    scaler = Scaler(np.zeros(2), np.ones(2))
    with pytest.raises(InputError, match=r"not for rows of shape \(3, 4, 2\) with 2 numbers"):
        Reading((3, 4, 2), scaler)
    with pytest.raises(InputError, match="needs 40 rows to set its threshold, and has 39"):
        judging(np.zeros((39, 2)))


def test_rows_that_judge_are_drawn_the_same_each_time() -> None:
    X = np.arange(30_000.0).reshape(-1, 2)
    assert len(judging(X)) == 10_000
    assert np.array_equal(judging(X), judging(X))
    assert np.array_equal(judging(X[:50]), X[:50])


@pytest.mark.parametrize("broken", ["factors", "axes"])
def test_a_density_that_cannot_be_drawn_from_is_named(broken: str) -> None:
    X = np.random.default_rng(0).normal(size=(100, 2))
    novelty = Novelty.fit(X[:60], X[60:])
    reading = Reading((2,), Scaler(np.zeros(2), np.ones(2)))
    assert compact(novelty, reading, X).unlike(np.array([[9.0, -9.0]])).all()
    singular = {"factors": np.ones_like(novelty.factors), "axes": np.zeros_like(novelty.axes)}
    with pytest.raises(InputError, match="axes or factors are singular"):
        compact(replace(novelty, **{broken: singular[broken]}), reading, X)
