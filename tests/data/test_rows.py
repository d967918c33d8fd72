"""The rows of a fit: every row on one side, groups and classes kept whole and spread."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense import InputError
from rdeepsense.data.rows import check_one_split, split_rows, with_validation


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 2)), rng.normal(size=200)


X, Y = table()


def test_a_fifth_validates_and_the_rest_trains() -> None:
    rows = split_rows(X, Y, None, None, classes=False, set_aside=False, seed=0)
    assert (len(rows.train), len(rows.validation), rows.split_off) == (160, 40, True)
    assert {*rows.train.index, *rows.validation.index} == set(range(200))
    held, truth = rows.held_out
    assert np.array_equal(held, X[rows.validation.index])
    assert np.array_equal(truth, Y[rows.validation.index])
    assert rows.aside is None


def test_rows_set_aside_are_on_neither_side() -> None:
    rows = split_rows(X, Y, None, None, classes=False, set_aside=True, seed=0)
    assert rows.aside is not None
    assert len(rows.aside[0]) == 40
    used = X[np.concatenate([rows.train.index, rows.validation.index])]
    assert not {*used[:, 0]} & {*rows.aside[0][:, 0]}
    assert len(used) == 160


def test_groups_are_never_divided() -> None:
    groups = np.repeat(np.arange(20), 10)
    rows = split_rows(X, Y, None, groups, classes=False, set_aside=False, seed=0)
    assert not {*groups[rows.train.index]} & {*groups[rows.validation.index]}
    assert len({*groups[rows.validation.index]}) == 4
    with pytest.raises(InputError, match="groups has 3 rows, X has 200"):
        split_rows(X, Y, None, [1, 2, 3], classes=False, set_aside=False, seed=0)


def test_classes_keep_their_share() -> None:
    labels = np.repeat([0, 1], [180, 20])
    rows = split_rows(X, labels, None, None, classes=True, set_aside=False, seed=0)
    assert np.bincount(rows.held_out[1]).tolist() == [36, 4]


def test_given_validation_rows_leave_the_table_to_training() -> None:
    weight = np.ones(200)
    weight[:50] = 0.0
    pair = (X[:7] + 1, Y[:7])
    rows = with_validation(X, Y, weight, pair, classes=False, set_aside=False, seed=0)
    assert not rows.split_off
    assert rows.train.index.tolist() == list(range(50, 200))
    assert np.array_equal(rows.held_out[0], pair[0])


def test_two_ways_to_split_are_refused() -> None:
    check_one_split(None, [1])
    with pytest.raises(InputError, match="give groups or validation, not both"):
        check_one_split((X, Y), [1])


def test_whole_groups_are_set_aside_nine_at_least_where_there_are_enough() -> None:
    for groups, wanted in ((10, 2), (17, 3), (18, 9), (40, 9), (50, 10)):
        own = np.arange(len(X)) % groups
        rows = split_rows(X, Y, None, own, classes=False, set_aside=True, seed=0)
        assert rows.aside is not None
        assert rows.aside_groups is not None
        assert len(np.unique(rows.aside_groups)) == wanted
        assert not {*rows.aside_groups} & {*own[rows.rows.index]}
        assert len(rows.aside[0]) == np.isin(own, rows.aside_groups).sum()
