"""Standard errors against textbook values, and blocks that keep groups whole."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rdeepsense.paper.scores import block_sums, blocks, leave_one_out, standard_error


def test_blocks() -> None:
    assert blocks(4).tolist() == [0, 1, 2, 3]
    assert np.all(np.diff(blocks(120)) >= 0)  # stretches of neighbours
    assert set(np.bincount(blocks(120))) == {2, 3}
    assert blocks(120).max() == 49
    groups = np.repeat(np.arange(70) * 7, 3)
    block = blocks(len(groups), groups)
    assert block.max() == 49
    assert all(len(set(block[groups == g])) == 1 for g in np.unique(groups))


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    values = np.random.default_rng(0).gamma(2.0, size=40)
    sums = block_sums(np.column_stack([values, np.ones(40)]), blocks(40))
    dropped = leave_one_out(sums, lambda s: s[0] / s[1])
    assert standard_error(dropped) == pytest.approx(values.std(ddof=1) / math.sqrt(40))


def test_no_error_of_one_block_or_of_what_is_not_finite() -> None:
    assert standard_error([1.0]) is None
    assert standard_error([1.0, None, 2.0]) is None
    assert leave_one_out(np.ones((2, 1)), lambda s: math.nan) == [None, None]


def test_copies_of_rows_do_not_shrink_the_error_of_groups() -> None:
    values = np.random.default_rng(1).normal(size=30)
    copies, groups = np.repeat(values, 20), np.repeat(np.arange(30), 20)

    def error(rows: np.ndarray, block: np.ndarray) -> float:
        sums = block_sums(np.column_stack([rows, np.ones_like(rows)]), block)
        return standard_error(leave_one_out(sums, lambda s: s[0] / s[1])) or 0.0

    plain = values.std(ddof=1) / math.sqrt(30)
    assert error(copies, blocks(600, groups)) == pytest.approx(plain)
    rng = np.random.default_rng(2)
    assert error(rng.permutation(copies), blocks(600)) < 0.5 * plain
