"""The validation split: nothing leaks, shares hold, weights count."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rdeepsense.data.splits import Part, counted, distinct, validation_fraction
from rdeepsense.errors import InputError


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((1_000, 3)), rng.standard_normal(1_000)


X, Y = table()


def split(
    X: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    stratify: bool = False,
    seed: int = 0,
) -> tuple[Part, Part]:
    rows = distinct(X, y, weight, groups)
    labels = y if stratify and groups is None else None
    return rows.hold_out(validation_fraction(len(rows)), seed, labels)


def test_a_fifth_and_beyond_5000_rows_a_tenth(rng: np.random.Generator) -> None:
    train, held = split(X, Y)
    assert (len(train.index), len(held.index)) == (800, 200)
    assert sorted([*train.index, *held.index]) == list(range(1_000))
    assert train.relative_weight is None
    big = rng.standard_normal((6_000, 2))
    assert len(split(big, big[:, 0])[1].index) == 600


def test_rows_with_equal_inputs_stay_together() -> None:
    twice = np.concatenate([X, X])
    y = np.concatenate([Y, Y + 1])
    train, held = split(twice, y)
    assert not set(train.index % 1_000) & set(held.index % 1_000)
    assert len(train.index) + len(held.index) == 2_000


def test_groups_stay_together_even_as_strings() -> None:
    users = np.array([f"user {i % 10}" for i in range(1_000)])
    train, held = split(X, Y, groups=users)
    assert len(set(users[held.index])) == 2
    assert not set(users[train.index]) & set(users[held.index])


@pytest.mark.parametrize("seed", range(5))
def test_groups_of_one_class_are_held_out_of_every_class(seed: int) -> None:
    recording = np.repeat(np.arange(40), 20)
    label = recording % 4
    rows = distinct(X[:800], label, groups=recording)
    held = rows.hold_out(0.2, seed, label)[1]
    assert len(np.unique(recording[held.index])) == 8
    assert np.unique(label[held.index]).tolist() == [0, 1, 2, 3]
    fold = rows.folds(5, seed, label)
    spread = [np.unique(label[rows.index[fold == k]]).tolist() for k in range(5)]
    assert spread == [[0, 1, 2, 3]] * 5
    assert len(np.unique(recording * 5 + fold[np.argsort(rows.index)])) == 40


def test_a_class_of_one_group_is_trained_on() -> None:
    user = np.repeat(np.arange(10), 30)
    label = np.where(user == 3, 2, np.tile([0, 1], 150))
    for seed in range(20):
        train = distinct(X[:300], label, groups=user).hold_out(0.2, seed, label)[0]
        assert np.unique(label[train.index]).tolist() == [0, 1, 2]


def test_classes_keep_their_share() -> None:
    y = np.repeat([0, 1, 2], [900, 90, 10])
    train, held = split(X, y, stratify=True)
    assert np.bincount(y[held.index]).tolist() == [180, 18, 2]
    assert np.bincount(y[train.index]).tolist() == [720, 72, 8]


def test_repeated_rows_are_one_row_of_their_weight() -> None:
    weight = np.arange(1_000) % 3
    parts = split(X, Y, weight.astype(float))
    repeated = np.repeat(np.arange(1_000), weight)
    others = split(X[repeated], Y[repeated])
    for a, b in zip(parts, others, strict=True):
        assert np.array_equal(a.index, repeated[b.index])
        assert np.array_equal(a.weight, b.weight)
    assert 0 not in {weight[i] for part in parts for i in part.index}
    assert parts[0].relative_weight is not None
    assert parts[0].relative_weight.mean() == pytest.approx(1.0)


def test_a_table_of_few_inputs_is_one_of_counts(rng: np.random.Generator) -> None:
    """Four cells, each with both labels: holding a cell out would leave nothing to learn of it."""
    x = rng.integers(0, 2, (1_000, 2)).astype(float)
    y = rng.integers(0, 2, 1_000)
    train, held = split(x, y, stratify=True)
    assert len(held.index) == 200
    assert len({tuple(row) for row in x[train.index]}) == 4
    assert set(y[held.index]) == {0, 1}


@given(st.integers(0, 2**31), st.integers(2, 40), st.integers(2, 30))
@example(0, 2, 2)  # no copies of two rows
@example(0, 2, 30)
def test_copies_stay_on_one_side_where_no_input_has_two_targets(seed, rows, copies) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(rows, 2)), rng.normal(size=rows)
    repeated = np.repeat(np.arange(rows), rng.integers(1, copies, rows))
    parts = split(x[repeated], y[repeated], seed=seed)
    sides = [set(repeated[part.index].tolist()) for part in parts]
    assert not sides[0] & sides[1]
    assert sides[0] | sides[1] == set(range(rows))
    assert sum(len(part) for part in parts) == rows  # each counts once, whatever it weighs
    assert sum(part.weight.sum() for part in parts) == len(repeated)
    # A weight is so many copies, and rows without copies are split as ever.
    weighted = split(x, y, np.bincount(repeated).astype(float), seed=seed)
    single = split(x, y, seed=seed)
    for part, other, plain in zip(parts, weighted, single, strict=True):
        assert np.array_equal(repeated[part.index], other.index)
        assert np.array_equal(part.weight, other.weight)
        assert np.array_equal(other.index, plain.index)
    whole = distinct(x[repeated], y[repeated])
    fold = whole.folds(5, seed)
    assert len(fold) == rows


def test_copies_are_counted_once_where_they_are_given_to_validate() -> None:
    many = np.tile(np.arange(40), 25)
    part = counted(X[many], Y[many])
    assert part.index.tolist() == list(range(40))
    assert part.weight.tolist() == [25.0] * 40
    assert part.relative_weight is None
    assert len(counted(X, Y)) == 1_000
    assert len(counted(X[many], Y[: len(many)])) == 1_000  # observations: nothing is a copy


@given(st.integers(0, 2**31), st.integers(10, 60))
def test_the_order_of_rows_does_not_matter(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 5, (rows, 2)).astype(float), rng.integers(0, 3, rows).astype(float)
    order = rng.permutation(rows)
    a, b = split(x, y, seed=seed), split(x[order], y[order], seed=seed)
    for ours, theirs in zip(a, b, strict=True):
        assert np.array_equal(x[ours.index], x[order][theirs.index])
        assert np.array_equal(y[ours.index], y[order][theirs.index])
        assert len(ours.index) > 0


def test_integers_stored_as_floats_do_not_collide() -> None:
    """Small whole numbers differ in the high bits of a float only."""
    x = np.arange(200_000.0).reshape(-1, 1)
    train, held = split(x, x[:, 0])
    assert len(train.index) + len(held.index) == 200_000


def test_zero_and_minus_zero_are_one_input() -> None:
    x = np.zeros((200, 1))
    x[::2] = -0.0
    x[:150, 0] = np.arange(150)
    train, held = split(x, np.arange(200.0))
    zeros = [len(set(np.flatnonzero(x[:, 0] == 0)) & set(part.index)) for part in (train, held)]
    assert 0 in zeros


def test_one_group_or_one_input_cannot_be_split() -> None:
    with pytest.raises(InputError, match="equal inputs or one group"):
        split(X, Y, groups=np.zeros(1_000))


def test_folds_keep_cells_whole_and_spread_the_classes() -> None:
    y = np.repeat([0, 1, 2], [700, 295, 5])
    users = np.arange(1_000) // 4
    rows = distinct(X, y, groups=users)
    fold = rows.folds(5, seed=0)
    assert all(len(set(fold[users[rows.index] == u])) == 1 for u in range(250))
    assert np.bincount(fold).tolist() == [200] * 5
    rows = distinct(X, y)
    fold = rows.folds(5, seed=0, labels=y)
    for label, count in ((0, 140), (1, 59), (2, 1)):
        assert np.bincount(fold[y[rows.index] == label]).tolist() == [count] * 5
