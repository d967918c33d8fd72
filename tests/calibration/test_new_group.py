"""The threshold of a new group: by hand, and the promise over many simulated groups."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense import Gaussian, InputError
from rdeepsense.calibration.conformal import Conformal, most_coverage, new_group_threshold


def test_the_quantile_by_hand() -> None:
    # Three groups and the new one: 1/4 each; a row of b stands for 1/8, one of c for 1/4.
    scores = np.array([[1.0], [3.0], [5.0], [2.0]])
    group = np.array([0, 1, 1, 2])
    # In order: 1 (1/4), 2 (2/4), 3 (5/8), 5 (6/8), infinity (1).
    for coverage, wanted in (
        (0.25, 1.0),
        (0.26, 2.0),
        (0.5, 2.0),
        (0.6, 3.0),
        (0.625, 3.0),
        (0.7, 5.0),
        (0.75, 5.0),
        (0.76, np.inf),
    ):
        assert new_group_threshold(scores, group, coverage).tolist() == [wanted]


def test_groups_of_one_row_are_plain_conformal_prediction() -> None:
    scores = np.random.default_rng(0).exponential(size=(37, 2))
    dist = Gaussian(np.zeros((37, 2)), np.ones((37, 2)))
    plain = Conformal.fit(dist, scores)
    new = Conformal.fit(dist, scores, np.arange(37), new_group=True)
    for coverage in (0.1, 0.5, 0.9, 0.95, 36 / 38, 37 / 38, 0.99):
        assert np.array_equal(plain.threshold(coverage, 3), new.threshold(coverage, 3))


def test_copies_of_the_rows_of_a_group_change_nothing() -> None:
    rng = np.random.default_rng(1)
    scores, group = rng.exponential(size=(60, 1)), rng.integers(0, 12, 60)
    often = np.where(group == 3, 7, 1)
    copied, groups = scores.repeat(often, axis=0), group.repeat(often)
    for coverage in rng.uniform(0, 1, 20):
        wanted = new_group_threshold(scores, group, coverage)
        assert new_group_threshold(copied, groups, coverage) == wanted


def test_most_coverage_is_what_is_finite() -> None:
    assert most_coverage(9) == 0.9
    scores, group = np.arange(1.0, 10.0)[:, None], np.arange(9)
    assert new_group_threshold(scores, group, 0.9) == 9.0
    assert new_group_threshold(scores, group, 0.901) == np.inf
    assert new_group_threshold(scores[:0], group[:0], 0.1) == np.inf


def test_the_promise_holds_for_new_groups_where_rows_alone_break_it() -> None:
    """Scores |offset of the group + noise|, groups of 1 to 30 rows, 20 groups set aside."""
    rng = np.random.default_rng(2)
    inside = {"groups": 0, "rows": 0}
    rounds = 3_000
    for _ in range(rounds):
        sizes = rng.integers(1, 31, 21)
        group = np.repeat(np.arange(21), sizes)
        scores = np.abs(2 * rng.standard_normal(21)[group] + rng.standard_normal(len(group)))
        known, new = scores[group < 20, None], scores[group == 20][0]
        dist = Gaussian(np.zeros(known.shape), np.ones(known.shape))
        inside["rows"] += bool(new <= Conformal.fit(dist, known).threshold(0.9, 1)[0, 0])
        inside["groups"] += bool(new <= new_group_threshold(known, group[group < 20], 0.9)[0])
    error = np.sqrt(0.9 * 0.1 / rounds)
    # At least 0.9, and at most 2 / (K + 1) more (Lee, Barber & Willett 2023).
    assert 0.9 - 2 * error < inside["groups"] / rounds < 0.9 + 2 / 21
    assert inside["rows"] / rounds < 0.9 - 2 * error


def test_a_new_group_has_no_label() -> None:
    dist = Gaussian(np.zeros(4), np.ones(4))
    conformal = Conformal.fit(dist, np.ones(4), ["a", "a", "b", "c"], new_group=True)
    assert conformal.labels == (0, 1, 2)
    assert conformal.is_common
    with pytest.raises(InputError, match="those of a new group"):
        conformal.threshold(0.5, 1, groups=["a"])
