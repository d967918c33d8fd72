"""Counting in parts of the rows: exact shares, and the band of a true model."""

from __future__ import annotations

import numpy as np
import pytest
from made_predictions import classes, numbers
from scipy import stats

from rdeepsense.distributions import Categorical, Gaussian
from rdeepsense.reporting.subject import (
    Subject,
    by_class,
    by_group,
    by_time,
    by_value,
    moment,
    share_of,
)


def test_the_share_and_its_band_by_hand() -> None:
    y = np.array([0.0, 1.0, 1.6, -1.7, 9.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    subject = Subject("y", "", Gaussian(np.zeros(10), np.ones(10)), y)
    found = share_of(subject, "all", np.arange(10))
    assert (found.rows, found.share, found.stated) == (10, 0.8, pytest.approx(0.9))
    # of ten true intervals 7 to 10 hold with probability 0.95
    assert (found.low, found.high) == (0.7, 1.0)
    assert stats.binom.cdf(6, 10, 0.9) < 0.025 < stats.binom.cdf(7, 10, 0.9)
    assert not found.is_off


def test_classes_by_hand() -> None:
    probs = [[0.8, 0.2], [0.6, 0.4], [0.5, 0.5], [0.1, 0.9]]
    subject = Subject("c", "", Categorical(probs, ["a", "b"]), np.array(["a", "b", "a", "b"]))
    found = share_of(subject, "all", np.arange(4))
    assert (found.share, found.stated) == (0.75, pytest.approx(0.7))
    spread = np.sqrt(0.8 * 0.2 + 0.6 * 0.4 + 0.25 + 0.09) / 4
    assert found.low == pytest.approx(0.7 - 1.96 * spread)
    assert found.high == 1.0
    assert [(one.label, one.rows, one.share) for one in by_class(subject, ["a", "b"])] == [
        ("a", 2, 1.0), ("b", 2, 0.5)
    ]  # fmt: skip


def test_parts_of_values_hold_every_row_in_order() -> None:
    subject = numbers("good", 333)
    found = by_value(subject, subject.uncertainty)
    assert len(found) == 8
    assert sum(one.rows for one in found) == 333
    assert sum(one.rows * one.share for one in found) == pytest.approx(subject.held.sum())
    assert len(by_value(numbers("good", 30), np.arange(30.0))) == 1


def test_the_worst_group_comes_first_and_groups_are_few() -> None:
    good = numbers("good", 1500)
    groups = np.arange(1500) % 30
    y = np.where(groups == 7, np.asarray(good.y) + 5, good.y)
    found = by_group(Subject("y", "", good.dist, y, groups=groups))
    assert (found[0].label, found[0].is_off, len(found)) == ("7", True, 12)
    assert by_group(good) == []


def test_blocks_of_time_are_called_by_their_first_row() -> None:
    found = by_time(classes("good", 500))
    assert [one.label for one in found[:3]] == ["0", "25", "50"]
    assert moment(np.datetime64("2024-05-01T10:00:00", "us")) == "2024-05-01 10:00:00"
