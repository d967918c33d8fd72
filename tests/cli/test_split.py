"""The test rows: seeded, whole groups, every class its share, equal inputs on one side."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from rdeepsense.cli.sources import split_off
from rdeepsense.errors import InputError
from rdeepsense.reporting.subject import standard_error


def inputs(rows: int) -> pl.DataFrame:
    return pl.DataFrame({"a": np.random.default_rng(0).normal(size=rows)})


def test_share_and_seed() -> None:
    y = np.arange(500.0)
    test = split_off(inputs(500), y, 0.2, seed=1)
    assert test.sum() == 100
    np.testing.assert_array_equal(test, split_off(inputs(500), y, 0.2, seed=1))
    assert (test != split_off(inputs(500), y, 0.2, seed=2)).any()
    assert not split_off(inputs(500), y, 0.0, seed=1).any()


def test_groups_are_not_divided() -> None:
    groups = np.repeat(np.arange(25), 20).astype(str)
    test = split_off(inputs(500), np.arange(500.0), 0.2, 0, groups)
    assert not set(groups[test]) & set(groups[~test])
    assert len(set(groups[test])) == 5


def test_equal_inputs_are_not_divided() -> None:
    frame = pl.concat([inputs(300), inputs(300)])
    test = split_off(frame, np.arange(600.0), 0.2, 0)
    np.testing.assert_array_equal(test[:300], test[300:])
    assert test.sum() == 120


def test_copies_of_few_rows_are_not_divided_but_observations_are() -> None:
    frame, y = pl.concat([inputs(30)] * 50), np.tile(np.arange(30.0), 50)
    test = split_off(frame, y, 0.2, 0).reshape(50, 30)
    assert (test == test[0]).all()
    assert test[0].sum() == 6
    y[0] += 1  # one input with two targets: a table of repeated measurements
    test = split_off(frame, y, 0.2, 0).reshape(50, 30)
    assert test.sum() == 300
    assert (test != test[0]).any()


def test_every_class_keeps_its_share() -> None:
    classes = np.array(["rare"] * 20 + ["common"] * 480)
    test = split_off(inputs(500), classes, 0.2, 0, classes=True)
    assert (classes[test] == "rare").sum() == 4


def test_a_class_of_the_test_groups_alone_is_refused() -> None:
    groups = np.repeat(["u", "v"], 50)
    with pytest.raises(InputError, match="has rows in the test groups only"):
        split_off(inputs(100), groups, 0.5, 0, groups, classes=True)


def test_standard_error_of_rows_and_between_groups() -> None:
    values = np.array([1.0, 2.0, 3.0, 6.0])
    assert standard_error(values) == pytest.approx(values.std(ddof=1) / 2)
    # Two groups of two equal values are worth two observations.
    assert standard_error(np.repeat([1.0, 3.0], 2), np.array([0, 0, 1, 1])) == pytest.approx(1.0)
    assert standard_error(values[:1]) is None
