"""Samples of the rows of a fit: how many, whose, and split as the whole is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rdeepsense.data.rows import FEWEST_HELD, FitRows, sampled, split_rows, with_validation
from rdeepsense.data.splits import Part, evenly


def rows_of(count: int, groups: int | None = None, classes: int = 0, seed: int = 0) -> FitRows:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 2))
    y = rng.integers(classes, size=count) if classes else X[:, 0]
    weight = rng.uniform(0.5, 2.0, count)
    group = None if groups is None else rng.integers(groups, size=count)
    return split_rows(X, y, weight, group, bool(classes), False, seed)


def inside(part: Part, whole: Part) -> bool:
    return set(part.index.tolist()) <= set(whole.index.tolist())


def test_rows_train_or_validate_as_in_the_whole() -> None:
    rows = rows_of(20_000)
    found = sampled(rows, 8_000, len(rows.train))
    assert len(found.train) == 7_200
    assert len(found.validation) == 800
    assert inside(found.train, rows.train)
    assert inside(found.validation, rows.validation)
    assert found.X is rows.X
    assert found.X_val is rows.X_val
    # Weights go with their rows.
    weight = dict(zip(rows.train.index.tolist(), rows.train.weight.tolist(), strict=True))
    assert [weight[k] for k in found.train.index.tolist()] == found.train.weight.tolist()
    again = sampled(rows, 8_000, len(rows.train))
    np.testing.assert_array_equal(again.train.index, found.train.index)
    other = sampled(replace(rows, seed=1), 8_000, len(rows.train))
    assert not np.array_equal(other.train.index, found.train.index)


def test_there_are_judges_enough() -> None:
    rows = rows_of(20_000)
    assert len(sampled(rows, 2_000, len(rows.train)).validation) == FEWEST_HELD
    assert len(sampled(rows, 600, len(rows.train)).validation) == 300
    given = np.zeros((30, 2)) + np.arange(30)[:, None], np.arange(30.0)
    rows = with_validation(rows.X, rows.y, None, given, False, False, 0)
    found = sampled(rows, 1_000, len(rows.train))
    assert (len(found.train), len(found.validation)) == (970, 30)
    assert not found.split_off


def test_a_part_of_files_is_drawn_from_in_the_proportion_of_the_whole() -> None:
    rows = rows_of(20_000)  # 18,000 and 2,000, of which the first stand for 198,000
    found = sampled(rows, 10_000, 198_000)
    assert (len(found.train), len(found.validation)) == (9_500, 500)


@pytest.mark.parametrize("seed", range(5))
def test_groups_are_whole(seed: int) -> None:
    rows = rows_of(6_000, groups=150, seed=seed)
    found = sampled(rows, 2_000, len(rows.train))
    for part, whole in ((found.train, rows.train), (found.validation, rows.validation)):
        blocks, sizes = np.unique(part.block, return_counts=True)
        assert 1 < len(blocks) < len(np.unique(whole.block))
        assert sizes.tolist() == [int((whole.block == b).sum()) for b in blocks]
    assert 1_500 < len(found.train) + len(found.validation) <= 2_000


def test_groups_larger_than_the_sample_are_drawn_from() -> None:
    part = replace(evenly(np.arange(9_000)), block=np.arange(9_000) // 3_000)
    found = part.drawn(1_000, 0)
    assert len(found) == 1_000
    assert set(np.bincount(found.block) // 100) <= {2, 3, 4}


@pytest.mark.parametrize("seed", range(5))
def test_every_class_keeps_its_share(seed: int) -> None:
    labels = np.repeat([0, 1, 2, 3], [7_000, 2_500, 497, 3])
    labels = np.random.default_rng(seed).permutation(labels)
    part = evenly(np.arange(10_000)).drawn(1_000, seed, labels)
    counts = np.bincount(labels[part.index])
    assert len(part) == 1_000
    assert np.abs(counts - [700, 250, 49.7, 1]).max() <= 2
    assert counts.min() >= 1


def test_a_table_that_fits_is_taken_as_it_is() -> None:
    part = evenly(np.arange(10))
    assert part.drawn(10, 0) is part
